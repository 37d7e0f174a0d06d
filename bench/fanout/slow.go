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

// ringBytes is the default bound of a kind's ring.
const ringBytes = 64 << 20

// slowRun is a gateway whose clients stop reading.
type slowRun struct {
	name     string
	settings string
	memory   []process.Memory // every second, from before they stop
	witness  measure.Sample   // of a client that reads
	clients  load.Stats       // some time after they read again
}

// slow shows that nothing is kept for clients that do not read: it prints the server's memory over time while all
// clients but one stop reading. It runs with the defaults, which disconnect such clients after some seconds, and once
// without disconnects.
func (b *bench) slow() error {
	size := b.sizes.slow
	runs := []*slowRun{
		{name: "cut after 5 s"},
		{name: "never cut", settings: ", writeTimeout: 5m"},
	}
	for _, run := range runs {
		if err := b.slowOnce(run); err != nil {
			return fmt.Errorf("%s: %w", run.name, err)
		}
	}
	seconds := int(size.pause.Seconds())
	t := figures.Table{
		Title:  fmt.Sprintf("%d clients stop reading for %s at %v events/s: the gateway's resident memory in MiB", size.clients, size.pause, size.rate),
		Header: []any{"", "before"},
	}
	step := max(seconds/6, 1)
	for at := step; at <= seconds; at += step {
		t.Header = append(t.Header, fmt.Sprintf("%d s", at))
	}
	t.Header = append(t.Header, "growth", "witness p99 ms", "missed", "then: cut", "reset")
	for _, run := range runs {
		row := []any{run.name}
		for at := 0; at <= seconds; at += step {
			row = append(row, mebibytes(run.memory[min(at, len(run.memory)-1)].Now))
		}
		b.Expect("slow, "+run.name, "missed by the witness", run.witness.Missed())
		growth := run.memory[len(run.memory)-1].Peak - run.memory[0].Now
		row = append(row, mebibytes(growth), measure.Latency(0.99)(run.witness), run.witness.Missed(),
			run.clients.Clients-run.clients.Open, run.clients.Resets)
		t.Rows = append(t.Rows, row)
	}
	t.Note("the ring is bounded to %d MiB; what was sent meanwhile is %d MiB, so %d MiB for all clients",
		ringBytes>>20, sent(size)>>20, sent(size)*int64(size.clients)>>20)
	t.Note("the witness is one more client, which reads; reset: clients that were told that they had missed events, and " +
		"got the state instead")
	t.Print(b.out)
	return nil
}

func sent(size slowSize) int64 { return int64(size.rate*size.pause.Seconds()) * objectSize }

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func (b *bench) slowOnce(run *slowRun) (err error) {
	size := b.sizes.slow
	s, err := b.start("gateway", run.settings)
	if err != nil {
		return err
	}
	defer s.stop()
	for group, clients := range map[string]int{"slow": size.clients, "witness": 1} {
		if err := b.Open(&s.Server, group, clients, s.Live); err != nil {
			return err
		}
		defer func() {
			if closing := b.Close(group); err == nil {
				err = closing
			}
		}()
	}
	if err := b.Load.Call("Pause", "slow", nil); err != nil {
		return err
	}
	stop, memory := watchMemory(s.Pid)
	run.witness, err = b.Emit(&s.Server, "witness", 1, source.Emit{Rate: size.rate, Count: int(size.rate * size.pause.Seconds())})
	stop()
	run.memory = *memory
	if err != nil {
		return err
	}
	if err := b.Load.Call("Resume", "slow", nil); err != nil {
		return err
	}
	// The clients read what is left for them, and then the changes go on.
	if _, err := b.Emit(&s.Server, "witness", 1, source.Emit{Rate: 20, Count: 60}); err != nil {
		return err
	}
	return b.Load.Call("Await", load.Await{Group: "slow", Until: load.Closed, Quiet: 3 * time.Second}, &run.clients)
}

// watchMemory reads a process's memory every second until stop is called. Only then may the result be read.
func watchMemory(pid int) (stop func(), memory *[]process.Memory) {
	memory = new([]process.Memory)
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			if m, err := process.ReadMemory(pid); err == nil {
				*memory = append(*memory, m)
			}
			select {
			case <-tick.C:
			case <-stopped:
				if m, err := process.ReadMemory(pid); err == nil {
					*memory = append(*memory, m)
				}
				return
			}
		}
	}()
	return func() { close(stopped); <-done }, memory
}
