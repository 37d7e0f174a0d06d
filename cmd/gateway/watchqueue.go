package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/r3labs/sse/v2"
)

// toldQueue is a queue as a stream of queues tells it, or the list of them.
type toldQueue struct {
	Namespace, Name  string
	Waiting, Running int
	Jobs             []toldJob
	Items            []toldQueue
}

// toldJob is a job that waits in a queue. Of one that may not be seen only the place is known.
type toldJob struct {
	Position, ClusterPosition *int
	Hidden                    bool
	Namespace, Name, Owner    string
	Starts                    *struct {
		From, To   time.Time
		Confidence float64
	}
}

// printQueues prints each queue of an event in a line, and below it who waits there, in their order.
func printQueues(out io.Writer, e *sse.Event) error {
	var told toldQueue
	if err := json.Unmarshal(e.Data, &told); err != nil {
		return printRow(out, e, string(e.Data))
	}
	all := told.Items
	if told.Name != "" {
		all = []toldQueue{told}
	}
	for _, q := range all {
		if err := printRow(out, e, fmt.Sprintf("%s  %d waiting, %d running", joined(q.Namespace, q.Name), q.Waiting, q.Running)); err != nil {
			return err
		}
		for _, j := range q.Jobs {
			if err := printRow(out, e, "  "+j.line(q.Namespace != "", time.Now())); err != nil {
				return err
			}
		}
	}
	return nil
}

func joined(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }

// line says where a job stands, in the queue that is watched and in that of the cluster, whose it is and when it will start.
func (j toldJob) line(local bool, now time.Time) string {
	place := j.ClusterPosition
	if local || j.Hidden {
		place = j.Position
	}
	if j.Hidden {
		return placeOf(place) + "  (somebody else's)"
	}
	text := placeOf(place)
	if local && j.ClusterPosition != nil {
		text += fmt.Sprintf(" (%d in the cluster)", *j.ClusterPosition)
	}
	text += "  " + joined(j.Namespace, j.Name)
	if j.Owner != "" {
		text += "  " + j.Owner
	}
	if s := j.Starts; s != nil {
		text += "  " + startsIn(s.From.Sub(now), s.To.Sub(now)) + fmt.Sprintf(" (%.0f %% sure)", 100*s.Confidence)
	}
	return text
}

func placeOf(place *int) string {
	if place == nil {
		return "-"
	}
	return fmt.Sprint(*place)
}

// startsIn says an interval no finer than it is meant.
func startsIn(from, to time.Duration) string {
	switch minutes := func(d time.Duration) string {
		return cmp.Or(strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s"), "0m")
	}; {
	case to <= 0:
		return "starts later than expected"
	case from < time.Minute:
		return "starts within " + minutes(to+time.Minute-1)
	default:
		return fmt.Sprintf("starts in %s to %s", minutes(from), minutes(to+time.Minute-1))
	}
}
