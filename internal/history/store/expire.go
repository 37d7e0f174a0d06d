package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/kubecast/kubecast/internal/history"
)

// Expire removes jobs that were deleted from their cluster before a time, at most so many, with their transitions, in
// one transaction. It returns how many of each it has removed. If these are fewer jobs than the limit, there are no
// more.
//
// A job that is still in the cluster stays, however long ago it has ended, since its recorder needs to know what was
// recorded of it.
func (s *Store) Expire(ctx context.Context, log Log, before history.Time, limit int) (jobs, transitions int, err error) {
	uids, err := s.uids(ctx, `SELECT uid FROM jobs WHERE log = ? AND deleted > 0 AND deleted < ? ORDER BY deleted LIMIT ?`, log.ID, int64(before), limit)
	if err == nil && len(uids) > 0 {
		err = again(ctx, func() error {
			return s.inTransaction(ctx, func(ctx context.Context, tx *sql.Tx) error {
				jobs, transitions, err = s.expire(ctx, tx, log, uids)
				return err
			})
		})
	}
	if err != nil {
		return 0, 0, fmt.Errorf("expire: %w", err)
	}
	return jobs, transitions, nil
}

// expire removes jobs that were deleted, of which nothing is written any more.
func (s *Store) expire(ctx context.Context, tx *sql.Tx, log Log, uids []string) (jobs, transitions int, err error) {
	w := &where{}
	w.add("log = ?", log.ID)
	oneOf(w, "uid", uids)
	var highest sql.NullInt64
	if err := tx.QueryRowContext(ctx, s.dialect.bind("SELECT MAX(seq) FROM transitions "+w.String()), w.args...).Scan(&highest); err != nil {
		return 0, 0, err
	}
	if jobs, err = s.delete(ctx, tx, "jobs", w); err != nil {
		return 0, 0, err
	}
	if transitions, err = s.delete(ctx, tx, "transitions", w); err != nil {
		return 0, 0, err
	}
	_, err = s.exec(ctx, tx, `UPDATE logs SET expired = ? WHERE id = ? AND expired < ?`, highest.Int64, log.ID, highest.Int64)
	return jobs, transitions, err
}

func (s *Store) uids(ctx context.Context, query string, args ...any) (uids []string, err error) {
	err = s.Each(ctx, func(scan Scan) error {
		var uid string
		err := scan(&uid)
		uids = append(uids, uid)
		return err
	}, query, args...)
	return uids, err
}
