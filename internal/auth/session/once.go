package session

import (
	"sync"
	"time"
)

// Once remembers ids that must be used only once, until each expires. Nothing is forgotten earlier, since it could
// then be used again. Its methods may be called concurrently.
type Once struct {
	mu    sync.Mutex
	used  map[string]time.Time // by id: when it expires
	sweep time.Time            // when expired ids are forgotten next
}

const sweepEvery = 30 * time.Second

// Taken reports whether an id was used, and may not have been forgotten yet.
func (o *Once) Taken(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, before := o.used[id]
	return before
}

// Take records that an id is used, and reports whether it is the first time.
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
