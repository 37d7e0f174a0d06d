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
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, 0, fmt.Errorf("expire: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing to do where it was committed
	uids, err := s.uids(ctx, tx, `SELECT uid FROM jobs WHERE log = ? AND deleted > 0 AND deleted < ? ORDER BY deleted LIMIT ?`, log.ID, int64(before), limit)
	if err != nil {
		return 0, 0, fmt.Errorf("expire: %w", err)
	}
	if len(uids) == 0 {
		return 0, 0, nil
	}
	w := &where{}
	w.add("log = ?", log.ID)
	oneOf(w, "uid", uids)
	var highest sql.NullInt64
	if err := tx.QueryRowContext(ctx, s.dialect.bind("SELECT MAX(seq) FROM transitions "+w.String()), w.args...).Scan(&highest); err != nil {
		return 0, 0, fmt.Errorf("expire: %w", err)
	}
	if jobs, err = s.delete(ctx, tx, "jobs", w); err != nil {
		return 0, 0, fmt.Errorf("expire: %w", err)
	}
	if transitions, err = s.delete(ctx, tx, "transitions", w); err != nil {
		return 0, 0, fmt.Errorf("expire: %w", err)
	}
	if _, err := s.exec(ctx, tx, `UPDATE logs SET expired = ? WHERE id = ? AND expired < ?`, highest.Int64, log.ID, highest.Int64); err != nil {
		return 0, 0, fmt.Errorf("expire: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return 0, 0, fmt.Errorf("expire: %w", err)
	}
	return jobs, transitions, nil
}

func (s *Store) uids(ctx context.Context, tx *sql.Tx, query string, args ...any) (uids []string, err error) {
	rows, err := tx.QueryContext(ctx, s.dialect.bind(query), args...)
	err = scanEach(rows, err, func(scan Scan) error {
		var uid string
		err := scan(&uid)
		uids = append(uids, uid)
		return err
	})
	return uids, err
}
