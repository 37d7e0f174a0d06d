//go:build linux

package main

import (
	"fmt"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// stormSample is what happened to clients that all came back at once.
type stormSample struct {
	load.Stats
	live   time.Duration // from when the gateway was ready until the last client was live
	missed uint64
	memory process.Memory
	cpu    time.Duration
}

// storm kills a gateway and starts it again, and makes all clients come back within a second: once with their
// positions, and once without, when each takes a snapshot.
func (b *bench) storm() error {
	size := b.sizes.storm
	t := figures.Table{
		Title: fmt.Sprintf("%d clients come back within %s after a gateway was killed and started again; %d objects of %d bytes",
			size.clients, size.within, apiObjects, objectSize),
		Header: []any{"", "all live s", "p50 ms", "p99 ms", "cut", "snapshots", "resets", "missed", "repeated", "peak MiB", "CPU s", "MB sent"},
	}
	for _, resume := range []bool{true, false} {
		name := "without positions"
		if resume {
			name = "with positions"
		}
		s, err := b.stormOnce(resume)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		var missed any = "–"
		if resume {
			missed = s.missed
		}
		t.Add(name, s.live.Seconds(), figures.Milliseconds(s.LiveAfter.Quantile(0.5)), figures.Milliseconds(s.LiveAfter.Quantile(0.99)),
			s.Lost, s.Synced, s.Resets, missed, s.Repeated, mebibytes(s.memory.Peak), s.cpu.Seconds(), float64(s.Bytes)/1e6)
		if resume {
			if s.Lost == 0 {
				b.Expect("storm", "missed by clients with positions", s.missed)
			}
			b.Expect("storm", "repeated to clients with positions", s.Repeated)
			b.Expect("storm", "snapshots of clients with positions", s.Synced+s.Resets)
			t.Reach("snapshots of clients with positions", float64(s.Synced+s.Resets), 0)
		}
	}
	t.Note("cut: clients that were too slow for the gateway's write deadline while all of them read from two processors; they are not waited for")
	t.Note("changes go on at 20/s; a client is live when it has got one that was made after it had connected; p50, p99 from when it connected")
	t.Print(b.out)
	return nil
}

func (b *bench) stormOnce(resume bool) (result stormSample, err error) {
	size := b.sizes.storm
	s, err := b.start("gateway", "")
	if err != nil {
		return result, err
	}
	defer s.stop()
	const group = "storm"
	if err := b.Open(&s.Server, group, size.clients, s.Live); err != nil {
		return result, err
	}
	defer func() {
		if closing := b.Close(group); err == nil {
			err = closing
		}
	}()
	first, err := s.Next()
	if err != nil {
		return result, err
	}
	if err := b.Load.Call("Begin", load.Begin{Group: group, Seq: first}, nil); err != nil {
		return result, err
	}
	emitted := make(chan error, 1)
	go func() { emitted <- s.Source.Call("Emit", source.Emit{Rate: 20}, nil) }()
	time.Sleep(size.away)

	s.gateway.Kill()
	await := load.Await{Group: group, Until: load.Closed, Quiet: 10 * time.Second}
	if err := b.Load.Call("Await", await, &result.Stats); err != nil {
		return result, err
	}
	time.Sleep(size.away)
	if err := s.run(b.gateway, "", s.Live.Address); err != nil {
		return result, err
	}
	ready := time.Now()
	target := s.Live
	if !resume {
		target = s.snapshot()
	}
	reopen := load.Reopen{Group: group, Within: size.within, Resume: resume, Target: target}
	if err := b.Load.Call("Reopen", reopen, nil); err != nil {
		return result, err
	}
	await = load.Await{Group: group, Until: load.Live, Quiet: 10 * time.Second}
	if err := b.Load.Call("Await", await, &result.Stats); err != nil {
		return result, err
	}
	if result.Live+result.Lost != size.clients {
		return result, fmt.Errorf("%d of %d clients are live", result.Live, size.clients)
	}
	result.live = result.LastLive.Sub(ready)
	if err := s.Source.Call("Stop", nil, nil); err != nil {
		return result, err
	}
	if err := <-emitted; err != nil {
		return result, err
	}
	next, err := s.Next()
	if err != nil {
		return result, err
	}
	if resume { // without positions there are none to wait for
		await = load.Await{Group: group, Until: load.Delivered, Count: next - first, Quiet: measure.Quiet}
		if err := b.Load.Call("Await", await, &result.Stats); err != nil {
			return result, err
		}
		result.missed = (next-first)*uint64(size.clients) - result.Delivered
	}
	if result.memory, err = process.ReadMemory(s.Pid); err != nil {
		return result, err
	}
	result.cpu, err = process.CPU(s.Pid)
	return result, err
}
