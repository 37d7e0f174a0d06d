package cluster

import (
	"sync"
	"time"
)

// proof tells that a watch stands, once that is proved: by an event, or by time. An API server accepts a watch from a
// version that it no longer has, and says so in the first event. Who was told "live" in between would be told "stale"
// again a moment later; and before that, take what the relist brings for what happens now.
type proof struct {
	up func()

	mu       sync.Mutex
	closed   bool // given, or withheld for good
	deadline *time.Timer
}

// give tells it now, unless it has been told.
func (p *proof) give() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.up()
	}
}

// giveAfter tells it after a time, unless it is withheld before.
func (p *proof) giveAfter(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.deadline = time.AfterFunc(d, p.give)
	}
}

// withhold ends it: it is not told any more. If that is being done just now, withhold waits for it.
func (p *proof) withhold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.deadline != nil {
		p.deadline.Stop()
	}
}
