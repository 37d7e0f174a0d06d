package cluster

import (
	"sync"
	"time"
)

// proof calls up once a watch is proved to stand: by an event, or by having lasted. An API server may accept a watch
// from a version that it no longer has, and say so only in the first event. A client that was told "live" in between
// would be told "stale" a moment later. Worse, it would take the relist's differences for changes that happen now.
type proof struct {
	up func()

	mu       sync.Mutex
	given    bool // up was called
	withheld bool // up is not called any more
	deadline *time.Timer
}

// give calls up now, unless it was called or withheld before. It reports whether the watch still counts as standing.
func (p *proof) give() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.given && !p.withheld {
		p.given = true
		p.up()
	}
	return !p.withheld
}

// giveAfter calls up after a time, unless it is given or withheld before.
func (p *proof) giveAfter(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.given && !p.withheld {
		p.deadline = time.AfterFunc(d, func() { p.give() })
	}
}

// withhold makes sure that up is not called any more. If a call is just under way, withhold waits for its end.
func (p *proof) withhold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.withheld = true
	if p.deadline != nil {
		p.deadline.Stop()
	}
}
