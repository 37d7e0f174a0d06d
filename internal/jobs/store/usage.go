package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
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
	ByCause     By = "cause" // why they ended; "" of jobs that have not, of those that succeeded, and where it is not known
)

// usageRows is about how many rows are read in one turn.
const usageRows = 1000

// Lives calls visit with what usage needs of all jobs of a log that were created, or held anything,
// within a span, as they are when they are read. Since and Until of the filter do not count. Visit
// gets some jobs at a time, and of those with many runs these afterwards; its error ends the
// reading. It may take its time.
//
// It is read a stretch of an index after the other, each in a turn of its own. So however much
// there is, others wait for one stretch only. What changes meanwhile is told as it was at now, and
// each job once, wherever it has moved to in an index.
//
// What a job used is in its total, if all of it lies in one step. Runs are read only of jobs of
// which it does not. A job from before runs were recorded used what it requested while it was
// Running.
func (s *Store) Lives(ctx context.Context, log Log, f Filter, by By, span jobs.Span, now jobs.Time, visit func([]jobs.Lived) error) error {
	f.Since, f.Until = 0, 0
	l := lives{store: s, log: log, filter: f, by: by, span: span, now: now, amounts: map[string]jobs.Amounts{}, visit: visit}
	var err error
	if l.covered, err = s.covered(ctx, log.Cluster); err == nil {
		l.changes = changes{jobs: int64(log.Seq), runs: int64(l.covered.seq), ran: map[string]bool{}, moved: map[string]bool{}}
		err = l.created(ctx, int64(span.From), int64(span.Until))
	}
	if err == nil && span.From > 0 { // else no job was created before
		err = l.before(ctx, int64(span.From))
	}
	if err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	return nil
}

// Ends calls visit with the transitions of a log that led jobs to an end, the newest first, some at
// a time; the states of the filter do not count. Jobs that are parts of others by now are left out,
// as Lives does not count them. It reads a page after the other, each in turns of its own.
func (s *Store) Ends(ctx context.Context, log Log, f Filter, visit func([]*jobs.Transition) error) error {
	f.States = []jobs.State{jobs.Succeeded, jobs.Failed, jobs.Cancelled}
	for before := uint64(0); ; {
		page, err := s.Transitions(ctx, log, f, before, usageRows)
		if err != nil {
			return err
		}
		whole := len(page) == usageRows
		if whole {
			before = page[len(page)-1].Seq
		}
		if page, err = s.withoutParts(ctx, log, page); err != nil {
			return err
		}
		if err := visit(page); err != nil || !whole {
			return err
		}
	}
}

// withoutParts leaves out the transitions of jobs that are parts of others.
func (s *Store) withoutParts(ctx context.Context, log Log, all []*jobs.Transition) ([]*jobs.Transition, error) {
	uids := make([]string, len(all))
	for i, t := range all {
		uids[i] = t.UID
	}
	parts := map[string]bool{}
	if err := s.inParts(log.ID, "uid", distinct(uids), func(w *where) error {
		w.add("parent_uid IS NOT NULL")
		found, err := s.texts(ctx, "SELECT uid FROM jobs"+s.dialect.use(s.dialect.primary("jobs"))+" "+w.String(), w.args...)
		for _, uid := range found {
			parts[uid] = true
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("look for parts: %w", err)
	}
	return slices.DeleteFunc(all, func(t *jobs.Transition) bool { return parts[t.UID] }), nil
}

// KeyOf is the key by which a transition of a kind is counted.
func (b By) KeyOf(resource string, t *jobs.Transition) string {
	switch b {
	case ByOwner:
		return t.Owner
	case ByQueue:
		return t.Queue
	case ByResource:
		return resource
	case ByCause:
		if t.Cause == nil {
			return ""
		}
		return t.Cause.Reason
	}
	return t.Namespace
}

// lives is one reading.
type lives struct {
	store   *Store
	log     Log
	filter  Filter
	by      By
	span    jobs.Span
	now     jobs.Time
	covered covered
	amounts map[string]jobs.Amounts // by the text of the requests, since most jobs request the same as others
	visit   func([]jobs.Lived) error
	changes changes
	given   map[uint64]struct{} // of jobs that were created before the span: the hashes of those that were given
	batch   []livedJob
	again   map[string]int // by uid: the indexes in the batch of jobs that ran several times
}

// livedJob is a job of a batch.
type livedJob struct {
	uid string
	jobs.Lived
	started  jobs.Time // 0: it never ran
	end      jobs.Time // 0: it has not ended
	running  jobs.Hold // what it requested, from when it first was Running for as long as it was
	several  bool      // that was not one time
	unseen   bool      // it never ran as far as anybody has seen, and may have
	requests string
}

// created reads the jobs that were created between two times, by the condition by which there is least to look at.
func (l *lives) created(ctx context.Context, from, until int64) error {
	q := l.store.search(l.log, l.filter, jobsByCreation)
	for upTo := until - 1; upTo >= from; {
		least, by, err := q.window(ctx, upTo, l.store.window)
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

// read reads one stretch, and calls visit with what counts of it; nil: all of it. Counts is told
// whether a job has a total.
func (l *lives) read(ctx context.Context, from string, args []any, counts func(uid string, total bool) bool) error {
	l.batch, l.again = l.batch[:0], nil
	if err := l.store.Each(ctx, func(scan Scan) error {
		job, namespace, owner, queue, spent := livedJob{}, "", "", "", ""
		var of jobs.Job // what its times are of
		var ran *int64
		var parent, cause sql.NullString
		var late [2]sql.NullBool
		if err := scan(&job.uid, &namespace, &owner, &queue, &of.State, &of.Since, &of.Created, &of.Started, &of.Ended, &of.Deleted, &ran, &spent, &job.requests, &parent, &cause, &late[0], &late[1]); err != nil {
			return err
		}
		state := of.State
		of.BeganLate, job.Unended = late[0].Bool, late[1].Bool
		job.Created, job.started = of.Created, of.Started
		job.Key, job.end, job.Counted = namespace, max(of.Ended, of.Deleted), parent.String != "" // a part is in what it is a part of
		switch l.by {
		case ByOwner:
			job.Key = owner
		case ByQueue:
			job.Key = queue
		case ByResource:
			job.Key = l.log.Resource
		case ByState:
			job.Key = string(state)
		case ByCause:
			if job.Key = ""; state.Ended() || state == jobs.Deleted {
				job.Key = cause.String
			}
		}
		var err error
		if of.Spent, err = spentOf(spent); err != nil {
			return fmt.Errorf("job %s: %w", job.uid, err)
		}
		if of.Started != 0 {
			l.times(&job, &of, ran)
		} else {
			job.unseen = job.end != 0 && of.Waited() == nil
		}
		l.batch = append(l.batch, job)
		return nil
	}, "SELECT uid, namespace, owner, queue, state, since, created, started, ended, deleted, ran_until, spent, requests, parent_uid, cause_reason, began_late, stopped_late FROM "+from, args...); err != nil {
		return err
	}
	uids := make([]string, len(l.batch))
	for i, job := range l.batch {
		uids[i] = job.uid
	}
	totals, err := l.store.totalsOf(ctx, l.log, uids)
	if err != nil {
		return err
	}
	l.batch = slices.DeleteFunc(l.batch, func(job livedJob) bool {
		total := totals[job.uid] != nil
		return job.Counted && !total || counts != nil && !counts(job.uid, total)
	})
	// What holds its node may hold it only since now: then its total is not of now. That it changed
	// is known if it is looked for after the total was read.
	if slices.ContainsFunc(l.batch, func(job livedJob) bool { return totals[job.uid] != nil && totals[job.uid].Holding > 0 }) {
		if err := l.lookForRuns(ctx); err != nil {
			return err
		}
	}
	return l.give(ctx, totals)
}

// times takes over how long a job waited and ran by now. RanUntil is as in its row.
func (l *lives) times(job *livedJob, of *jobs.Job, ranUntil *int64) {
	job.HasRun, job.Ran = true, of.Ran().At(l.now)
	if waited := of.Waited(); waited != nil {
		job.Waited = waited.At(l.now)
	} else {
		job.Late = true
	}
	total, end := job.Ran.Milliseconds(), l.now
	if of.State != jobs.Running && ranUntil != nil {
		end = jobs.Time(*ranUntil)
	}
	job.running.Interval = jobs.Interval{From: of.Started, To: of.Started + jobs.Time(total)}
	job.several = ranUntil == nil || int64(end-of.Started) != total
}

// give calls visit with what was read, of which some have totals.
func (l *lives) give(ctx context.Context, totals map[string]*jobs.Total) error {
	var inParts []string // jobs whose runs have to be read
	for i := range l.batch {
		job := &l.batch[i]
		switch total := totals[job.uid]; {
		case total != nil:
			if holds, whole := l.wholly(total); whole && !l.changes.ran[job.uid] {
				job.Holds = holds
			} else {
				inParts = append(inParts, job.uid)
			}
		case l.covered.has(job.Created, job.end, l.now): // it had none
		case job.started == 0:
			job.Unknown = job.unseen
		default:
			job.running.Amounts = l.amountsOf(job.requests)
			if job.Holds = []jobs.Hold{job.running}; job.several {
				if l.again == nil {
					l.again = map[string]int{}
				}
				l.again[job.uid] = i
			}
		}
	}
	if len(l.again) > 0 {
		if err := l.runs(ctx); err != nil {
			return err
		}
	}
	told, keys := make([]jobs.Lived, len(l.batch)), map[string]string{}
	for i, job := range l.batch {
		told[i], keys[job.uid] = job.Lived, job.Key
	}
	if err := l.visit(told); err != nil {
		return err
	}
	return l.store.heldBy(ctx, l.log, inParts, totals, l.covered.upTo(l.now), func(uid string, holds []jobs.Hold) error {
		return l.visit([]jobs.Lived{{Key: keys[uid], Counted: true, Holds: holds}})
	})
}

// wholly is what the runs of a job hold, if none of them holds anything within the span, or all of
// it is within one of its steps. Then it does not matter when which of them did.
func (l *lives) wholly(t *jobs.Total) (holds []jobs.Hold, whole bool) {
	at := jobs.Interval{From: t.First, To: t.Until(l.covered.upTo(l.now))}
	switch {
	case t.First == 0, at.To <= at.From, at.To <= l.span.From, at.From >= l.span.Until:
		return nil, true
	case sharesDevices(t), !l.span.HasInOneStep(at):
		return nil, false
	}
	sum, hours := t.Use(l.covered.upTo(l.now)).Hours, float64(at.To-at.From)/float64(time.Hour/time.Millisecond)
	return []jobs.Hold{{Interval: at, Amounts: jobs.Amounts{CPUs: sum.CPUs / hours, Memory: sum.Memory / hours, GPUs: sum.GPUs / hours}}}, true
}

// runs finds when jobs ran that ran several times, and whose pods' runs are not known. If the
// transitions of such a job were removed in the meantime, all of its time counts from where it
// began.
func (l *lives) runs(ctx context.Context) error {
	found := map[string][]jobs.Interval{}
	for uids := range slices.Chunk(slices.Collect(maps.Keys(l.again)), runsAtOnce) {
		if err := l.runsOf(ctx, uids, found); err != nil {
			return err
		}
	}
	for uid, runs := range found {
		job := &l.batch[l.again[uid]]
		job.Holds, job.Ran = nil, 0
		for _, run := range runs {
			job.Holds = append(job.Holds, jobs.Hold{Interval: run, Amounts: job.running.Amounts})
			job.Ran += time.Duration(run.To-run.From) * time.Millisecond
		}
	}
	return nil
}

// runsAtOnce is of how many jobs the runs are read in one turn.
const runsAtOnce = 100

// runsOf finds when some jobs ran.
func (l *lives) runsOf(ctx context.Context, uids []string, found map[string][]jobs.Interval) error {
	w := &where{}
	w.add("log = ?", l.log.ID)
	oneOf(w, "uid", uids)
	w.add("(from_state = ? OR to_state = ?)", string(jobs.Running), string(jobs.Running))
	return l.store.Each(ctx, func(scan Scan) error {
		var uid string
		var to jobs.State
		var at jobs.Time
		if err := scan(&uid, &to, &at); err != nil {
			return err
		}
		at = min(at, l.now)
		runs := found[uid]
		switch {
		case to == jobs.Running:
			found[uid] = append(runs, jobs.Interval{From: at, To: l.now})
		case len(runs) > 0:
			runs[len(runs)-1].To = at
		}
		return nil
	}, "SELECT uid, to_state, at FROM transitions "+w.String()+" ORDER BY seq", w.args...)
}

// maxAmounts is how many different requests are remembered in one reading.
const maxAmounts = 10_000

func (l *lives) amountsOf(requests string) jobs.Amounts {
	if a, known := l.amounts[requests]; known {
		return a
	}
	var a jobs.Amounts
	var quantities map[string]string
	if err := json.Unmarshal([]byte(requests), &quantities); err == nil { // text that is no list of quantities counts for nothing
		a = jobs.AmountsOfJob(quantities)
	}
	if len(l.amounts) < maxAmounts {
		l.amounts[requests] = a
	}
	return a
}
