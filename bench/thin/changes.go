//go:build linux

package main

import (
	"fmt"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// sort is how a client is told changes.
type sort struct{ name, query, coding string }

var sorts = []sort{
	{"objects", "", ""},
	{"objects, gzip", "", "gzip"},
	{"objects, zstd", "", "zstd"},
	{"patches", "&deltas=merge-patch", ""},
	{"patches, zstd", "&deltas=merge-patch", "zstd"},
	{"fields", "&fields=" + columns + ",metadata.annotations", ""},
	{"fields, patches", "&deltas=merge-patch&fields=" + columns + ",metadata.annotations", ""},
}

// patches are the sorts of which the costs are close, so that they are measured in turn.
var patches = []sort{sorts[0], {"patches", "&deltas=merge-patch", ""}}

// told measures changes that many clients are told, in each sort, the first of which is what the
// others are compared with.
func (b *bench) told(size rates, sorts []sort, rounds int) error {
	t := figures.Table{
		Title: fmt.Sprintf("%g changes/s × %d clients, %d pods; %d rounds in turn, medians", size.rate, size.clients, b.sizes.pods, rounds),
		Header: []any{"", "CPU µs/change", "× objects", "bytes/change", "× objects", "p50 ms", "p99 ms", "p99.9 ms", "missed", "repeated",
			"client's CPU µs/change", "waited × CPU"},
	}
	s, err := b.start()
	if err != nil {
		return err
	}
	defer s.stop()
	found := map[string][]measure.Sample{}
	for range rounds {
		for _, how := range sorts {
			sample, err := b.toldOnce(s, size, how)
			if err != nil {
				return fmt.Errorf("%s: %w", how.name, err)
			}
			found[how.name] = append(found[how.name], sample)
			b.Expect(how.name, "missed", sample.Missed())
			b.Expect(how.name, "repeated or in disorder", sample.Repeated+sample.Disordered)
		}
	}
	over := func(name string, read func(measure.Sample) float64) float64 {
		return measure.Ratio(found[name], found[sorts[0].name], read)
	}
	for _, how := range sorts {
		samples := found[how.name]
		of := func(read func(measure.Sample) float64) float64 { return figures.MedianOf(samples, read) }
		var missed, repeated uint64
		for _, sample := range samples {
			missed, repeated = missed+sample.Missed(), repeated+sample.Repeated+sample.Disordered
		}
		t.Add(how.name, of(measure.Sample.PerServerCPU), over(how.name, measure.Sample.PerServerCPU), of(measure.Sample.PerBytes),
			over(how.name, measure.Sample.PerBytes), of(measure.Latency(0.5)), of(measure.Latency(0.99)), of(measure.Latency(0.999)), missed, repeated,
			of(measure.Sample.PerClientCPU), of(measure.Sample.Contention))
	}
	t.Note("latency from the change in the API server until the client has read it, decoded; clients that ask for a coding have a goroutine each")
	for _, target := range []struct {
		name       string
		cpu, bytes float64
	}{{"objects, zstd", 1.5, 1. / 3}, {"patches", 1.05, 0.5}, {"patches, zstd", 1.5, 0.1}} {
		if len(found[target.name]) > 0 {
			t.Reach(target.name+": CPU, × objects", over(target.name, measure.Sample.PerServerCPU), target.cpu)
			t.Reach(target.name+": bytes, × objects", over(target.name, measure.Sample.PerBytes), target.bytes)
		}
	}
	t.Print(b.out)
	return nil
}

func (b *bench) toldOnce(s *server, size rates, how sort) (sample measure.Sample, err error) {
	const group = "changes"
	if err := b.Open(&s.Server, group, size.clients, s.target(livePath+how.query, how.coding)); err != nil {
		return sample, err
	}
	defer func() {
		if closing := b.Close(group); err == nil {
			err = closing
		}
	}()
	if _, err := b.Emit(&s.Server, group, size.clients, source.Emit{Rate: size.rate, Count: int(size.rate)}); err != nil {
		return sample, err
	}
	defer b.profiled(s, "changes "+how.name, time.Duration(float64(size.changes)/size.rate*float64(time.Second)))()
	return b.Emit(&s.Server, group, size.clients, source.Emit{Rate: size.rate, Count: size.changes})
}
