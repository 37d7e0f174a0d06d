//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// measured is servers with their clients. An event goes to every client, or each client gets one of so many.
type measured struct {
	*bench
	name    string
	servers []int            // the processes that are measured
	core    int              // 0: there is none
	edge    *gateway.Gateway // of which profiles are taken; nil: of none
	source  *process.Child   // of the events
	more    []*process.Child // sources of the other servers, which make the same events
	crowd   *crowd
	oneOf   int
}

// quiet is how long servers must send nothing before the missing events count as missed.
const quiet = 10 * time.Second

// sample is what one measurement found.
type sample struct {
	load.Stats
	usage
	expected uint64
	took     time.Duration
}

func (s sample) missed() uint64 { return s.expected - s.Delivered }

func (m *measured) used() (usage, error) {
	pid := 0
	if m.core != 0 {
		pid = m.source.Pid
	}
	return used(m.servers, m.core, pid, m.crowd)
}

// emit makes events, of which each client gets a number, at a rate for each client; 0: all at once.
func (m *measured) emit(each int, rate float64) error {
	what := source.Emit{Rate: rate * float64(m.oneOf), Count: each * m.oneOf}
	done := make(chan error)
	for _, child := range m.more {
		go func() { done <- child.Call("Emit", what, nil) }()
	}
	err := m.source.Call("Emit", what, nil)
	for range m.more {
		if failed := <-done; err == nil {
			err = failed
		}
	}
	return err
}

// open opens all clients, and returns what they cost when they have rested.
func (m *measured) open() (idle usage, err error) {
	before, err := m.used()
	if err != nil {
		return idle, err
	}
	if err := m.crowd.open(m.opening); err != nil {
		return idle, err
	}
	if err := m.crowd.live(func() error { return m.emit(1, 0.2) }); err != nil {
		return idle, err
	}
	time.Sleep(m.settle)
	from, err := m.used()
	if err != nil {
		return idle, err
	}
	began := time.Now()
	m.save(m.edge, m.name+"-idle", map[string]string{".cpu": fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(m.settle.Seconds()))})
	time.Sleep(time.Until(began.Add(m.settle)))
	to, err := m.used()
	idle = to.since(from)
	idle.memory, idle.kernel = to.memory-before.memory, to.kernel-before.kernel
	return idle, err
}

// during makes events, and something else meanwhile, and measures the clients until all have got the events.
func (m *measured) during(each int, rate float64, meanwhile func() error) (s sample, err error) {
	var seq uint64
	if err := m.source.Call("Next", nil, &seq); err != nil {
		return s, err
	}
	if err := m.crowd.begin(seq); err != nil {
		return s, err
	}
	before, err := m.used()
	if err != nil {
		return s, err
	}
	began := time.Now()
	emitted := make(chan error, 1)
	go func() { emitted <- m.emit(each, rate) }()
	if meanwhile != nil {
		if err := meanwhile(); err != nil {
			return s, err
		}
	}
	if err := <-emitted; err != nil {
		return s, err
	}
	s.Stats, err = await(m.crowd.groups, load.Await{Until: load.Delivered, Count: uint64(each), Quiet: quiet})
	s.took = time.Since(began)
	if err != nil {
		return s, err
	}
	after, err := m.used()
	s.usage, s.expected = after.since(before), uint64(each)*uint64(m.streams)
	m.Expect(m.name, "missed", s.missed())
	m.Expect(m.name, "repeated or in disorder", s.Repeated+s.Disordered)
	m.Expect(m.name, "resets", s.Resets)
	return s, err
}

// save saves profiles of a gateway.
func (b *bench) save(g *gateway.Gateway, name string, paths map[string]string) {
	if b.profile == "" || g == nil {
		return
	}
	err := os.MkdirAll(b.profile, 0o755)
	for suffix, path := range paths {
		if err == nil {
			err = g.Save(path, filepath.Join(b.profile, name+suffix))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
	}
}
