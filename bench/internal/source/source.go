//go:build linux

// Package source makes the events of a benchmark.
package source

import (
	"sync"
	"time"

	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// Source makes a server's events, at a steady rate or all at once. The parent process calls its exported methods. The
// function to which events go must not wait for clients: an event is stamped when it is due, and a server that made
// the source wait would hide how late its events are.
type Source struct {
	publish func(mark.Mark)

	mu      sync.Mutex
	next    uint64
	stopped bool
}

// New makes a source whose events go to publish.
func New(publish func(mark.Mark)) *Source { return &Source{publish: publish, next: 1} }

// Emit says which events to make.
type Emit struct {
	Rate  float64 // per second; 0: all at once
	Count int     // 0: until Stop is called
}

// Emit returns when the events have been made.
func (s *Source) Emit(args Emit, _ *process.None) error {
	s.mu.Lock()
	s.stopped = false
	s.mu.Unlock()
	began := time.Now()
	for n := 0; args.Count == 0 || n < args.Count; n++ {
		if args.Rate > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(float64(n) / args.Rate * float64(time.Second)))))
		}
		if !s.emit() {
			return nil
		}
	}
	return nil
}

func (s *Source) emit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.publish(mark.Mark{Seq: s.next, At: time.Now().UnixNano()})
	s.next++
	return true
}

// Stop ends the Emit that is under way.
func (s *Source) Stop(_ process.None, _ *process.None) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	return nil
}

// Next is the number of the next event.
func (s *Source) Next(_ process.None, next *uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*next = s.next
	return nil
}
