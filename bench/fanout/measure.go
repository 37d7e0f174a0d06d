//go:build linux

package main

import (
	"fmt"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// quiet is how long a server may say nothing before what is missing is counted as missed.
const quiet = 5 * time.Second

// open opens a group of clients of a server, and returns when each has got a change that came after it had connected.
func (b *bench) open(s *server, group string, clients int, target load.Target) error {
	args := load.Open{Group: group, Clients: clients, Target: target}
	if err := b.load.Call("Open", args, nil); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); ; {
		if err := s.source.Call("Emit", Emit{Count: 1}, nil); err != nil {
			return err
		}
		var stats load.Stats
		await := load.Await{Group: group, Until: load.Live, Quiet: 100 * time.Millisecond}
		if err := b.load.Call("Await", await, &stats); err != nil {
			return err
		}
		if stats.Live == clients {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: %d of %d clients are live after a minute", s.name, stats.Live, clients)
		}
	}
}

// close closes a group.
func (b *bench) close(group string) error { return b.load.Call("Close", group, nil) }

// sample is what one measurement found.
type sample struct {
	load.Stats
	Expected  uint64 // events, each counted for each client
	ServerCPU time.Duration
	ClientCPU time.Duration
	Took      time.Duration // from the first event until the last client had the last
}

// emit makes events and measures a group of clients until all have got them.
func (b *bench) emit(s *server, group string, clients int, what Emit) (sample, error) {
	var result sample
	next, err := s.next()
	if err != nil {
		return result, err
	}
	if err := b.load.Call("Begin", load.Begin{Group: group, Seq: next}, nil); err != nil {
		return result, err
	}
	before, err := b.cpu(s)
	if err != nil {
		return result, err
	}
	began := time.Now()
	if err := s.source.Call("Emit", what, nil); err != nil {
		return result, err
	}
	await := load.Await{Group: group, Until: load.Delivered, Count: uint64(what.Count), Quiet: quiet}
	if err := b.load.Call("Await", await, &result.Stats); err != nil {
		return result, err
	}
	result.Took = time.Since(began)
	after, err := b.cpu(s)
	if err != nil {
		return result, err
	}
	result.Expected = uint64(clients) * uint64(what.Count)
	result.ServerCPU, result.ClientCPU = after[0]-before[0], after[1]-before[1]
	return result, nil
}

// cpu is the processor time that a server and the load have used.
func (b *bench) cpu(s *server) (used [2]time.Duration, err error) {
	for i, pid := range []int{s.pid, b.load.Pid} {
		if used[i], err = process.CPU(pid); err != nil {
			return used, err
		}
	}
	return used, nil
}

func (s sample) missed() uint64 { return s.Expected - s.Delivered }

// perEvent divides by the events that were delivered.
func (s sample) perEvent(total float64) float64 { return total / float64(max(s.Delivered, 1)) }

func (s sample) serverCPU() float64 { return s.perEvent(figures.Microseconds(s.ServerCPU)) }
func (s sample) clientCPU() float64 { return s.perEvent(figures.Microseconds(s.ClientCPU)) }
func (s sample) wireBytes() float64 { return s.perEvent(float64(s.Bytes)) }

// latency reads a quantile, in milliseconds.
func latency(q float64) func(sample) float64 {
	return func(s sample) float64 { return figures.Milliseconds(s.Latency.Quantile(q)) }
}

// inTurn measures each server once a round, so that what else the machine does hits all of them.
func inTurn[T any](b *bench, modes []string, measure func(mode string) (T, error)) (map[string][]T, error) {
	results := map[string][]T{}
	for range b.rounds {
		for _, mode := range modes {
			result, err := measure(mode)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", mode, err)
			}
			results[mode] = append(results[mode], result)
		}
	}
	return results, nil
}

// ratio is the median of one server's figures, each divided by another's of the same round.
func ratio[T any](of, to []T, read func(T) float64) float64 {
	var ratios []float64
	for i := range min(len(of), len(to)) {
		ratios = append(ratios, read(of[i])/read(to[i]))
	}
	return figures.Median(ratios)
}
