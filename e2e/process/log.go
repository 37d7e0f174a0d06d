package process

import (
	"context"
	"fmt"
	"regexp"
	"sync"
)

// Log holds what a program has printed.
type Log struct {
	mu      sync.Mutex
	text    []byte
	closed  bool
	changed chan struct{} // closed at the next change
}

func newLog() *Log { return &Log{changed: make(chan struct{})} }

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	l.tell()
	return len(p), nil
}

func (l *Log) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.tell()
}

func (l *Log) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// String returns all that has been printed so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// WaitFor waits until the expression matches what was printed, and returns the match and its groups. It fails when
// the context ends, or when the program ends without printing a match.
func (l *Log) WaitFor(ctx context.Context, expression *regexp.Regexp) ([]string, error) {
	for {
		l.mu.Lock()
		match, closed, changed := expression.FindSubmatch(l.text), l.closed, l.changed
		l.mu.Unlock()
		if match != nil {
			groups := make([]string, len(match))
			for i, group := range match {
				groups[i] = string(group)
			}
			return groups, nil
		}
		if closed {
			return nil, fmt.Errorf("the program ended without printing %q; it printed:\n%s", expression, l)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %q: %w; printed so far:\n%s", expression, context.Cause(ctx), l)
		}
	}
}
