package store

import (
	"context"
	"fmt"
	"math"

	"github.com/kubecast/kubecast/internal/jobs"
)

// Unused is a log that nobody has recorded for a time.
type Unused struct{ Log }

// unused is the condition that nobody has held, released or written to a log since a time. Its two parameters are both
// that time.
const unused = "lease < ? AND moved < ?"

// Unused are the logs that nobody has recorded since a time.
func (s *Store) Unused(ctx context.Context, since jobs.Time) (found []Unused, err error) {
	err = s.Each(ctx, func(scan Scan) error {
		var u Unused
		err := scan(&u.ID, &u.Cluster, &u.Resource, &u.People)
		found = append(found, u)
		return err
	}, "SELECT id, cluster, resource, name FROM logs WHERE "+unused, int64(since), int64(since))
	if err != nil {
		return nil, fmt.Errorf("find unused logs: %w", err)
	}
	return found, nil
}

// Forget removes jobs of a log that nobody has recorded since a time, at most so many, with their
// transitions and runs, in one transaction; of jobs with many runs only some of those. Of a log of
// pods it removes all runs, whose jobs stay. If there is no more, the log itself is gone, too. One
// that is recorded again stays as it is, and so it is as if it were gone.
func (s *Store) Forget(ctx context.Context, log Log, since jobs.Time, limit int) (removed Removed, err error) {
	defer func() {
		if err != nil {
			removed, err = Removed{}, fmt.Errorf("forget a log: %w", err)
		}
	}()
	uids, err := s.texts(ctx, "SELECT uid FROM jobs WHERE log = ? LIMIT ?", log.ID, limit)
	if err != nil {
		return removed, err
	}
	runs, err := s.runsToForget(ctx, log, uids)
	if err != nil {
		return removed, err
	}
	err = s.Transact(ctx, func(tx *Tx) error {
		removed, err = s.forget(ctx, tx, log, since, uids, runs, len(uids) < limit)
		return err
	})
	return removed, err
}

// runsToForget are runs of jobs; of a log of pods all that it numbers, since one that comes after
// it gives the same numbers again.
func (s *Store) runsToForget(ctx context.Context, log Log, uids []string) ([]removable, error) {
	if log.Resource != RunsResource {
		return s.runsOf(ctx, log, uids)
	}
	w := &where{}
	w.add("pods = ?", log.ID)
	return s.someRuns(ctx, w)
}

// forget removes jobs of a log, and if these are its last, the log.
func (s *Store) forget(ctx context.Context, tx *Tx, log Log, since jobs.Time, uids []string, runs []removable, last bool) (removed Removed, err error) {
	// A recorder that takes the log waits for the end of this transaction, or comes before it. Of
	// no job it is known from now on that it had no runs.
	n, err := tx.Exec(ctx, "UPDATE logs SET holder = '', whole_since = ? WHERE id = ? AND "+unused, int64(math.MaxInt64), log.ID, int64(since), int64(since))
	if err != nil || n == 0 {
		return removed, err
	}
	if log.Resource == RunsResource { // whose jobs stay
		if err := s.countRemoved(ctx, tx, log, runs); err != nil {
			return removed, err
		}
	}
	if err := s.expireRuns(ctx, tx, runs); err != nil {
		return removed, err
	}
	if removed.Runs = len(runs); removed.Runs == runsAtOnceRemoved {
		removed.More = true
		return removed, nil
	}
	if removed.More = !last; len(uids) > 0 {
		w := &where{}
		w.add("log = ?", log.ID)
		oneOf(w, "uid", uids)
		if removed.Jobs, err = deleteFrom(ctx, tx, "jobs", w); err != nil {
			return removed, err
		}
		if removed.Transitions, err = deleteFrom(ctx, tx, "transitions", w); err != nil {
			return removed, err
		}
		if _, err = deleteFrom(ctx, tx, "kept", w); err != nil {
			return removed, err
		}
		if _, err = deleteFrom(ctx, tx, "totals", w); err != nil {
			return removed, err
		}
	}
	if last {
		for _, table := range []string{"transitions", "jobs", "runs", "kept", "kept_budgets", "totals", "spans"} { // but for the last there should be none
			w := &where{}
			w.add("log = ?", log.ID)
			if _, err := deleteFrom(ctx, tx, table, w); err != nil {
				return removed, err
			}
		}
		if _, err := tx.Exec(ctx, "DELETE FROM logs WHERE id = ?", log.ID); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// deleteFrom removes rows of a table, and returns how many.
func deleteFrom(ctx context.Context, tx *Tx, table string, w *where) (int, error) {
	n, err := tx.Exec(ctx, "DELETE FROM "+table+" "+w.String(), w.args...)
	return int(n), err
}
