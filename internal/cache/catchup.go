package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// CatchUp is what happened to a kind after a version, up to a place in its topic: what the ring does not hold, read
// from the API server. It is shared by all who need it, and never changes.
//
// Its events carry no old objects: which objects they changed is known, but not from what.
type CatchUp struct {
	After  uint64
	Events []*Event
	Head   stream.Head // where the topic goes on
}

// From is the part after a version, which must not be less than After.
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

// CatchUp reads what happened after a version, together with all who ask at about the same time: one watch, from the
// oldest version among them. An error wraps ErrNoCatchUp or cluster.ErrUnavailable, or is the context's.
//
// It is what makes a restart of the gateway no event for its clients: they come back with positions from before the
// ring's first list, all at once.
func (s *Store) CatchUp(ctx context.Context, after uint64) (*CatchUp, error) {
	for {
		flight, lead := s.catchUps.join(s.topic, after)
		if lead {
			s.catchUps.fly(ctx, s, flight)
		}
		select {
		case <-flight.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case flight.err == nil && flight.after <= after:
			return flight.result, nil
		case flight.err != nil && (after <= flight.after || !errors.Is(flight.err, ErrNoCatchUp)):
			return nil, flight.err // what is older is gone, too
		}
		// This one flew from a version that was too old for the API server, or too new for us: on to the next.
	}
}

// CatchUpBound bounds a catch-up.
type CatchUpBound struct {
	Events  int
	Bytes   int64
	Timeout time.Duration
}

const (
	// boarding is how long a flight waits for others to join: reconnects after a restart come in crowds.
	boarding = 20 * time.Millisecond
	// keepCatchUp is how long the newest result serves those who come later.
	keepCatchUp = time.Minute
)

// catchUps makes those of one store, one at a time.
type catchUps struct {
	bound CatchUpBound
	past  func(ctx context.Context, after, until uint64) ([]cluster.Past, error)
	turn  chan struct{} // holds a token while one flies

	mu      sync.Mutex
	waiting *flight // to take off; nil without passengers
	kept    *flight // the newest that succeeded
	keptAt  time.Time
	failed  bool // whether the newest found that its history is gone
}

// flight is one watch for all who board it.
type flight struct {
	passengers []uint64 // the versions asked for
	done       chan struct{}

	// Set before done is closed.
	after  uint64 // from where it flew
	result *CatchUp
	err    error
}

func newCatchUps(bound CatchUpBound, past func(ctx context.Context, after, until uint64) ([]cluster.Past, error)) catchUps {
	return catchUps{bound: bound, past: past, turn: make(chan struct{}, 1)}
}

// join finds the flight for a version; the first to board one leads it.
func (c *catchUps) join(topic *Topic, after uint64) (f *flight, lead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept != nil && (time.Since(c.keptAt) > keepCatchUp || !topic.Holds(c.kept.result.Head)) {
		c.kept = nil
	}
	// Its head must not be before the version: the topic would tell again what lies between, or leap over it.
	if c.kept != nil && c.kept.after <= after && after <= c.kept.result.Head.Version {
		return c.kept, false
	}
	if c.waiting == nil {
		c.waiting, lead = &flight{done: make(chan struct{})}, true
	}
	c.waiting.passengers = append(c.waiting.passengers, after)
	return c.waiting, lead
}

// fly waits for passengers and for its turn, and reads the history for all of them. It goes on if its leader's client
// leaves, since there are others on board.
func (c *catchUps) fly(ctx context.Context, s *Store, f *flight) {
	defer close(f.done)
	<-time.After(boarding)
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	c.board(f)

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.bound.Timeout)
	defer cancel()
	snapshot := s.Snapshot()
	past, err := c.past(ctx, f.after, snapshot.Version())
	if err == nil && !leadsTo(past, snapshot, f.after) {
		err = errIncomplete
	}
	log := s.log.With("kind", s.kind.String(), "after", f.after, "clients", len(f.passengers))
	gone := errors.Is(err, cluster.ErrGone) || errors.Is(err, cluster.ErrTooMuch) || errors.Is(err, errIncomplete)
	switch {
	case err == nil:
		f.result = &CatchUp{After: f.after, Events: asEvents(past), Head: snapshot.Head}
		log.Info("clients are caught up", "events", len(past))
	case gone:
		f.err = fmt.Errorf("%w: %w", ErrNoCatchUp, err)
		log.Info("clients cannot be caught up", "error", err)
	default:
		f.err = fmt.Errorf("%w: catching up: %w", cluster.ErrUnavailable, err)
		log.Warn("catching up failed", "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = gone
	if err == nil {
		c.kept, c.keptAt = f, time.Now()
	}
}

// board closes the doors and chooses from where to fly: the oldest version; or, if the flight before found its oldest
// gone, the one in the middle, which halves those who wait, whatever comes of it.
func (c *catchUps) board(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = nil
	slices.Sort(f.passengers)
	f.after = f.passengers[0]
	if c.failed {
		f.after = f.passengers[len(f.passengers)/2]
	}
}

var errIncomplete = errors.New("the history does not lead to the present state")

// leadsTo reports whether what happened after a version ends in what a snapshot holds. A watch does not say whether it
// was ended before its time; this would show.
func leadsTo(past []cluster.Past, snapshot *Snapshot, after uint64) bool {
	newest := make(map[string]cluster.Past, len(past))
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

func asEvents(past []cluster.Past) []*Event {
	types := map[watch.EventType]stream.Type{watch.Added: stream.Added, watch.Modified: stream.Modified, watch.Deleted: stream.Deleted}
	events := make([]*Event, len(past))
	for i, p := range past {
		version := p.Object.Version()
		events[i] = &Event{Change: change{Type: types[p.Type], Object: p.Object}, Pos: version, ID: version}
	}
	return events
}
