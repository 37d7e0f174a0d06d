package auth

import (
	"sync"
	"time"
)

// once remembers what was used and must not be again, until it ends by itself.
type once struct {
	mu    sync.Mutex
	used  map[string]time.Time // when they end
	sweep time.Time            // when those that have ended are forgotten next
}

const sweepEvery = 30 * time.Second

// taken reports whether something was used, and has not ended yet.
func (o *once) taken(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, before := o.used[id]
	return before
}

// take reports whether something is used for the first time.
func (o *once) take(id string, now, expires time.Time) bool {
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
