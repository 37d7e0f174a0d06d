//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// used is what a gateway has used for a number of updates.
type used struct {
	cpu    time.Duration
	took   time.Duration
	writes float64
}

// updates measures what updates cost that change no state, beside a gateway without a history.
func (b *bench) updates(ctx context.Context, wanted []string) error {
	results := map[string][]used{}
	var modes []string
	if err := b.each(wanted[:1], func(d *database) error {
		modes = []string{"none", d.name}
		var err error
		results, err = measure.InTurn(b.rounds, modes, func(mode string) (u used, err error) {
			address := mode
			if mode != "none" {
				address = d.address
			}
			return b.updatesOnce(ctx, d, address)
		})
		return err
	}); err != nil {
		return err
	}
	if len(modes) == 0 {
		return nil
	}
	t := figures.Table{
		Title:  fmt.Sprintf("%d updates that change no state, at 10,000/s; %d rounds in turn, medians", b.sizes.updates, b.rounds),
		Header: []any{"history", "gateway's CPU µs/update", "transactions", "s"},
	}
	perUpdate := func(u used) float64 { return figures.Microseconds(u.cpu) / float64(b.sizes.updates) }
	for _, mode := range modes {
		writes := figures.MedianOf(results[mode], func(u used) float64 { return u.writes })
		t.Add(mode, figures.MedianOf(results[mode], perUpdate), writes, figures.MedianOf(results[mode], func(u used) float64 { return u.took.Seconds() }))
		b.expect("transactions of updates that change nothing, with "+mode, writes, 0)
	}
	t.Note("the history's share: %.1f µs an update; beside this, the lease is renewed and the position saved every 3 s",
		figures.MedianOf(results[modes[1]], perUpdate)-figures.MedianOf(results[modes[0]], perUpdate))
	t.Print(b.out)
	return nil
}

func (b *bench) updatesOnce(ctx context.Context, d *database, address string) (u used, err error) {
	r, err := b.start("unchanging", address)
	if err != nil {
		return u, err
	}
	defer r.end()
	read := func() float64 { return 0 }
	if address == d.address {
		if err := d.await(ctx, someJobs); err != nil {
			return u, err
		}
		read = func() float64 {
			n, metricErr := r.metric("kubecast_history_batch_seconds_count")
			if metricErr != nil {
				err = metricErr
			}
			return n
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // not all is of this round
			recording, err := r.metric("kubecast_history_recording")
			if err == nil && recording == 1 {
				break
			}
			if time.Now().After(deadline) {
				return u, fmt.Errorf("nobody records: %w", err)
			}
		}
	}
	before := read()
	cpu, err := process.CPU(r.Pid)
	if err != nil {
		return u, err
	}
	began := time.Now()
	if err := r.source.Call("Emit", source.Emit{Rate: 10_000, Count: b.sizes.updates}, nil); err != nil {
		return u, err
	}
	u.took = time.Since(began)
	time.Sleep(200 * time.Millisecond) // the last of them are still on their way
	after, err := process.CPU(r.Pid)
	if err != nil {
		return u, err
	}
	u.cpu, u.writes = after-cpu, read()-before
	return u, err
}
