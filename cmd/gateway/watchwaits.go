package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Why a job waits, its place and when it will start make no transitions, so a stream of a history does not tell them. They
// are asked for beside it, all with one request, and printed as they change.

// askAboutWaits is how often.
const askAboutWaits = 10 * time.Second

// waitingStates are the states in which a job waits.
const waitingStates = "Submitted,Queued,Suspended,Pending,Retrying"

// toldWait is a job of a history that waits.
type toldWait struct {
	UID, Resource, Namespace, Name, State, Reason string
	Reasons                                       []struct{ Reason, Text string }
	Queue                                         json.RawMessage
}

// place is where a job stands in its queue; the zero place of one whose place is not known.
type place struct {
	Name    string
	toldJob // but for what is the job's own
}

// historyPath is the path of a history of jobs.
var historyPath = regexp.MustCompile(`^(/clusters/[^/]+)?/history/`)

// waitsURL is where it is asked for why those jobs wait whose transitions a stream tells; "" of other streams.
func waitsURL(address, path string) string {
	u, err := url.Parse(address)
	if err != nil || !historyPath.MatchString(path) {
		return ""
	}
	asked := u.Query()
	if view := asked.Get("view"); view != "" && view != "transitions" || asked.Has("state") || asked.Has("cause") {
		return ""
	}
	query := url.Values{"state": {waitingStates}}
	for _, filter := range []string{"owner", "queue", "uid", "search"} {
		if asked.Has(filter) {
			query[filter] = asked[filter]
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// printWaits prints why jobs wait whenever that has changed, until the context ends. What cannot be asked for now is asked
// for again: the stream beside it says what is wrong.
func printWaits(ctx context.Context, client *http.Client, address string, bearer func() (string, error), print func(line string) error) {
	told := map[string]string{}
	for {
		if waits, err := askWaits(ctx, client, address, bearer); err == nil {
			told = tellWaits(waits, told, time.Now(), print)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(askAboutWaits):
		}
	}
}

func askWaits(ctx context.Context, client *http.Client, address string, bearer func() (string, error)) (waits []toldWait, err error) {
	ctx, done := context.WithTimeout(ctx, 3*askAboutWaits)
	defer done()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	token, err := bearer()
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("why jobs wait: %s", response.Status)
	}
	var page struct{ Items []toldWait }
	err = json.NewDecoder(io.LimitReader(response.Body, maxEvent)).Decode(&page)
	return page.Items, err
}

// tellWaits prints those waits of which something else is said than was told, and returns what has been told of all.
func tellWaits(waits []toldWait, told map[string]string, now time.Time, print func(string) error) map[string]string {
	next := make(map[string]string, len(waits))
	for _, job := range waits {
		line, says := job.line(now)
		if next[job.UID] = says; says == "" || told[job.UID] == says {
			continue
		}
		if print(line) != nil {
			return next // the output is closed, which the stream's next event finds, too
		}
	}
	return next
}

// line is why a job waits, its place and when it will start. What it says is the same as long as only that has moved.
func (j toldWait) line(now time.Time) (line, says string) {
	var at place
	_ = json.Unmarshal(j.Queue, &at) // a text where no place is known
	var parts []string
	if n := len(j.Reasons); n > 0 && j.Reason != "" && j.Reasons[n-1].Reason == j.Reason {
		parts = append(parts, j.Reasons[n-1].Text)
	}
	switch {
	case at.Position != nil && at.ClusterPosition != nil:
		parts = append(parts, fmt.Sprintf("place %d in %s (%d in the cluster)", *at.Position, at.Name, *at.ClusterPosition))
	case at.Position != nil:
		parts = append(parts, fmt.Sprintf("place %d in %s", *at.Position, at.Name))
	}
	says = strings.Join(parts, "; ")
	if s := at.Starts; s != nil {
		parts = append(parts, startsIn(s.From.Sub(now), s.To.Sub(now))+fmt.Sprintf(" (%.0f %% sure)", 100*s.Confidence))
		says += "; starts"
	}
	return fmt.Sprintf("%s %s/%s %s: %s", j.Resource, j.Namespace, j.Name, j.State, strings.Join(parts, "; ")), says
}
