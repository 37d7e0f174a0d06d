package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Why a job waits, its place and when it will start make no transitions, so a stream of a history does not tell them. They
// are asked for beside it, all with one request, and printed as they change.

const (
	// askAboutWaits is how often.
	askAboutWaits = 10 * time.Second
	// mostWaits is of how many jobs at most, the newest, which is as many as a page may have. Those that are next in a queue may be old.
	mostWaits = "1000"
	// maxWaits bounds an answer, in bytes.
	maxWaits = 4 * maxEvent
)

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
	query := url.Values{"state": {waitingStates}, "limit": {mostWaits}}
	for _, filter := range []string{"owner", "queue", "uid", "search"} {
		if asked.Has(filter) {
			query[filter] = asked[filter]
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// printWaits prints why jobs wait whenever that has changed, until the context ends. What cannot be asked for now is asked
// for again; why not is told whenever that has changed, and once that there are more jobs than are asked for.
func printWaits(ctx context.Context, client *http.Client, address string, bearer func() (string, error), print func(line string) error, tell func(problem string)) {
	told, failed, tellMore := map[string]string{}, "", sync.OnceFunc(func() {
		tell("more than " + mostWaits + " jobs wait: of the newest " + mostWaits + " only it is printed why")
	})
	for {
		waits, more, err := askWaits(ctx, client, address, bearer)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if now := innermost(err).Error(); now != failed {
				failed = now
				tell("it cannot be asked for why jobs wait: " + err.Error())
			}
		default:
			failed, told = "", tellWaits(waits, told, time.Now(), print)
			if more {
				tellMore()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(askAboutWaits):
		}
	}
}

// innermost is what an error comes from: what is around it may have another port each time.
func innermost(err error) error {
	for {
		within := errors.Unwrap(err)
		if within == nil {
			return err
		}
		err = within
	}
}

// askWaits returns the newest jobs that wait, and whether there are more.
func askWaits(ctx context.Context, client *http.Client, address string, bearer func() (string, error)) (waits []toldWait, more bool, err error) {
	ctx, done := context.WithTimeout(ctx, 3*askAboutWaits)
	defer done()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, false, err
	}
	token, err := bearer()
	if err != nil {
		return nil, false, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, false, errors.New(response.Status)
	}
	var page struct {
		Items    []toldWait
		Continue string
	}
	err = json.NewDecoder(io.LimitReader(response.Body, maxWaits)).Decode(&page)
	return page.Items, page.Continue != "", err
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
