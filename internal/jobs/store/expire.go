package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/kubecast/kubecast/internal/jobs"
)

// Removed is what one call removed.
type Removed struct {
	Jobs, Transitions, Runs int
	More                    bool // there may be more to remove
}

// runsAtOnceRemoved is how many runs are removed in one transaction: a job may have had any number of pods.
const runsAtOnceRemoved = 1000

// Expire removes jobs that were deleted from their cluster before a time, at most so many, with
// their transitions and runs, in one transaction. If these have many runs, it only removes some of
// those, and the rest with the next calls. In a log of pods it removes runs of pods that were
// removed before that time, and whose job was never known.
//
// A job that is still in the cluster stays, however long ago it has ended, since its recorder needs to know what was
// recorded of it.
func (s *Store) Expire(ctx context.Context, log Log, before jobs.Time, limit int) (removed Removed, err error) {
	defer func() {
		if err != nil {
			removed, err = Removed{}, fmt.Errorf("expire: %w", err)
		}
	}()
	if log.Resource == RunsResource {
		pods, err := s.texts(ctx, "SELECT pod FROM runs WHERE log = ? AND gone > 0 AND gone < ? LIMIT ?", log.ID, int64(before), runsAtOnceRemoved)
		if err != nil || len(pods) == 0 {
			return removed, err
		}
		removed.More = len(pods) == runsAtOnceRemoved
		err = s.Transact(ctx, func(tx *Tx) (err error) {
			removed.Runs, err = s.removeRuns(ctx, tx, log.ID, pods) // nobody was told of them, so no position becomes too old
			return err
		})
		return removed, err
	}
	uids, err := s.texts(ctx, `SELECT uid FROM jobs WHERE log = ? AND deleted > 0 AND deleted < ? ORDER BY deleted LIMIT ?`, log.ID, int64(before), limit)
	if err == nil && len(uids) == 0 {
		err = s.expireBudgets(ctx, log)
	}
	if err != nil || len(uids) == 0 {
		return removed, err
	}
	runs, err := s.runsOf(ctx, log, uids)
	if err != nil {
		return removed, err
	}
	err = s.Transact(ctx, func(tx *Tx) (err error) {
		if err = s.expireRuns(ctx, tx, runs); err != nil {
			return err
		}
		if removed.Runs = len(runs); removed.Runs < runsAtOnceRemoved {
			removed.Jobs, removed.Transitions, err = s.expire(ctx, tx, log, uids)
		}
		return err
	})
	removed.More = len(runs) == runsAtOnceRemoved || len(uids) == limit
	return removed, err
}

// expire removes jobs that were deleted, of which nothing is written any more.
func (s *Store) expire(ctx context.Context, tx *Tx, log Log, uids []string) (jobs, transitions int, err error) {
	w := &where{}
	w.add("log = ?", log.ID)
	oneOf(w, "uid", uids)
	var highest sql.NullInt64
	if err := tx.QueryRow(ctx, "SELECT MAX(seq) FROM transitions "+w.String(), w.args...).Scan(&highest); err != nil {
		return 0, 0, err
	}
	if jobs, err = deleteFrom(ctx, tx, "jobs", w); err != nil {
		return 0, 0, err
	}
	if transitions, err = deleteFrom(ctx, tx, "transitions", w); err != nil {
		return 0, 0, err
	}
	for _, table := range []string{"runs", "totals"} { // of runs that were written after those that are removed were looked for: pods may outlive their job
		if _, err = deleteFrom(ctx, tx, table, w); err != nil {
			return 0, 0, err
		}
	}
	if _, err = deleteFrom(ctx, tx, "kept", w); err != nil { // after the jobs: who keeps something of one holds its row
		return 0, 0, err
	}
	_, err = tx.Exec(ctx, `UPDATE logs SET expired = ? WHERE id = ? AND expired < ?`, highest.Int64, log.ID, highest.Int64)
	return jobs, transitions, err
}

// removable is a run that is to be removed.
type removable struct {
	log       int64 // in which it is
	pod       string
	pods, seq int64 // the log that numbers it
}

// runsOf are runs of jobs: all of them, unless there are more than are removed at once.
func (s *Store) runsOf(ctx context.Context, log Log, uids []string) ([]removable, error) {
	w := &where{}
	w.add("log = ?", log.ID)
	oneOf(w, "uid", uids)
	return s.someRuns(ctx, w)
}

// someRuns are runs that are to be removed, as many as are removed at once.
func (s *Store) someRuns(ctx context.Context, w *where) (runs []removable, err error) {
	err = s.Each(ctx, func(scan Scan) error {
		var r removable
		err := scan(&r.log, &r.pod, &r.pods, &r.seq)
		runs = append(runs, r)
		return err
	}, "SELECT log, pod, pods, seq FROM runs "+w.String()+" LIMIT ?", append(w.args, runsAtOnceRemoved)...)
	return runs, err
}

// expireRuns removes runs. The logs of pods come first, as they do for those who write there: of
// two that have the same locks in another order, one would be undone.
func (s *Store) expireRuns(ctx context.Context, tx *Tx, runs []removable) error {
	highest, in := map[int64]int64{}, map[int64][]string{}
	for _, r := range runs {
		highest[r.pods], in[r.log] = max(highest[r.pods], r.seq), append(in[r.log], r.pod)
	}
	for pods, seq := range highest {
		if _, err := tx.Exec(ctx, `UPDATE logs SET expired = ? WHERE id = ? AND expired < ?`, seq, pods, seq); err != nil {
			return err
		}
	}
	for log, pods := range in {
		if _, err := s.removeRuns(ctx, tx, log, pods); err != nil {
			return err
		}
	}
	return nil
}

// removeRuns removes the rows of pods.
func (s *Store) removeRuns(ctx context.Context, tx *Tx, log int64, pods []string) (int, error) {
	w := &where{}
	w.add("log = ?", log)
	oneOf(w, "pod", pods)
	return deleteFrom(ctx, tx, "runs", w)
}

// texts are what a question finds in its only column.
func (s *Store) texts(ctx context.Context, query string, args ...any) (found []string, err error) {
	err = s.Each(ctx, func(scan Scan) error {
		var text string
		err := scan(&text)
		found = append(found, text)
		return err
	}, query, args...)
	return found, err
}
