package cache

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// gone is the end of a store whose kind is no longer served. It is for good: a kind that comes back has a new store.
type gone struct {
	served func() bool   // whether discovery still has the kind; nil: nobody knows
	done   chan struct{} // closed at the end, when Err is set

	mu     sync.Mutex
	missed int // answers of 404 in a row
	err    error
}

func (g *gone) get() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Err is nil while the store's kind is served; afterwards it wraps ErrGone and says why. Whoever waits on the store's
// topic is woken then. What the store holds stays readable, but is no longer kept up to date.
func (s *Store) Err() error { return s.gone.get() }

// Gone is closed once Err is not nil.
func (s *Store) Gone() <-chan struct{} { return s.gone.done }

// end says that the kind is no longer served; the first reason stays.
func (s *Store) end(reason string) {
	s.gone.mu.Lock()
	first := s.gone.err == nil
	if first {
		s.gone.err = fmt.Errorf("%w: %s: %s", ErrGone, s.kind, reason)
	}
	s.gone.mu.Unlock()
	if first {
		s.log.Info("kind is no longer served", "kind", s.kind.String(), "version", s.kind.Version, "reason", reason)
		s.topic.Notify()
		close(s.gone.done) // last: the topic stops then, which wakes those who were to be woken, and nobody later
	}
}

// endBefore says that the kind was removed at a version of the cluster. What was listed since is of another one of its
// name: events of different kinds come in no order, so this one may come late.
func (s *Store) endBefore(removed uint64, reason string) {
	s.mu.Lock()
	began := s.began
	s.mu.Unlock()
	if began > 0 && began < removed {
		s.end(reason)
	}
}

// missing looks at a failure of the store's watch, or at its success: it ends the store if the API server does not know
// the kind. One 404 is believed if discovery agrees; discovery may lag behind by seconds, so a second one is believed in
// any case.
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
