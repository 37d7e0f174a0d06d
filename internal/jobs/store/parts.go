package store

import (
	"context"
	"fmt"
)

// KindsOfParts are the kinds of the jobs of a cluster that are parts of jobs with these uids.
func (s *Store) KindsOfParts(ctx context.Context, cluster string, parents []string) (resources []string, err error) {
	if len(parents) == 0 {
		return nil, nil
	}
	w := &where{}
	oneOf(w, "parent_uid", parents)
	w.add("log IN (SELECT id FROM logs WHERE cluster = ?)", cluster)
	if resources, err = s.texts(ctx, "SELECT resource FROM logs WHERE id IN (SELECT DISTINCT log FROM jobs"+s.dialect.use("jobs_parent")+" "+w.String()+") ORDER BY resource", w.args...); err != nil {
		return nil, fmt.Errorf("look for parts: %w", err)
	}
	return resources, nil
}

// Parts counts the jobs of a log that a filter finds by what they are parts of. The filter has to
// say that: Parents. Its times do not count.
func (s *Store) Parts(ctx context.Context, log Log, f Filter) (map[string]int, error) {
	f.Since, f.Until = 0, 0
	found := map[string]int{}
	w := s.where(f, log, "jobs", "state", "")
	if err := s.Each(ctx, func(scan Scan) error {
		var parent string
		var n int
		err := scan(&parent, &n)
		found[parent] = n
		return err
	}, "SELECT parent_uid, COUNT(*) FROM jobs"+s.dialect.use("jobs_parent")+" "+w.String()+" GROUP BY parent_uid", w.args...); err != nil {
		return nil, fmt.Errorf("count parts: %w", err)
	}
	return found, nil
}
