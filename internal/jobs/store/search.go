package store

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
)

// ErrUnfinished means that a page of what has a part of a name in it has not all that there is: what was looked at took
// too long. What was found by then comes with it. It is an *Unfinished.
var ErrUnfinished = errors.New("the search took too long")

// Unfinished is an ErrUnfinished, and where looking ended: a page that begins there goes on. The place is that of a row
// which the caller may not see, so it is for no caller's eyes.
type Unfinished struct {
	After  JobAfter // of jobs
	Before uint64   // of transitions
}

func (*Unfinished) Error() string { return ErrUnfinished.Error() }

func (*Unfinished) Unwrap() error { return ErrUnfinished }

const (
	// SearchWithin is how long a page looks for a part of a name. No index finds one, so all is looked at that else fits.
	SearchWithin = 5 * time.Second
	// searchOverdue is how long a question that is under way then may go on.
	searchOverdue = 3 * time.Second
	// mostSearched is how many rows one question looks at for that, so that others have their turns between.
	mostSearched = 64_000
	// mostRead is how many of them where the index that leads has no names.
	mostRead = 8000
)

// jobsByCreation is the order of pages of jobs.
var jobsByCreation = search{table: "jobs", key: "uid", by: "created", page: "created DESC, uid DESC", order: "jobs_created", state: "state", time: "since"}

// Jobs is a page of jobs, the newest first: ordered by creation, then by uid. If there are fewer than the limit, there
// are no more, unless the error is ErrUnfinished.
func (s *Store) Jobs(ctx context.Context, log Log, f Filter, after JobAfter, limit int) (found []*jobs.Job, err error) {
	q := s.search(log, f, jobsByCreation)
	if len(f.Parents) > 0 {
		q.span = [2]jobs.Time{} // the indexes by which times lead do not say of what a job is a part
	}
	if f.Until != 0 && (after == JobAfter{} || after.Created >= f.Until) {
		after = JobAfter{Created: f.Until} // a job is created before it comes to its state
	}
	look, ctx, over := s.looksFor(ctx, f)
	defer over()
	for rows := s.window; ; rows = q.wider(rows) {
		page, from, err := q.jobs(ctx, after, rows, limit-len(found))
		if err != nil && look.isOver(ctx, err) {
			return found, &Unfinished{After: after}
		}
		if err != nil {
			return nil, err
		}
		if found = append(found, page...); len(found) >= limit || from <= 0 { // nothing was created before 1970, and 0 would be before the first page
			return found, nil
		}
		after = JobAfter{Created: jobs.Time(from)}
		if look.isLate() {
			return found, &Unfinished{After: after}
		}
	}
}

// jobs looks for jobs in the window of so many rows behind a place, and says where the window ends; none: it has all.
func (q *search) jobs(ctx context.Context, after JobAfter, rows, limit int) (page []*jobs.Job, from int64, err error) {
	by, err := q.fewLives(ctx, after, rows)
	if err != nil {
		return nil, 0, err
	}
	from, bounds := int64(none), &where{}
	if after != (JobAfter{}) {
		bounds.add("created <= ? AND (created < ? OR uid < ?)", int64(after.Created), int64(after.Created), after.UID)
	}
	if by == nil {
		upTo := int64(after.Created)
		if after == (JobAfter{}) {
			upTo = math.MaxInt64
		}
		if from, by, err = q.window(ctx, upTo, rows); err != nil {
			return nil, 0, err
		}
		if from != none {
			bounds.add("created >= ?", from)
		}
		if q.parted && by[0].index == q.order {
			by = q.lives() // which has names, too
		}
	}
	text, args := q.rows(by, bounds, limit)
	page, err = q.store.jobs(ctx, text, args...)
	return page, from, err
}

// Transitions is a page of transitions, the newest first, of those before a number; 0 is before
// all. Less than the limit are all that there are, unless the error is ErrUnfinished.
func (s *Store) Transitions(ctx context.Context, log Log, f Filter, before uint64, limit int) (found []*jobs.Transition, err error) {
	q := s.search(log, f, search{table: "transitions", key: "seq", by: "seq", page: "seq DESC", order: s.dialect.primary("transitions"), state: "to_state", time: "at"})
	upTo := int64(math.MaxInt64)
	if before != 0 {
		upTo = int64(before) - 1
	}
	look, ctx, over := s.looksFor(ctx, f)
	defer over()
	for rows := s.window; ; rows = q.wider(rows) {
		page, from, err := q.transitions(ctx, upTo, rows, limit-len(found))
		if err != nil && look.isOver(ctx, err) {
			return found, &Unfinished{Before: uint64(upTo) + 1}
		}
		if err != nil {
			return nil, err
		}
		if found = append(found, page...); len(found) >= limit || from <= 1 {
			return found, nil
		}
		upTo = from - 1
		if look.isLate() {
			return found, &Unfinished{Before: uint64(from)}
		}
	}
}

// transitions looks for transitions in the window of so many rows up to a number, and says where the window ends; none: it
// has all.
func (q *search) transitions(ctx context.Context, upTo int64, rows, limit int) (page []*jobs.Transition, from int64, err error) {
	by, err := q.few(ctx, rows)
	if err != nil {
		return nil, 0, err
	}
	from, bounds := int64(none), &where{}
	if by == nil {
		tail, more, err := q.skip(ctx, &upTo)
		if err != nil || !more {
			return nil, none, err
		}
		if from, by, err = q.window(ctx, upTo, rows); err != nil {
			return nil, 0, err
		}
		if from = max(from, tail); from != none {
			bounds.add("seq >= ?", from)
		}
	}
	bounds.add("seq <= ?", upTo)
	text, args := q.rows(by, bounds, limit)
	page, err = q.store.transitions(ctx, q.log, text, args...)
	return page, from, err
}

// looking is how long a page looks for a part of a name; the zero value is for all others, which take as long as they take.
type looking struct {
	until time.Time
	moved bool // a window was looked at
}

// looksFor begins to look, in a context that ends when there is only time left for what is asked of what was found.
func (s *Store) looksFor(ctx context.Context, f Filter) (*looking, context.Context, context.CancelFunc) {
	if f.Search == "" {
		return &looking{}, ctx, func() {}
	}
	until := f.SearchUntil
	if until.IsZero() {
		until = time.Now().Add(s.looks)
	}
	within, over := context.WithDeadline(ctx, until.Add(searchOverdue))
	return &looking{until: until}, within, over
}

// isLate reports, behind each window, whether this was the last one.
func (l *looking) isLate() bool {
	l.moved = true
	return !l.until.IsZero() && time.Now().After(l.until)
}

// isOver reports whether a window could not be looked at in time, behind others that were.
func (l *looking) isOver(ctx context.Context, err error) bool {
	return l.moved && !l.until.IsZero() && (errors.Is(err, ErrBusy) || errors.Is(ctx.Err(), context.DeadlineExceeded))
}
