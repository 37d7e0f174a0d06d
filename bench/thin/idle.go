//go:build linux

package main

import (
	"fmt"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// idle measures the memory of streams that have been told some changes and wait for the next.
func (b *bench) idle() error {
	t := figures.Table{
		Title:  fmt.Sprintf("%d idle streams, %d pods", b.sizes.idle, b.sizes.pods),
		Header: []any{"", "KiB/stream", "MiB without", "CPU %"},
	}
	for _, coding := range codings {
		each, base, cpu, err := b.idleOnce(coding)
		if err != nil {
			return fmt.Errorf("%s: %w", codingName(coding), err)
		}
		t.Add(codingName(coding), each, base, cpu)
		if coding == "zstd" {
			t.Reach("KiB per idle stream, zstd", each, 16)
		}
	}
	t.Note("resident memory of the gateway %s after ten changes that all were told, less that before the first stream; CPU of the second half of that time", b.settle)
	t.Print(b.out)
	return nil
}

func (b *bench) idleOnce(coding string) (each, base, cpu float64, err error) {
	s, err := b.start()
	if err != nil {
		return 0, 0, 0, err
	}
	defer s.stop()
	target := s.target(livePath, coding)
	target.Raw = true
	const first, group = "first", "idle"
	// The first connections cause costs that occur only once, and do not count.
	if err := b.Load.Call("Open", load.Open{Group: first, Clients: 100, Target: target}, nil); err != nil {
		return 0, 0, 0, err
	}
	if err := s.Source.Call("Emit", source.Emit{Rate: 20, Count: 10}, nil); err != nil {
		return 0, 0, 0, err
	}
	if err := b.Close(first); err != nil {
		return 0, 0, 0, err
	}
	time.Sleep(time.Second)
	before, err := process.ReadMemory(s.Pid)
	if err != nil {
		return 0, 0, 0, err
	}
	if err := b.Load.Call("Open", load.Open{Group: group, Clients: b.sizes.idle, Target: target}, nil); err != nil {
		return 0, 0, 0, err
	}
	defer func() {
		if closing := b.Close(group); err == nil {
			err = closing
		}
	}()
	if err := s.Source.Call("Emit", source.Emit{Rate: 5, Count: 10}, nil); err != nil {
		return 0, 0, 0, err
	}
	time.Sleep(b.settle / 2)
	half, err := process.CPU(s.Pid)
	if err != nil {
		return 0, 0, 0, err
	}
	time.Sleep(b.settle / 2)
	used, err := process.CPU(s.Pid)
	if err != nil {
		return 0, 0, 0, err
	}
	after, err := process.ReadMemory(s.Pid)
	if err != nil {
		return 0, 0, 0, err
	}
	var stats load.Stats
	if err := b.Load.Call("Stats", group, &stats); err != nil {
		return 0, 0, 0, err
	}
	if stats.Open != b.sizes.idle {
		return 0, 0, 0, fmt.Errorf("%d of %d streams are left", stats.Open, b.sizes.idle)
	}
	return float64(after.Now-before.Now) / float64(b.sizes.idle) / 1024, mebibytes(before.Now), 100 * float64(used-half) / float64(b.settle/2), nil
}
