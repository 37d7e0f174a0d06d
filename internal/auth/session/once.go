package session

import (
	"sync"
	"time"
)

// Once remembers what was used and must not be again, until it ends by itself. Nothing is forgotten before: that would
// let it be used again. Safe for concurrent use.
type Once struct {
	mu    sync.Mutex
	used  map[string]time.Time // when they end
	sweep time.Time            // when those that have ended are forgotten next
}

const sweepEvery = 30 * time.Second

// Taken reports whether something was used, and has not ended yet.
func (o *Once) Taken(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, before := o.used[id]
	return before
}

// Take reports whether something is used for the first time.
func (o *Once) Take(id string, now, expires time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.used == nil {
		o.used = map[string]time.Time{}
	}
	if now.After(o.sweep) {
		for old, end := range o.used {
			if now.After(end) {
				delete(o.used, old)
			}
		}
		o.sweep = now.Add(sweepEvery)
	}
	if _, before := o.used[id]; before {
		return false
	}
	o.used[id] = expires
	return true
}
