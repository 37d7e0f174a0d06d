package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

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

// usageRows is about how many rows are read in one turn.
const usageRows = 1000

// Lives calls visit with what usage needs of all jobs of a log that were created, or ran, between two times, as they are
// when they are read. Since and Until of the filter do not count. Visit gets some jobs at a time; its error ends the reading.
// It may take its time.
//
// It is read a stretch of an index after the other, each in a turn of its own. So however much there is, others wait for one
// stretch only.
//
// If a job ran once, its row tells when. Transitions are read only of jobs that ran several times.
func (s *Store) Lives(ctx context.Context, log Log, f Filter, by By, from, until, now history.Time, visit func([]history.Lived) error) error {
	f.Since, f.Until = 0, 0
	l := lives{store: s, log: log, filter: f, by: by, now: now, amounts: map[string]history.Amounts{}, visit: visit}
	err := l.created(ctx, int64(from), int64(until))
	if err == nil && from > 0 { // else no job was created before
		err = l.before(ctx, int64(from))
	}
	if err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	return nil
}

// lives is one reading.
type lives struct {
	store   *Store
	log     Log
	filter  Filter
	by      By
	now     history.Time
	amounts map[string]history.Amounts // by the text of the requests, since most jobs request the same as others
	visit   func([]history.Lived) error
	batch   []history.Lived
	again   map[string]int // by uid: the indexes in the batch of jobs that ran several times
}

// created reads the jobs that were created between two times, by the condition by which there is least to look at.
func (l *lives) created(ctx context.Context, from, until int64) error {
	q := l.store.search(l.log, l.filter, jobsByCreation)
	for upTo := until - 1; upTo >= from; {
		least, by, err := q.window(ctx, upTo, usageRows)
		if err != nil {
			return err
		}
		least = max(least, from)
		bounds := &where{}
		bounds.add("created >= ? AND created <= ?", least, upTo)
		text, args := q.rows(by, bounds, math.MaxInt32)
		if err := l.read(ctx, text, args, nil); err != nil {
			return err
		}
		upTo = least - 1
	}
	return nil
}

// stretch is a part of the index jobs_ran.
type stretch struct {
	is          string // what all its rows are
	column      string // that they are ordered by
	above, upTo int64
}

// before reads the jobs that were created before a time and ran after it. Those that are running come first, since one that ends
// meanwhile is among the others then.
func (l *lives) before(ctx context.Context, from int64) error {
	running := map[string]bool{}
	if err := l.ran(ctx, stretch{fmt.Sprintf("ran_until = %d", int64(stillRuns)), "created", math.MinInt64, from - 1}, from, func(uid string) bool {
		running[uid] = true
		return true
	}); err != nil {
		return err
	}
	others := func(uid string) bool { return !running[uid] }
	if err := l.ran(ctx, stretch{"1 = 1", "ran_until", from, stillRuns - 1}, from, others); err != nil {
		return err
	}
	return l.ran(ctx, stretch{"ran_until IS NULL", "created", math.MinInt64, from - 1}, from, others)
}

// ran reads the jobs of a stretch that were created before a time.
func (l *lives) ran(ctx context.Context, in stretch, created int64, counts func(uid string) bool) error {
	table := "jobs" + l.store.dialect.use("jobs_ran")
	for more := true; more; {
		upTo := in.upTo
		err := l.store.QueryRow(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE log = ? AND %s AND %s > ? AND %s <= ? ORDER BY %s LIMIT 1 OFFSET %d",
			in.column, table, in.is, in.column, in.column, in.column, usageRows), l.log.ID, in.above, in.upTo).Scan(&upTo)
		if more = err == nil; !more && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		w := l.store.where(l.filter, l.log, "jobs", "state", "")
		w.add(in.is+" AND created < ? AND "+in.column+" > ? AND "+in.column+" <= ?", created, in.above, upTo)
		if err := l.read(ctx, table+" "+w.String(), w.args, counts); err != nil {
			return err
		}
		in.above = upTo
	}
	return nil
}

// read reads one stretch, and calls visit with what counts of it; nil: all of it.
func (l *lives) read(ctx context.Context, from string, args []any, counts func(uid string) bool) error {
	if err := l.store.Each(ctx, func(scan Scan) error {
		var uid, namespace, owner, queue, spent, requests string
		var parent sql.NullString
		var state history.State
		var since, created, started history.Time
		var ran *int64
		if err := scan(&uid, &namespace, &owner, &queue, &state, &since, &created, &started, &ran, &spent, &requests, &parent); err != nil {
			return err
		}
		if parent.String != "" || counts != nil && !counts(uid) { // a part is in what it is a part of
			return nil
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
			job.CPUs, job.GPUs = a.CPUs, a.GPUs
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
			job.Runs = []history.Interval{{From: started, To: started + history.Time(total)}}
			if ran == nil || int64(end-started) != total {
				if l.again == nil {
					l.again = map[string]int{}
				}
				l.again[uid] = len(l.batch)
			}
		}
		l.batch = append(l.batch, job)
		return nil
	}, "SELECT uid, namespace, owner, queue, state, since, created, started, ran_until, spent, requests, parent_uid FROM "+from, args...); err != nil {
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
	found := map[string][]history.Interval{}
	for uids := range slices.Chunk(slices.Collect(maps.Keys(l.again)), runsAtOnce) {
		if err := l.runsOf(ctx, uids, found); err != nil {
			return err
		}
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

// runsAtOnce is of how many jobs the runs are read in one turn.
const runsAtOnce = 100

// runsOf finds when some jobs ran.
func (l *lives) runsOf(ctx context.Context, uids []string, found map[string][]history.Interval) error {
	w := &where{}
	w.add("log = ?", l.log.ID)
	oneOf(w, "uid", uids)
	w.add("(from_state = ? OR to_state = ?)", string(history.Running), string(history.Running))
	return l.store.Each(ctx, func(scan Scan) error {
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
			found[uid] = append(runs, history.Interval{From: at, To: l.now})
		case len(runs) > 0:
			runs[len(runs)-1].To = at
		}
		return nil
	}, "SELECT uid, to_state, at FROM transitions "+w.String()+" ORDER BY seq", w.args...)
}

// maxAmounts is how many different requests are remembered in one reading.
const maxAmounts = 10_000

func (l *lives) amountsOf(requests string) history.Amounts {
	if a, known := l.amounts[requests]; known {
		return a
	}
	var a history.Amounts
	var quantities map[string]string
	if err := json.Unmarshal([]byte(requests), &quantities); err == nil { // text that is no list of quantities counts for nothing
		a = history.AmountsOf(quantities)
	}
	if len(l.amounts) < maxAmounts {
		l.amounts[requests] = a
	}
	return a
}
