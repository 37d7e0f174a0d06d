package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/kubecast/kubecast/internal/history"
)

// Expire removes jobs that were deleted from their cluster before a time, at most so many, with their transitions, in one
// transaction. It gives how many of each; less jobs than the limit mean that there are no more.
//
// What still is in the cluster stays, however long it has ended: its recorder needs to know that it was told.
func (s *Store) Expire(ctx context.Context, log Log, before history.Time, limit int) (jobs, transitions int, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, 0, fmt.Errorf("expire: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing to do where it was committed
	uids, err := s.expired(ctx, tx, log, before, limit)
	if err != nil || len(uids) == 0 {
		return 0, 0, err
	}
	w := &where{}
	w.add("log = ?", log.ID)
	oneOf(w, "uid", uids)
	var highest sql.NullInt64
	if err := tx.QueryRowContext(ctx, s.dialect.bind("SELECT MAX(seq) FROM transitions "+w.String()), w.args...).Scan(&highest); err != nil {
		return 0, 0, fmt.Errorf("expire: %w", err)
	}
	var removed [2]int
	for i, table := range []string{"jobs", "transitions"} {
		result, err := s.exec(ctx, tx, "DELETE FROM "+table+" "+w.String(), w.args...)
		if err != nil {
			return 0, 0, fmt.Errorf("expire: %w", err)
		}
		n, err := result.RowsAffected()
		if err != nil {
			return 0, 0, fmt.Errorf("expire: %w", err)
		}
		removed[i] = int(n)
	}
	if _, err := s.exec(ctx, tx, `UPDATE logs SET expired = ? WHERE id = ? AND expired < ?`, highest.Int64, log.ID, highest.Int64); err != nil {
		return 0, 0, fmt.Errorf("expire: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return 0, 0, fmt.Errorf("expire: %w", err)
	}
	return removed[0], removed[1], nil
}

func (s *Store) expired(ctx context.Context, tx *sql.Tx, log Log, before history.Time, limit int) (uids []string, err error) {
	rows, err := tx.QueryContext(ctx, s.dialect.bind(`SELECT uid FROM jobs WHERE log = ? AND deleted > 0 AND deleted < ? ORDER BY deleted LIMIT ?`), log.ID, int64(before), limit)
	if err != nil {
		return nil, fmt.Errorf("expire: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var uid string
		if err := rows.Scan(&uid); err != nil {
			return nil, fmt.Errorf("expire: %w", err)
		}
		uids = append(uids, uid)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("expire: %w", err)
	}
	return uids, nil
}
