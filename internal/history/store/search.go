package store

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/kubecast/kubecast/internal/history"
)

// ErrUnfinished means that a page of what has a part of a name in it has not all that there is: what was looked at took
// too long. What was found by then comes with it.
var ErrUnfinished = errors.New("the search took too long")

const (
	// SearchWithin is how long a page looks for a part of a name. No index finds one, so all is looked at that else fits.
	SearchWithin = 5 * time.Second
	// mostSearched is how many rows one question looks at for that, so that others have their turns between.
	mostSearched = 64_000
)

// jobsByCreation is the order of pages of jobs.
var jobsByCreation = search{table: "jobs", key: "uid", by: "created", page: "created DESC, uid DESC", order: "jobs_created", state: "state", time: "since"}

// Jobs is a page of jobs, the newest first: ordered by creation, then by uid. If there are fewer than the limit, there
// are no more, unless the error is ErrUnfinished.
func (s *Store) Jobs(ctx context.Context, log Log, f Filter, after JobAfter, limit int) (found []*history.Job, err error) {
	q := s.search(log, f, jobsByCreation)
	if len(f.Parents) > 0 {
		q.span = [2]history.Time{} // the indexes by which times lead do not say of what a job is a part
	}
	if f.Until != 0 && (after == JobAfter{} || after.Created >= f.Until) {
		after = JobAfter{Created: f.Until} // a job is created before it comes to its state
	}
	began := time.Now()
	for rows := s.window; ; rows = q.wider(rows) {
		few, err := q.fewLives(ctx, after, rows)
		if err != nil {
			return nil, err
		}
		by, from, bounds := few, int64(none), &where{}
		if after != (JobAfter{}) {
			bounds.add("created <= ? AND (created < ? OR uid < ?)", int64(after.Created), int64(after.Created), after.UID)
		}
		if few == nil {
			upTo := int64(after.Created)
			if after == (JobAfter{}) {
				upTo = math.MaxInt64
			}
			if from, by, err = q.window(ctx, upTo, rows); err != nil {
				return nil, err
			}
			if from != none {
				bounds.add("created >= ?", from)
			}
			if f.Search != "" && by[0].index == q.order {
				by = q.lives() // which has names, too
			}
		}
		text, args := q.rows(by, bounds, limit-len(found))
		page, err := s.jobs(ctx, text, args...)
		if err != nil {
			return nil, err
		}
		if found = append(found, page...); len(found) >= limit || from <= 0 { // nothing was created before 1970, and 0 would be before the first page
			return found, nil
		}
		if f.Search != "" && time.Since(began) > s.looks {
			return found, ErrUnfinished
		}
		after = JobAfter{Created: history.Time(from)}
	}
}

// Transitions is a page of transitions, the newest first, of those before a number; 0 is before
// all. Less than the limit are all that there are, unless the error is ErrUnfinished.
func (s *Store) Transitions(ctx context.Context, log Log, f Filter, before uint64, limit int) (found []*history.Transition, err error) {
	q := s.search(log, f, search{table: "transitions", key: "seq", by: "seq", page: "seq DESC", order: s.dialect.primary("transitions"), state: "to_state", time: "at"})
	upTo := int64(math.MaxInt64)
	if before != 0 {
		upTo = int64(before) - 1
	}
	began := time.Now()
	for rows := s.window; ; rows = q.wider(rows) {
		few, err := q.few(ctx, rows)
		if err != nil {
			return nil, err
		}
		by, from, bounds := few, int64(none), &where{}
		if few == nil {
			tail, more, err := q.skip(ctx, &upTo)
			if err != nil || !more {
				return found, err
			}
			if from, by, err = q.window(ctx, upTo, rows); err != nil {
				return nil, err
			}
			if from = max(from, tail); from != none {
				bounds.add("seq >= ?", from)
			}
		}
		bounds.add("seq <= ?", upTo)
		text, args := q.rows(by, bounds, limit-len(found))
		page, err := s.transitions(ctx, log, text, args...)
		if err != nil {
			return nil, err
		}
		if found = append(found, page...); len(found) >= limit || from == none {
			return found, nil
		}
		if f.Search != "" && time.Since(began) > s.looks {
			return found, ErrUnfinished
		}
		upTo = from - 1
	}
}
