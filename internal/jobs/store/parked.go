package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
)

// mostParked is of how many pods that are gone the recorder learns again that their jobs are not known.
const mostParked = 10_000

// parkedRuns are runs of pods that are gone and whose jobs are not known, the newest. Whoever makes
// pods can invent jobs, so where there are too many, each namespace has its newest, and those that
// have most of them give way.
func (s *Store) parkedRuns(ctx context.Context, pods Log) ([]*Run, error) {
	newest, err := s.runs(ctx, pods, "runs"+s.dialect.use("runs_seq")+" WHERE log = ? AND gone > 0 ORDER BY seq DESC LIMIT ?", pods.ID, s.parked+1)
	if err != nil || len(newest) <= s.parked {
		return newest, err
	}
	counts, err := s.countParked(ctx, pods)
	if err != nil {
		return nil, fmt.Errorf("count runs: %w", err)
	}
	var found []*Run
	for i, of := range counts {
		share := (s.parked - len(found)) / (len(counts) - i)
		some, err := s.runs(ctx, pods, "runs"+s.dialect.use("runs_namespace")+" WHERE log = ? AND namespace = ? AND gone > 0 ORDER BY created DESC, pod DESC LIMIT ?", pods.ID, of.namespace, min(of.runs, share))
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

// parkedIn is how many parked runs there are of a namespace, or the bound if there are more.
type parkedIn struct {
	namespace string
	runs      int
}

// countParked counts them, those of the namespace that has fewest first. It goes from one namespace
// to the next in an index: of one there may be ever so many.
func (s *Store) countParked(ctx context.Context, pods Log) (counts []parkedIn, err error) {
	index := "runs" + s.dialect.use("runs_namespace")
	for last := (sql.NullString{}); ; {
		if err := s.QueryRow(ctx, "SELECT MIN(namespace) FROM "+index+" WHERE log = ? AND namespace > ?", pods.ID, last.String).Scan(&last); err != nil {
			return nil, err
		}
		if !last.Valid {
			break
		}
		of := parkedIn{namespace: last.String}
		if err := s.QueryRow(ctx, "SELECT COUNT(*) FROM (SELECT pod FROM "+index+" WHERE log = ? AND namespace = ? AND gone > 0 LIMIT ?) AS parked", pods.ID, of.namespace, s.parked).Scan(&of.runs); err != nil {
			return nil, err
		}
		counts = append(counts, of)
	}
	slices.SortFunc(counts, func(a, b parkedIn) int {
		return cmp.Or(cmp.Compare(a.runs, b.runs), cmp.Compare(a.namespace, b.namespace))
	})
	return counts, nil
}
