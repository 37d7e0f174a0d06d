//go:build linux

package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// usage measures how long it takes to sum up what jobs have used: all there are, and those of a week.
func (b *bench) usage(ctx context.Context, d *database, s *store.Store, log store.Log) error {
	t := figures.Table{
		Title:  fmt.Sprintf("usage by owner with %s, among %d jobs; cold, but for what the row before has read", d.name, b.sizes.rows/steps),
		Header: []any{"", "jobs", "groups", "s", "memory of the sums, MB"},
	}
	defer t.Print(b.out)
	if err := d.forget(); err != nil {
		return err
	}
	const day = 24 * 3_600_000
	end := jobs.Time(firstTime + period)
	for _, q := range []struct {
		name   string
		from   jobs.Time
		filter store.Filter
	}{
		{"one owner, a week", end - 7*day, store.Filter{Owners: []string{"user-7"}}},
		{"one namespace, a week", end - 7*day, store.Filter{Namespace: "large-3"}},
		{"everything, a week", end - 7*day, store.Filter{}},
		{"everything, 30 days", firstTime, store.Filter{}},
	} {
		before := heap()
		began := time.Now()
		sums := jobs.NewUsage(jobs.Span{From: q.from, Until: end})
		if err := s.Lives(ctx, log, q.filter, store.ByOwner, jobs.Span{From: q.from, Until: end}, end, func(jobList []jobs.Lived) error {
			for _, j := range jobList {
				sums.Add(j)
			}
			return nil
		}); err != nil {
			return fmt.Errorf("usage: %s: %w", q.name, err)
		}
		groups, jobCount := sums.Size()
		took := time.Since(began)
		t.Add(q.name, jobCount, groups, took.Seconds(), (heap()-before)/1e6)
		runtime.KeepAlive(sums)
	}
	return nil
}

// heap is what this process uses after a collection, in bytes.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
