package cluster

import (
	"sync"
	"time"
)

// livenessGate calls up once a watch is proved to stand: by an event, or by having lasted. An API
// server may accept a watch from a version that it no longer has, and say so only in the first
// event. A client that was told "live" in between would be told "stale" a moment later. Worse, it
// would take the relist's differences for changes that happen now.
type livenessGate struct {
	up func()

	mu        sync.Mutex
	opened    bool // up was called
	cancelled bool // up is not called any more
	deadline  *time.Timer
}

// open calls up now, unless it was called or cancelled before. It reports whether the watch still counts as standing.
func (g *livenessGate) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.opened && !g.cancelled {
		g.opened = true
		g.up()
	}
	return !g.cancelled
}

// reset makes a gate that was cancelled another one, which is closed.
func (g *livenessGate) reset(up func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.up, g.opened, g.cancelled, g.deadline = up, false, false, nil
}

// openAfter calls up after a time, unless it is opened or cancelled before.
func (g *livenessGate) openAfter(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.opened && !g.cancelled {
		g.deadline = time.AfterFunc(d, func() { g.open() })
	}
}

// cancel makes sure that up is not called any more. If a call is just under way, cancel waits for its end.
func (g *livenessGate) cancel() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cancelled = true
	if g.deadline != nil {
		g.deadline.Stop()
	}
}
