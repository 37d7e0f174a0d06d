package cache

import (
	"context"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/stream"
)

const (
	// soon is how long a version is waited for before the API server is asked: what a client has
	// just written comes at once.
	soon = 100 * time.Millisecond
	// versionWithin is how long a version is waited for that nobody has yet. It is the API server's own limit.
	versionWithin = 3 * time.Second
	// knownWithin is how long a version is waited for that the API server has, or of which it has
	// not said yet whether it has.
	knownWithin = 10 * time.Second
	// askEvery is the time from one question to the next, whatever versions clients name.
	askEvery = time.Second
)

// Reach waits until the store has reached a version, and returns the version that it has. That is
// less if the version does not come in time, or the context ends.
//
// Versions are counted for all kinds together. So the version that a client knows may be that of
// another kind's change, or of one of the API server's own lists, and of a quiet kind nothing would
// say that it has come so far but a bookmark, which the API server sends once a minute. So it is
// asked for the newest version, and if that is not below the client's, whether anything has
// happened up to there (see cluster.ListWatch.Confirm). One question is for all who wait.
func (s *Store) Reach(ctx context.Context, version uint64) (have uint64) {
	began := time.Now()
	have = s.awaitUntil(ctx, began.Add(soon), nil, version)
	for end := began.Add(knownWithin); have < version && time.Now().Before(end) && ctx.Err() == nil; {
		q := s.reaching.ask(version)
		if q == nil {
			break
		}
		have = s.awaitUntil(ctx, end, q.done, version)
		switch newest, over := s.reaching.leave(q); {
		case over && newest < version: // there may be another API server that is ahead of the one that was asked
			end = began.Add(versionWithin)
		case over:
			end = began.Add(knownWithin)
		}
	}
	return have
}

// awaitUntil is Await with a deadline, and ends early when the channel is closed.
func (s *Store) awaitUntil(ctx context.Context, deadline time.Time, early <-chan struct{}, version uint64) uint64 {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	return s.await(ctx, early, version, func(known stream.Known) uint64 { return known.Some })
}

// reaching asks the API server how far it has come, for all who wait for versions that the store has not reached.
type reaching struct {
	newest  func(context.Context) (uint64, error) // the kind's newest version at the API server
	confirm func(context.Context, uint64) error   // has the watch say that nothing has happened up to a version, if that is so
	ready   chan struct{}                         // holds a token while a question waits

	mu     sync.Mutex
	next   *question // nil: nobody waits for it
	closed bool      // nobody asks any more
}

func newReaching() *reaching { return &reaching{ready: make(chan struct{}, 1)} }

// question is asked once for all who wait when it is.
type question struct {
	waiting int
	least   uint64        // of the versions that they wait for
	done    chan struct{} // closed when it is over
	over    bool
	newest  uint64 // the answer; 0: there was none
}

// ask returns the question that is asked next, which the caller must leave; nil if none is asked any more.
func (r *reaching) ask(version uint64) *question {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	if r.next == nil {
		r.next = &question{least: version, done: make(chan struct{})}
	}
	r.next.waiting++
	r.next.least = min(r.next.least, version)
	select {
	case r.ready <- struct{}{}:
	default:
	}
	return r.next
}

// leave ends a caller's wait. It returns the answer, if the question is over.
func (r *reaching) leave(q *question) (newest uint64, over bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q.waiting--
	return q.newest, q.over
}

// run asks, no more often than once in askEvery, until the context ends.
func (r *reaching) run(ctx context.Context) {
	defer r.take(true)
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.ready:
		}
		q := r.take(false)
		if q == nil {
			continue
		}
		next := time.After(askEvery)
		newest, err := r.newest(ctx)
		r.answer(q, newest, err)
		if err == nil && newest >= q.least {
			_ = r.confirm(ctx, newest) // else what has happened comes by the watch, or it is asked once more
		}
		select {
		case <-ctx.Done():
			return
		case <-next:
		}
	}
}

// take returns the next question, unless all have left.
func (r *reaching) take(last bool) *question {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.next
	r.next, r.closed = nil, last
	switch {
	case q == nil:
		return nil
	case last:
		q.over = true
		close(q.done)
	case q.waiting == 0:
		return nil
	}
	return q
}

func (r *reaching) answer(q *question, newest uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.over = true; err == nil {
		q.newest = newest
	}
	close(q.done)
}
