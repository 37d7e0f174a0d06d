//go:build linux

// Package measure measures servers of event streams in turn.
package measure

import (
	"fmt"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// Quiet is how long a server must send nothing before the missing events count as missed.
const Quiet = 5 * time.Second

// Bench measures with one process full of clients.
type Bench struct{ Load *process.Child }

// Server is a server that is measured: a process, and the source of its events.
type Server struct {
	Name   string
	Pid    int
	Live   load.Target    // a stream that begins with the next change
	Source *process.Child // it answers source.Source's calls
}

// Next returns the number of the event that the server's source makes next.
func (s *Server) Next() (seq uint64, err error) {
	err = s.Source.Call("Next", nil, &seq)
	return seq, err
}

// Open opens a group of clients of a server. It returns when each has got a change that came after it had connected.
func (b *Bench) Open(s *Server, group string, clients int, target load.Target) error {
	args := load.Open{Group: group, Clients: clients, Target: target}
	if err := b.Load.Call("Open", args, nil); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); ; {
		if err := s.Source.Call("Emit", source.Emit{Count: 1}, nil); err != nil {
			return err
		}
		var stats load.Stats
		await := load.Await{Group: group, Until: load.Live, Quiet: 100 * time.Millisecond}
		if err := b.Load.Call("Await", await, &stats); err != nil {
			return err
		}
		if stats.Live == clients {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: %d of %d clients are live after a minute", s.Name, stats.Live, clients)
		}
	}
}

// Close closes a group.
func (b *Bench) Close(group string) error { return b.Load.Call("Close", group, nil) }

// Sample is what one measurement found.
type Sample struct {
	load.Stats
	Expected  uint64 // events, each counted for each client
	ServerCPU time.Duration
	ClientCPU time.Duration
	Waited    time.Duration // by the server, for a processor
	Took      time.Duration // from the first event until the last client had the last
}

// Emit makes events, and measures a group of clients until all have got them.
func (b *Bench) Emit(s *Server, group string, clients int, what source.Emit) (Sample, error) {
	return b.EmitTo(s, load.Begin{Group: group}, clients, what)
}

// EmitTo is Emit with more said of what counts; its Seq is the next event's.
func (b *Bench) EmitTo(s *Server, begin load.Begin, clients int, what source.Emit) (result Sample, err error) {
	if begin.Seq, err = s.Next(); err != nil {
		return result, err
	}
	if err := b.Load.Call("Begin", begin, nil); err != nil {
		return result, err
	}
	before, err := b.used(s)
	if err != nil {
		return result, err
	}
	began := time.Now()
	if err := s.Source.Call("Emit", what, nil); err != nil {
		return result, err
	}
	await := load.Await{Group: begin.Group, Until: load.Delivered, Count: uint64(what.Count), Quiet: Quiet}
	if err := b.Load.Call("Await", await, &result.Stats); err != nil {
		return result, err
	}
	result.Took = time.Since(began)
	after, err := b.used(s)
	if err != nil {
		return result, err
	}
	result.Expected = uint64(clients) * uint64(what.Count)
	result.ServerCPU, result.ClientCPU, result.Waited = after.server-before.server, after.client-before.client, after.waited-before.waited
	return result, nil
}

// used is processor time.
type used struct{ server, client, waited time.Duration }

func (b *Bench) used(s *Server) (u used, err error) {
	if u.server, err = process.CPU(s.Pid); err != nil {
		return u, err
	}
	if u.waited, err = process.Waited(s.Pid); err != nil {
		return u, err
	}
	u.client, err = process.CPU(b.Load.Pid)
	return u, err
}

// Missed is how many events did not come.
func (s Sample) Missed() uint64 { return s.Expected - s.Delivered }

// perEvent divides by the number of events that were delivered.
func (s Sample) perEvent(total float64) float64 { return total / float64(max(s.Delivered, 1)) }

// PerServerCPU is the server's processor time per event, in microseconds.
func (s Sample) PerServerCPU() float64 { return s.perEvent(figures.Microseconds(s.ServerCPU)) }

// PerClientCPU is the clients' processor time per event, in microseconds.
func (s Sample) PerClientCPU() float64 { return s.perEvent(figures.Microseconds(s.ClientCPU)) }

// PerBytes is the number of bytes per event on the wire.
func (s Sample) PerBytes() float64 { return s.perEvent(float64(s.Bytes)) }

// Contention is how long the server waited for a processor, divided by the time for which it had one.
func (s Sample) Contention() float64 { return s.Waited.Seconds() / max(s.ServerCPU.Seconds(), 1e-6) }

// Latency reads a quantile of the time from commit to client, in milliseconds.
func Latency(q float64) func(Sample) float64 {
	return func(s Sample) float64 { return figures.Milliseconds(s.Latency.Quantile(q)) }
}

// InTurn measures each server once a round, so that other load of the machine affects all of them.
func InTurn[T any](rounds int, modes []string, measure func(mode string) (T, error)) (map[string][]T, error) {
	results := map[string][]T{}
	for range rounds {
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

// Ratio is the median of one server's figures, each divided by another's of the same round.
func Ratio[T any](of, to []T, read func(T) float64) float64 {
	var ratios []float64
	for i := range min(len(of), len(to)) {
		ratios = append(ratios, read(of[i])/read(to[i]))
	}
	return figures.Median(ratios)
}
