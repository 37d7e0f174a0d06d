package cache

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// gone is the end of a store whose kind is no longer served. It is final: a kind that comes back gets a new store.
type gone struct {
	served func() bool   // whether discovery still has the kind; nil: cannot be asked
	done   chan struct{} // closed at the end, when Err is set

	mu     sync.Mutex
	missed int // how many answers of 404 came in a row
	err    error
}

func (g *gone) get() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Err is nil while the store's kind is served. Afterwards it wraps ErrNotServed and says why. All
// readers that wait on the store's topic are woken at that moment. The content stays readable, but
// is no longer kept up to date.
func (s *Store) Err() error { return s.gone.get() }

// Gone is closed once Err is not nil.
func (s *Store) Gone() <-chan struct{} { return s.gone.done }

// end records that the kind is no longer served. Only the first call counts.
func (s *Store) end(reason string) {
	s.gone.mu.Lock()
	first := s.gone.err == nil
	if first {
		s.gone.err = fmt.Errorf("%w: %s: %s", ErrNotServed, s.kind, reason)
	}
	s.gone.mu.Unlock()
	if first {
		s.log.Info("kind is no longer served", "kind", s.kind.String(), "version", s.kind.Version, "reason", reason)
		s.topic.Notify()
		close(s.gone.done) // last: it stops the topic, which still wakes the readers notified before, but none after
	}
}

// endBefore records that the kind was removed at a version of the cluster. It does nothing if the store's first list
// is from a later version: events of different kinds come in no order, so this one may come late, when another kind
// of the same name has already been made and listed.
func (s *Store) endBefore(removed uint64, reason string) {
	s.mu.Lock()
	began := s.began
	s.mu.Unlock()
	if began > 0 && began < removed {
		s.end(reason)
	}
}

// missing takes the outcome of a request of the store's watch, nil for success. It ends the store if the API server
// no longer knows the kind. One 404 is believed if discovery agrees. Discovery may lag behind by seconds, so a second
// 404 in a row is believed in any case.
func (s *Store) missing(err error) {
	s.gone.mu.Lock()
	if !apierrors.IsNotFound(err) {
		s.gone.missed = 0
		s.gone.mu.Unlock()
		return
	}
	s.gone.missed++
	again := s.gone.missed > 1
	s.gone.mu.Unlock()
	if again || s.gone.served != nil && !s.gone.served() {
		s.end("the API server does not know it any more")
	}
}
