package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/kubecast/kubecast/internal/history"
)

// Unused is a log that nobody has recorded for a time.
type Unused struct{ Log }

// unused is the condition that nobody has held, released or written to a log since a time. Its two parameters are both
// that time.
const unused = "lease < ? AND moved < ?"

// Unused are the logs that nobody has recorded since a time.
func (s *Store) Unused(ctx context.Context, since history.Time) (found []Unused, err error) {
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

// Forget removes jobs of a log that nobody has recorded since a time, at most so many, with their transitions, in one transaction. Less than the limit
// mean that the log itself is gone, too. One that is recorded again stays as it is, and so it is as if it were gone.
func (s *Store) Forget(ctx context.Context, log Log, since history.Time, limit int) (jobs, transitions int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("forget a log: %w", err)
		}
	}()
	uids, err := s.uids(ctx, "SELECT uid FROM jobs WHERE log = ? LIMIT ?", log.ID, limit)
	if err != nil {
		return 0, 0, err
	}
	err = again(ctx, func() error {
		return s.inTransaction(ctx, func(ctx context.Context, tx *sql.Tx) error {
			jobs, transitions, err = s.forget(ctx, tx, log, since, uids, len(uids) < limit)
			return err
		})
	})
	return jobs, transitions, err
}

// forget removes jobs of a log, and if these are its last, the log.
func (s *Store) forget(ctx context.Context, tx *sql.Tx, log Log, since history.Time, uids []string, last bool) (jobs, transitions int, err error) {
	// A recorder that takes the log waits for the end of this transaction, or comes before it.
	result, err := s.exec(ctx, tx, "UPDATE logs SET holder = '' WHERE id = ? AND "+unused, log.ID, int64(since), int64(since))
	if err != nil {
		return 0, 0, err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return 0, 0, err
	}
	if len(uids) > 0 {
		w := &where{}
		w.add("log = ?", log.ID)
		oneOf(w, "uid", uids)
		if jobs, err = s.delete(ctx, tx, "jobs", w); err != nil {
			return 0, 0, err
		}
		if transitions, err = s.delete(ctx, tx, "transitions", w); err != nil {
			return 0, 0, err
		}
	}
	if last {
		for _, table := range []string{"transitions", "jobs", "spans"} { // of the first two there should be none
			w := &where{}
			w.add("log = ?", log.ID)
			if _, err := s.delete(ctx, tx, table, w); err != nil {
				return 0, 0, err
			}
		}
		if _, err := s.exec(ctx, tx, "DELETE FROM logs WHERE id = ?", log.ID); err != nil {
			return 0, 0, err
		}
	}
	return jobs, transitions, nil
}

func (s *Store) delete(ctx context.Context, tx *sql.Tx, table string, w *where) (int, error) {
	result, err := s.exec(ctx, tx, "DELETE FROM "+table+" "+w.String(), w.args...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}
