package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/kubecast/kubecast/internal/jobs"
)

// skip passes over transitions outside the span of time. It lowers upTo to the end of the first block that has some
// within the span, or reports that there is none. Transitions that are in no whole block yet, from tail on, are looked
// at first.
func (q *search) skip(ctx context.Context, upTo *int64) (tail int64, more bool, err error) {
	if q.span == [2]jobs.Time{} {
		return none, true, nil
	}
	whole := int64(q.log.Seq / blockSize)
	if *upTo > whole*blockSize {
		return whole*blockSize + 1, true, nil
	}
	from, before := q.times()
	var block int64
	err = q.store.QueryRow(ctx, "SELECT block FROM spans WHERE log = ? AND block <= ? AND least < ? AND most >= ? ORDER BY block DESC LIMIT 1",
		q.log.ID, (*upTo-1)/blockSize, before, from).Scan(&block)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("look for a page: %w", err)
	}
	*upTo = min(*upTo, (block+1)*blockSize)
	return none, true, nil
}

// blockSize is the number of transitions whose times one row of spans covers. The first block has the numbers from 1 to
// blockSize.
const blockSize = 1000

// block writes the spans of time of the blocks that a batch completes. So pages of the past need not look through what
// came after.
func (s *Store) block(ctx context.Context, tx *Tx, log Log, to uint64) error {
	for block := log.Seq / blockSize; block < to/blockSize; block++ {
		var least, most sql.NullInt64
		if err := tx.QueryRow(ctx, "SELECT MIN(at), MAX(at) FROM transitions WHERE log = ? AND seq > ? AND seq <= ?",
			log.ID, int64(block*blockSize), int64((block+1)*blockSize)).Scan(&least, &most); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO spans (log, block, least, most) VALUES (?, ?, ?, ?)", log.ID, int64(block), least.Int64, most.Int64); err != nil {
			return err
		}
	}
	return nil
}
