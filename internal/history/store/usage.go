package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubecast/kubecast/internal/history"
)

// By says by what usage is summed up.
type By string

// What jobs can be summed up by.
const (
	ByNamespace By = "namespace"
	ByOwner     By = "owner"
	ByQueue     By = "queue"
	ByResource  By = "resource"
	ByState     By = "state"
)

// usageBatch is how many jobs visit gets at once.
const usageBatch = 500

// Lives calls visit with what usage needs of all jobs of a log that were created, or ran, between two times, as they are
// now. Since and Until of the filter do not count. Visit gets some hundred jobs at a time; its error ends the reading.
// It may take its time.
//
// If a job ran once, its row tells when. Transitions are read only of jobs that ran several times.
func (s *Store) Lives(ctx context.Context, log Log, f Filter, by By, from, until, now history.Time, visit func([]history.Lived) error) error {
	f.Since, f.Until = 0, 0
	l := lives{store: s, log: log, by: by, now: now, amounts: map[string]amounts{}, visit: visit}
	for _, part := range []struct {
		text string
		args []any
	}{
		{"created >= ? AND created < ?", []any{int64(from), int64(until)}},
		{"created < ? AND ran_until > ?", []any{int64(from), int64(from)}},
		{"created < ? AND ran_until IS NULL", []any{int64(from)}},
	} {
		w := s.where(f, log, "jobs", "state", "")
		w.add(part.text, part.args...)
		if err := l.read(ctx, w); err != nil {
			return fmt.Errorf("read usage: %w", err)
		}
		if from == 0 {
			break // no job was created before
		}
	}
	return nil
}

// lives is one reading.
type lives struct {
	store   *Store
	log     Log
	by      By
	now     history.Time
	amounts map[string]amounts // by the text of the requests, since most jobs request the same as others
	visit   func([]history.Lived) error
	batch   []history.Lived
	again   map[string]int // by uid: the indexes in the batch of jobs that ran several times
}

// amounts are what a job requests.
type amounts struct{ cpus, gpus float64 }

func (l *lives) read(ctx context.Context, w *where) error {
	if err := l.store.Each(ctx, func(scan Scan) error {
		var uid, namespace, owner, queue, spent, requests string
		var state history.State
		var since, created, started history.Time
		var ran *int64
		if err := scan(&uid, &namespace, &owner, &queue, &state, &since, &created, &started, &ran, &spent, &requests); err != nil {
			return err
		}
		job := history.Lived{Key: namespace, Created: created, Started: started}
		switch l.by {
		case ByOwner:
			job.Key = owner
		case ByQueue:
			job.Key = queue
		case ByResource:
			job.Key = l.log.Resource
		case ByState:
			job.Key = string(state)
		}
		if started != 0 {
			a := l.amountsOf(requests)
			job.CPUs, job.GPUs = a.cpus, a.gpus
			var states map[history.State]int64
			if err := json.Unmarshal([]byte(spent), &states); err != nil {
				return fmt.Errorf("job %s: %w", uid, err)
			}
			total, end := states[history.Running], l.now
			switch {
			case state == history.Running:
				total += max(0, int64(l.now-since))
			case ran != nil:
				end = history.Time(*ran)
			}
			job.Ran = time.Duration(total) * time.Millisecond
			job.Runs = []history.Run{{From: started, To: started + history.Time(total)}}
			if ran == nil || int64(end-started) != total {
				if l.again == nil {
					l.again = map[string]int{}
				}
				l.again[uid] = len(l.batch)
			}
		}
		if l.batch = append(l.batch, job); len(l.batch) == usageBatch {
			return l.give(ctx)
		}
		return nil
	}, "SELECT uid, namespace, owner, queue, state, since, created, started, ran_until, spent, requests FROM jobs "+w.String(), w.args...); err != nil {
		return err
	}
	return l.give(ctx)
}

// give calls visit with what was read.
func (l *lives) give(ctx context.Context) error {
	if len(l.again) > 0 {
		if err := l.runs(ctx); err != nil {
			return err
		}
	}
	err := l.visit(l.batch)
	l.batch, l.again = l.batch[:0], nil
	return err
}

// runs finds when jobs ran that ran several times. If the transitions of such a job were removed in the meantime, all of
// its time counts from where it began.
func (l *lives) runs(ctx context.Context) error {
	w := &where{}
	w.add("log = ?", l.log.ID)
	uids := make([]string, 0, len(l.again))
	for uid := range l.again {
		uids = append(uids, uid)
	}
	oneOf(w, "uid", uids)
	w.add("(from_state = ? OR to_state = ?)", string(history.Running), string(history.Running))
	found := map[string][]history.Run{}
	if err := l.store.Each(ctx, func(scan Scan) error {
		var uid string
		var to history.State
		var at history.Time
		if err := scan(&uid, &to, &at); err != nil {
			return err
		}
		at = min(at, l.now)
		runs := found[uid]
		switch {
		case to == history.Running:
			found[uid] = append(runs, history.Run{From: at, To: l.now})
		case len(runs) > 0:
			runs[len(runs)-1].To = at
		}
		return nil
	}, "SELECT uid, to_state, at FROM transitions "+w.String()+" ORDER BY seq", w.args...); err != nil {
		return err
	}
	for uid, runs := range found {
		job := &l.batch[l.again[uid]]
		job.Runs, job.Ran = runs, 0
		for _, run := range runs {
			job.Ran += time.Duration(run.To-run.From) * time.Millisecond
		}
	}
	return nil
}

// maxAmounts is how many different requests are remembered in one reading.
const maxAmounts = 10_000

func (l *lives) amountsOf(requests string) amounts {
	if a, known := l.amounts[requests]; known {
		return a
	}
	var a amounts
	var quantities map[string]string
	if err := json.Unmarshal([]byte(requests), &quantities); err == nil { // text that is no list of quantities counts for nothing
		for name, text := range quantities {
			quantity, err := resource.ParseQuantity(text)
			switch {
			case err != nil:
			case name == "cpu":
				a.cpus = quantity.AsApproximateFloat64()
			case strings.HasSuffix(name, "/gpu"):
				a.gpus += quantity.AsApproximateFloat64()
			}
		}
	}
	if len(l.amounts) < maxAmounts {
		l.amounts[requests] = a
	}
	return a
}
