package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// CatchUp is what happened to a kind after a version, up to a place in its topic. The ring no longer holds it, so it
// is read from the API server. It is shared by all clients that need it, and never changes.
//
// Its events carry no old objects, since the API server says only what an object became.
type CatchUp struct {
	After  uint64
	Events []*Event
	Head   stream.Head // where the topic goes on
}

// From returns the events after a version, which must not be less than After.
func (c *CatchUp) From(version uint64) []*Event {
	i, _ := slices.BinarySearchFunc(c.Events, version+1, func(e *Event, v uint64) int {
		if e.Pos < v {
			return -1
		}
		return 1
	})
	return c.Events[i:]
}

// ErrNoCatchUp means that the API server does not have the history either, or that it is too long.
var ErrNoCatchUp = errors.New("no catch-up")

// CatchUp reads what happened after a version, up to a recent one that is not below least, which
// must have been seen. Callers that ask at about the same time share one watch, which begins at the
// oldest version among theirs. An error wraps ErrNoCatchUp, ErrClosed or cluster.ErrUnavailable, or
// is the context's.
//
// With it, clients hardly notice a restart of the gateway: they come back all at once, with positions from before the
// ring's first list, and are not reset.
func (s *Store) CatchUp(ctx context.Context, after, least uint64) (*CatchUp, error) {
	for {
		flight := s.catchUps.join(s.topic, after, least)
		select {
		case <-flight.done:
		case <-ctx.Done():
			s.catchUps.leave(flight, after)
			return nil, ctx.Err()
		}
		switch {
		case flight.err == nil && flight.after <= after:
			return flight.result, nil
		case flight.err != nil && (after <= flight.after || !errors.Is(flight.err, ErrNoCatchUp)):
			return nil, flight.err // what is older than what is gone is gone, too
		}
		// This flight began at a version that was too old for the API server, or too new for this caller: it joins
		// the next.
	}
}

// CaughtUp returns a cursor for a client that the topic's Resume refused as too far back: it reads what happened since
// from the API server, and then goes on in the ring. Its errors are those of CatchUp.
func (s *Store) CaughtUp(ctx context.Context, known stream.Known, namespaces stream.NamespaceSet) (*Cursor, error) {
	return s.CaughtUpTo(ctx, 0, known, namespaces)
}

// CaughtUpTo is CaughtUp for a client that was in the ring already, up to a version, but was
// carried over a relist there: the cursor goes on in the ring behind that.
func (s *Store) CaughtUpTo(ctx context.Context, least uint64, known stream.Known, namespaces stream.NamespaceSet) (*Cursor, error) {
	// From before the version, since several events may share it, of which the client has been told the first only.
	before := known.All - 1
	if before == 0 { // which the API server takes for any version
		return nil, fmt.Errorf("%w: from the first version", ErrNoCatchUp)
	}
	caught, err := s.CatchUp(ctx, before, least)
	if err != nil {
		return nil, err
	}
	return s.topic.CaughtUp(caught.Head, caught.From(before), known, namespaces), nil
}

// CaughtUpAfter is CaughtUpTo for a client that has been told all of a version: the API server need
// not have that version itself any more.
func (s *Store) CaughtUpAfter(ctx context.Context, least, version uint64, namespaces stream.NamespaceSet) (*Cursor, error) {
	caught, err := s.CatchUp(ctx, version, least)
	if err != nil {
		return nil, err
	}
	return s.topic.CaughtUp(caught.Head, caught.From(version), stream.UpTo(version), namespaces), nil
}

// CatchUpBound bounds one catch-up.
type CatchUpBound struct {
	Events  int
	Bytes   int64 // also the bound of all catch-ups of a cluster that are kept, together
	Timeout time.Duration
}

// boarding is how long a flight waits for others to join: reconnects after a restart come in crowds.
const boarding = 20 * time.Millisecond

// catchUps makes the catch-ups of one store, one at a time. They belong to the store and not to a client: the client
// that asked first may leave, and the others are still served.
type catchUps struct {
	bound CatchUpBound
	past  func(ctx context.Context, after, until uint64) ([]cluster.PastChange, error)
	kept  *keptCatchUps
	ready chan struct{} // holds a token while a flight has passengers

	mu      sync.Mutex
	waiting *flight // the next to start; nil without passengers
	failed  bool    // whether the newest flight found its history gone
	closed  bool    // the store is no longer kept up to date
}

// flight is one watch of the API server for all callers that joined it, its passengers.
type flight struct {
	passengers []uint64 // the versions that the callers asked for, of those that have not left
	abandon    func()   // ends it; nil before it has started

	done chan struct{}
	// Set before done is closed.
	after  uint64 // the version at which it began
	result *CatchUp
	err    error
}

func newCatchUps(bound CatchUpBound, kept *keptCatchUps, past func(ctx context.Context, after, until uint64) ([]cluster.PastChange, error)) *catchUps {
	return &catchUps{bound: bound, past: past, kept: kept, ready: make(chan struct{}, 1)}
}

// join returns the flight that a caller has to wait for: one that is kept, or the next to start.
func (c *catchUps) join(topic *Topic, after, least uint64) *flight {
	if f := c.kept.get(c, topic, after, least); f != nil {
		return f
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return landed(ErrClosed)
	}
	if c.waiting == nil {
		c.waiting = &flight{done: make(chan struct{})}
	}
	c.waiting.passengers = append(c.waiting.passengers, after)
	select {
	case c.ready <- struct{}{}:
	default:
	}
	return c.waiting
}

// leave takes a passenger off. A flight without passengers is not started, or ends.
func (c *catchUps) leave(f *flight, after uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(f.passengers, after); i >= 0 {
		f.passengers = slices.Delete(f.passengers, i, i+1)
	}
	if len(f.passengers) == 0 && f.abandon != nil {
		f.abandon()
	}
}

func landed(err error) *flight {
	f := &flight{err: err, done: make(chan struct{})}
	close(f.done)
	return f
}

// run makes the flights, one after the other, until the context ends.
func (c *catchUps) run(ctx context.Context, s *Store) {
	defer c.close()
	forget := time.NewTimer(keepCatchUp)
	defer forget.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-forget.C:
			c.kept.forget(c)
		case <-c.ready:
			if !backoff.Pause(ctx, boarding) {
				return
			}
			c.fly(ctx, s)
			forget.Reset(keepCatchUp)
		}
	}
}

// close fails the flight that waits, and each that is asked for later, with ErrClosed.
func (c *catchUps) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if f := c.waiting; f != nil {
		f.err = ErrClosed
		close(f.done)
		c.waiting = nil
	}
	c.kept.drop(c)
}

// fly reads the history for all passengers of the next flight.
func (c *catchUps) fly(ctx context.Context, s *Store) {
	ctx, cancel := context.WithTimeout(ctx, c.bound.Timeout)
	defer cancel()
	f, clients := c.board(cancel)
	if f == nil {
		return
	}
	defer close(f.done)
	snapshot := s.Snapshot()
	past, err := c.past(ctx, f.after, snapshot.Version())
	if err == nil && !leadsTo(past, snapshot, f.after) {
		err = errIncomplete
	}
	log := s.log.With("kind", s.kind.String(), "after", f.after, "clients", clients)
	gone := errors.Is(err, cluster.ErrExpired) || errors.Is(err, cluster.ErrTooMuch) || errors.Is(err, errIncomplete)
	switch {
	case err == nil:
		f.result = &CatchUp{After: f.after, Events: asEvents(past), Head: snapshot.Head}
		c.kept.put(c, f)
		log.Info("clients are caught up", "events", len(past))
	case gone:
		f.err = fmt.Errorf("%w: %w", ErrNoCatchUp, err)
		log.Info("clients cannot be caught up", "error", err)
	case errors.Is(ctx.Err(), context.Canceled): // all passengers have left, or the store is being stopped
		f.err = ErrClosed
	default:
		f.err = fmt.Errorf("%w: catching up: %w", cluster.ErrUnavailable, err)
		log.Warn("catching up failed", "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = gone
}

// board starts the next flight and chooses its version: the oldest that a passenger asked for. If the flight before
// found its history gone, it is the median instead. That at least halves the number of those that wait: if the median
// is gone too, all older ones are refused, else all newer ones are served. The flight is nil if all have left.
func (c *catchUps) board(abandon func()) (f *flight, clients int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, c.waiting = c.waiting, nil
	if f == nil || len(f.passengers) == 0 {
		return nil, 0
	}
	slices.Sort(f.passengers)
	f.after = f.passengers[0]
	if c.failed {
		f.after = f.passengers[len(f.passengers)/2]
	}
	f.abandon = abandon
	return f, len(f.passengers)
}

var errIncomplete = errors.New("the history does not lead to the present state")

// leadsTo reports whether what happened after a version ends in what a snapshot holds. A watch that the API server
// ended too early looks like a complete one; only this comparison shows it.
func leadsTo(past []cluster.PastChange, snapshot *Snapshot, after uint64) bool {
	newest := make(map[string]cluster.PastChange, len(past))
	for _, p := range past {
		newest[p.Object.Key()] = p
	}
	for o := range snapshot.List(stream.AllNamespaces(), Selector{}, "", "") {
		p, changed := newest[o.Key()]
		delete(newest, o.Key())
		if o.Version() > after && !changed || changed && (p.Type == watch.Deleted || p.Object.Version() != o.Version()) {
			return false
		}
	}
	for _, p := range newest {
		if p.Type != watch.Deleted {
			return false
		}
	}
	return true
}

func asEvents(past []cluster.PastChange) []*Event {
	types := map[watch.EventType]stream.Type{watch.Added: stream.Added, watch.Modified: stream.Modified, watch.Deleted: stream.Deleted}
	events := make([]*Event, len(past))
	for i, p := range past {
		c := change{Type: types[p.Type], Object: p.Object}
		events[i] = stream.EventAt(p.Object.Version(), c)
	}
	return events
}
