//go:build linux

package main

import (
	"fmt"
	"slices"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// stalledSample is a witness's latency alone, and beside clients that do not read.
type stalledSample struct{ alone, beside measure.Sample }

// stalledReach is the target for a witness's latency beside stalled clients, as a multiple of its latency alone.
const stalledReach = 1.1

// stalledBuffer is the receive buffer of clients that stall: small, so that it is full soon.
const stalledBuffer = 16 << 10

// stalled measures whether clients that do not read delay one that does.
func (b *bench) stalled() error {
	size := b.sizes.stalled
	modes := slices.DeleteFunc(slices.Clone(b.modes), func(mode string) bool { return mode == "floor" }) // it would wait for them
	results, err := measure.InTurn(size.rounds, modes, b.stalledOnce)
	if err != nil {
		return err
	}
	t := figures.Table{
		Title: fmt.Sprintf("a witness of %v events/s alone, and beside %d stalled clients; %d rounds, medians", size.rate, size.stalled, size.rounds),
		Header: []any{"", "alone p50 ms", "p99 ms", "missed", "beside p50 ms", "p99 ms", "missed", "p50 beside / alone",
			"p99 beside / alone"},
	}
	of := func(samples []stalledSample, which func(stalledSample) measure.Sample, read func(measure.Sample) float64) float64 {
		return figures.MedianOf(samples, func(s stalledSample) float64 { return read(which(s)) })
	}
	alone := func(s stalledSample) measure.Sample { return s.alone }
	beside := func(s stalledSample) measure.Sample { return s.beside }
	missed := func(s measure.Sample) float64 { return float64(s.Missed()) }
	for _, mode := range modes {
		samples := results[mode]
		if mode == "gateway" {
			for _, s := range samples {
				b.Expect("stalled", "missed by the witness", s.alone.Missed()+s.beside.Missed())
			}
		}
		row := []any{nameOf(mode)}
		for _, which := range []func(stalledSample) measure.Sample{alone, beside} {
			row = append(row, of(samples, which, measure.Latency(0.5)), of(samples, which, measure.Latency(0.99)), int(of(samples, which, missed)))
		}
		var ratios []any
		for _, q := range []float64{0.5, 0.99} {
			more := figures.MedianOf(samples, func(s stalledSample) float64 { return measure.Latency(q)(s.beside) / measure.Latency(q)(s.alone) })
			if of(samples, beside, missed) > 0 {
				ratios = append(ratios, "–")
				continue
			}
			ratios = append(ratios, more)
			if mode == "gateway" {
				t.Reach(fmt.Sprintf("p%g beside / alone", q*100), more, stalledReach)
			}
		}
		t.Rows = append(t.Rows, append(row, ratios...))
	}
	t.Print(b.out)
	return nil
}

func (b *bench) stalledOnce(mode string) (result stalledSample, err error) {
	size := b.sizes.stalled
	// Stalled clients must not be disconnected, or they would not stall any more.
	s, err := b.start(mode, ", writeTimeout: 5m")
	if err != nil {
		return result, err
	}
	defer s.stop()
	if err := b.Open(&s.Server, "witness", 1, s.Live); err != nil {
		return result, err
	}
	defer func() {
		if closing := b.Close("witness"); err == nil {
			err = closing
		}
	}()
	fill := source.Emit{Rate: size.rate, Count: int(size.rate * size.fill.Seconds())}
	if _, err := b.Emit(&s.Server, "witness", 1, source.Emit{Rate: size.rate, Count: fill.Count / 4}); err != nil {
		return result, err
	}
	measured := source.Emit{Rate: size.rate, Count: size.events}
	if result.alone, err = b.Emit(&s.Server, "witness", 1, measured); err != nil {
		return result, err
	}
	target := s.Live
	target.ReceiveBuffer = stalledBuffer
	if err := b.Load.Call("Open", load.Open{Group: "stalled", Clients: size.stalled, Target: target}, nil); err != nil {
		return result, err
	}
	defer func() {
		if closing := b.Close("stalled"); err == nil {
			err = closing
		}
	}()
	if err := b.Load.Call("Pause", "stalled", nil); err != nil {
		return result, err
	}
	if _, err := b.Emit(&s.Server, "witness", 1, fill); err != nil {
		return result, err
	}
	result.beside, err = b.Emit(&s.Server, "witness", 1, measured)
	return result, err
}
