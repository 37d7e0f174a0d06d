//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/measure"
)

// started is what was seen of a start.
type started struct {
	ready  time.Duration
	heap   float64 // bytes in use after a collection
	writes float64 // rows
}

// restarts measures how long a gateway takes from its start until it is ready, and what memory it
// uses, with and without a history of many finished jobs.
func (b *bench) restarts(ctx context.Context, wanted []string) error {
	many := sources[b.sizes.finished][0].Objects
	return b.each(wanted, func(d *database) error {
		r, err := b.start(b.sizes.finished, d.address)
		if err != nil {
			return err
		}
		defer r.end()
		if err := d.await(ctx, int64(many)); err != nil {
			return err
		}
		r.Stop()
		modes := []string{"none", d.name}
		results, err := measure.InTurn(b.rounds, modes, func(mode string) (s started, err error) {
			address := mode
			if mode != "none" {
				address = d.address
			}
			return b.restart(r, address, many)
		})
		r.Gateway = nil // the last one has ended
		if err != nil {
			return err
		}
		t := figures.Table{
			Title:  fmt.Sprintf("a restart with %d finished jobs; %d rounds in turn, medians", many, b.rounds),
			Header: []any{"history", "ms until ready", "heap MB", "rows written"},
		}
		heap := func(s started) float64 { return s.heap / 1e6 }
		for _, mode := range modes {
			writes := figures.MedianOf(results[mode], func(s started) float64 { return s.writes })
			t.Add(mode, figures.MedianOf(results[mode], func(s started) float64 { return figures.Milliseconds(s.ready) }), figures.MedianOf(results[mode], heap), writes)
			b.expect("rows written by a restart with "+mode, writes, 0)
		}
		t.Reach("start, by one without a history", measure.Ratio(results[d.name], results["none"], func(s started) float64 { return s.ready.Seconds() }), 1.1)
		t.Note("memory for each job: %.0f bytes, beside its object in the cache",
			(figures.MedianOf(results[d.name], heap)-figures.MedianOf(results["none"], heap))*1e6/float64(many))
		t.Print(b.out)
		return nil
	})
}

func (b *bench) restart(r *recording, address string, many int) (s started, err error) {
	began := time.Now()
	if err := r.again(b.binary, address); err != nil {
		return s, err
	}
	defer r.Stop()
	s.ready = time.Since(began)
	if address != "none" {
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			known, err := r.metric("kubecast_history_living_jobs")
			if err == nil && known == float64(many) {
				break
			}
			if time.Now().After(deadline) {
				return s, fmt.Errorf("%g of %d jobs are known: %w", known, many, err)
			}
		}
	}
	time.Sleep(time.Second) // to write what it should not
	if s.writes, err = r.metric("kubecast_history_rows_total"); err != nil {
		return s, err
	}
	for range 2 { // what finalizers hold takes a second collection
		if err := r.Save("/debug/pprof/heap?gc=1", r.dir+"/heap"); err != nil {
			return s, err
		}
	}
	s.heap, err = r.metric("go_memstats_heap_alloc_bytes")
	return s, err
}
