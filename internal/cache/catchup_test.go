package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// pastServer answers for the API server: it has a change at each version from oldest on.
type pastServer struct {
	mu     sync.Mutex
	oldest uint64
	err    error
	asked  []uint64
}

func (p *pastServer) past(_ context.Context, after, until uint64) ([]cluster.Past, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, after)
	time.Sleep(time.Second) // a quiet kind's watch ends by its time-out
	if p.err != nil {
		return nil, p.err
	}
	if after < p.oldest {
		return nil, fmt.Errorf("%w: after %d", cluster.ErrGone, after)
	}
	var past []cluster.Past
	for version := after + 1; version <= until; version++ {
		o, err := cluster.NewObject(fmt.Sprintf(`{"metadata":{"namespace":"a","name":"b","resourceVersion":"%d"}}`, version))
		if err != nil {
			return nil, err
		}
		past = append(past, cluster.Past{Type: watch.Modified, Object: o})
	}
	return past, nil
}

func restarted(t *testing.T, server *pastServer, version uint64) *Store {
	t.Helper()
	store, err := newStore(cluster.Kind{Resource: "pods", Version: "v1", Kind: "Pod"}, stream.Options{Events: 8, Bytes: 1 << 20},
		nil, func() {}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	store.catchUps = newCatchUps(CatchUpBound{Events: 1000, Bytes: 1 << 20, Timeout: 10 * time.Second}, server.past)
	store.state.put(changedAt(t, version))
	store.topic.Begin(version)
	store.upstream.setSynced()
	return store
}

// changedAt is the only object there is, at a version.
func changedAt(t *testing.T, version uint64) *cluster.Object {
	t.Helper()
	o, err := cluster.NewObject(fmt.Sprintf(`{"metadata":{"namespace":"a","name":"b","resourceVersion":"%d"}}`, version))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestCrowdIsCaughtUpWithOneWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pastServer{oldest: 100}
		store := restarted(t, server, 500)
		var crowd sync.WaitGroup
		for i := range 1000 {
			crowd.Go(func() {
				after := uint64(400 + i%100)
				caught, err := store.CatchUp(t.Context(), after)
				if err != nil {
					t.Error(err)
					return
				}
				events := caught.From(after)
				if uint64(len(events)) != 500-after || len(events) > 0 && events[0].Pos != after+1 {
					t.Errorf("after %d: %d events", after, len(events))
				}
			})
		}
		crowd.Wait()
		if len(server.asked) != 1 || server.asked[0] != 400 {
			t.Errorf("asked after %v, want once after 400", server.asked)
		}
		if _, err := store.CatchUp(t.Context(), 450); err != nil || len(server.asked) != 1 {
			t.Errorf("who comes later is asked for again: %v, %v", server.asked, err)
		}
		if _, err := store.CatchUp(t.Context(), 300); err != nil || len(server.asked) != 2 {
			t.Errorf("who is further back: %v, %v", server.asked, err)
		}
	})
}

// The oldest of a crowd must not keep the others from being caught up, nor cost a watch for each of them.
func TestTooOldAmongTheCrowdAreAloneInBeingReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pastServer{oldest: 250}
		store := restarted(t, server, 500)
		var crowd sync.WaitGroup
		for after := uint64(1); after <= 400; after++ {
			crowd.Go(func() {
				_, err := store.CatchUp(t.Context(), after)
				if old := after < 250; old != errors.Is(err, ErrNoCatchUp) || !old && err != nil {
					t.Errorf("after %d: %v", after, err)
				}
			})
		}
		crowd.Wait()
		if len(server.asked) > 30 {
			t.Errorf("%d watches for 400 clients", len(server.asked))
		}
	})
}

func TestCatchUpWithoutAPIServerIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pastServer{err: fmt.Errorf("%w: refused", cluster.ErrUnavailable)}
		store := restarted(t, server, 500)
		var crowd sync.WaitGroup
		for after := range uint64(100) {
			crowd.Go(func() {
				if _, err := store.CatchUp(t.Context(), after); !errors.Is(err, cluster.ErrUnavailable) {
					t.Errorf("after %d: %v, want an error upon which the client keeps its position", after, err)
				}
			})
		}
		crowd.Wait()
		if len(server.asked) != 1 {
			t.Errorf("an API server that is away was asked %d times", len(server.asked))
		}
	})
}

// A relist has left a gap, and a client stands in it; what was caught up before the gap is of no use to it.
func TestCatchUpFromBeforeAGapIsNotUsedForAPositionWithinIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pastServer{}
		store := restarted(t, server, 500)
		if _, err := store.CatchUp(t.Context(), 490); err != nil {
			t.Fatal(err)
		}
		store.pending = map[string]*cluster.Object{"a/b": changedAt(t, 600)}
		store.listed(600)
		if _, err := store.topic.Resume(stream.UpTo(550), stream.AllNamespaces()); !errors.Is(err, stream.ErrExpired) {
			t.Fatalf("a position within a gap can be resumed: %v", err)
		}
		caught, err := store.CatchUp(t.Context(), 550)
		if err != nil || len(server.asked) != 2 || caught.Head.Version != 600 || len(caught.From(550)) != 50 {
			t.Errorf("asked after %v (%v), caught up to %d with %d events", server.asked, err, caught.Head.Version, len(caught.From(550)))
		}
	})
}

func TestCatchUpIsReadAgainOnceTheRingHasMovedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pastServer{}
		store := restarted(t, server, 500)
		if _, err := store.CatchUp(t.Context(), 490); err != nil {
			t.Fatal(err)
		}
		for version := uint64(501); version <= 520; version++ {
			store.change(version, func() []change { return store.state.apply(changedAt(t, version), nil) })
		}
		caught, err := store.CatchUp(t.Context(), 495)
		if err != nil || len(server.asked) != 2 || len(caught.From(495)) != 25 || !store.topic.Holds(caught.Head) {
			t.Errorf("asked after %v (%v), told %d events, want those up to 520", server.asked, err, len(caught.From(495)))
		}
	})
}

// A watch that is ended before its time looks like one that is complete.
func TestHistoryThatDoesNotLeadToTheStateIsNotTold(t *testing.T) {
	object := func(name string, version uint64) *cluster.Object {
		o, err := cluster.NewObject(fmt.Sprintf(`{"metadata":{"name":"%s","resourceVersion":"%d"}}`, name, version))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	whole := []cluster.Past{
		{Type: watch.Added, Object: object("a", 101)}, {Type: watch.Deleted, Object: object("gone", 102)},
		{Type: watch.Modified, Object: object("a", 103)}, {Type: watch.Added, Object: object("passing", 104)},
		{Type: watch.Deleted, Object: object("passing", 105)}, {Type: watch.Added, Object: object("b", 106)},
	}
	for told := range len(whole) + 1 {
		synctest.Test(t, func(t *testing.T) {
			store := restarted(t, &pastServer{}, 50)
			store.state.put(object("a", 103))
			store.state.put(object("b", 106))
			store.state.put(object("old", 99))
			store.topic.Progress(110)
			store.catchUps.past = func(context.Context, uint64, uint64) ([]cluster.Past, error) { return whole[:told], nil }
			caught, err := store.CatchUp(t.Context(), 100)
			if complete := told == len(whole); complete != (err == nil) || !complete && !errors.Is(err, ErrNoCatchUp) {
				t.Errorf("after %d of %d events: %v, %v", told, len(whole), caught, err)
			}
		})
	}
}
