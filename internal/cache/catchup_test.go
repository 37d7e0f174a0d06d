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

// pastServer stands in for the API server: it has one change at each version from oldest on.
type pastServer struct {
	mu     sync.Mutex
	oldest uint64
	err    error
	asked  []uint64
	left   int // how often the caller left before the answer
}

func (p *pastServer) past(ctx context.Context, after, until uint64) ([]cluster.PastChange, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, after)
	select {
	case <-time.After(time.Second): // a quiet kind's watch ends by its time-out
	case <-ctx.Done():
		p.left++
		return nil, ctx.Err()
	}
	if p.err != nil {
		return nil, p.err
	}
	if after < p.oldest {
		return nil, fmt.Errorf("%w: after %d", cluster.ErrExpired, after)
	}
	var past []cluster.PastChange
	for version := after + 1; version <= until; version++ {
		o, err := cluster.NewObject(fmt.Sprintf(`{"metadata":{"namespace":"a","name":"b","resourceVersion":"%d"}}`, version))
		if err != nil {
			return nil, err
		}
		past = append(past, cluster.PastChange{Type: watch.Modified, Object: o})
	}
	return past, nil
}

// restarted returns a store of a gateway that has just listed everything, at a version.
func restarted(t *testing.T, server *pastServer, version uint64) *Store {
	t.Helper()
	store := listedAt(t, server, version)
	catchUp(t, store)
	return store
}

// catchUp runs the store's catch-ups until the test ends.
func catchUp(t *testing.T, store *Store) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		store.catchUps.run(ctx, store)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// listedAt returns a store that was listed at a version; its catch-ups do not run yet.
func listedAt(t *testing.T, server *pastServer, version uint64) *Store {
	t.Helper()
	store, err := newStore(cluster.Kind{Resource: "pods", Version: "v1", Kind: "Pod"}, stream.Options{Events: 8, Bytes: 1 << 20},
		nil, func() {}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	bound := CatchUpBound{Events: 1000, Bytes: 1 << 20, Timeout: 10 * time.Second}
	store.catchUps = newCatchUps(bound, &keptCatchUps{bound: bound.Bytes}, server.past)
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
				caught, err := store.CatchUp(t.Context(), after, 0)
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
		if _, err := store.CatchUp(t.Context(), 450, 0); err != nil || len(server.asked) != 1 {
			t.Errorf("who comes later is asked for again: %v, %v", server.asked, err)
		}
		if _, err := store.CatchUp(t.Context(), 300, 0); err != nil || len(server.asked) != 2 {
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
				_, err := store.CatchUp(t.Context(), after, 0)
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
				if _, err := store.CatchUp(t.Context(), after, 0); !errors.Is(err, cluster.ErrUnavailable) {
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

// A relist left a gap, and a client's position lies within it. A catch-up that leads to before the gap does not help
// that client.
func TestCatchUpFromBeforeAGapIsNotUsedForAPositionWithinIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pastServer{}
		store := restarted(t, server, 500)
		if _, err := store.CatchUp(t.Context(), 490, 0); err != nil {
			t.Fatal(err)
		}
		store.pending = map[string]*cluster.Object{"a/b": changedAt(t, 600)}
		store.listed(600, 0)
		if _, err := store.topic.Resume(stream.UpTo(550), stream.AllNamespaces()); !errors.Is(err, stream.ErrExpired) {
			t.Fatalf("a position within a gap can be resumed: %v", err)
		}
		caught, err := store.CatchUp(t.Context(), 550, 0)
		if err != nil || len(server.asked) != 2 || caught.Head.Version != 600 || len(caught.From(550)) != 50 {
			t.Errorf("asked after %v (%v), caught up to %d with %d events", server.asked, err, caught.Head.Version, len(caught.From(550)))
		}
	})
}

func TestCatchUpIsReadAgainOnceTheRingHasMovedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pastServer{}
		store := restarted(t, server, 500)
		if _, err := store.CatchUp(t.Context(), 490, 0); err != nil {
			t.Fatal(err)
		}
		for version := uint64(501); version <= 520; version++ {
			store.change(version, func() []change { return store.state.apply(changedAt(t, version), nil) })
		}
		caught, err := store.CatchUp(t.Context(), 495, 0)
		if err != nil || len(server.asked) != 2 || len(caught.From(495)) != 25 || !store.topic.Holds(caught.Head) {
			t.Errorf("asked after %v (%v), told %d events, want those up to 520", server.asked, err, len(caught.From(495)))
		}
	})
}

// A watch that the API server ends too early looks like a complete one.
func TestHistoryThatDoesNotLeadToTheStateIsNotTold(t *testing.T) {
	object := func(name string, version uint64) *cluster.Object {
		o, err := cluster.NewObject(fmt.Sprintf(`{"metadata":{"name":"%s","resourceVersion":"%d"}}`, name, version))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	whole := []cluster.PastChange{
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
			store.catchUps.past = func(context.Context, uint64, uint64) ([]cluster.PastChange, error) { return whole[:told], nil }
			caught, err := store.CatchUp(t.Context(), 100, 0)
			if complete := told == len(whole); complete != (err == nil) || !complete && !errors.Is(err, ErrNoCatchUp) {
				t.Errorf("after %d of %d events: %v, %v", told, len(whole), caught, err)
			}
		})
	}
}

// A catch-up belongs to its store: the client that asked first may leave, and the others are still served.
func TestWhoAskedFirstForACatchUpMayLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pastServer{}
		store := restarted(t, server, 500)
		first, leave := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer leave()
		var waiting sync.WaitGroup
		waiting.Go(func() {
			began := time.Now()
			if _, err := store.CatchUp(first, 400, 0); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 500*time.Millisecond {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
		synctest.Wait()
		waiting.Go(func() {
			if caught, err := store.CatchUp(t.Context(), 450, 0); err != nil || len(caught.From(450)) != 50 {
				t.Errorf("who came later: %v", err)
			}
		})
		waiting.Wait()
		if len(server.asked) != 1 || server.left != 0 {
			t.Errorf("asked after %v, %d answers were not waited for", server.asked, server.left)
		}
	})
}

// A catch-up that all clients have left is not read on. One that no client waits for any more is not begun.
func TestCatchUpThatAllHaveLeftEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pastServer{}
		store := restarted(t, server, 500)
		for asked, patience := range map[int]time.Duration{0: boarding / 2, 1: time.Second / 2} {
			server.asked = nil
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			if _, err := store.CatchUp(ctx, 400, 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			cancel()
			time.Sleep(boarding)
			synctest.Wait()
			if len(server.asked) != asked || server.left != asked {
				t.Errorf("after %v: asked after %v, left %d times", patience, server.asked, server.left)
			}
			server.left = 0
		}
		if caught, err := store.CatchUp(t.Context(), 400, 0); err != nil || len(caught.From(400)) != 100 {
			t.Errorf("who comes after them: %v", err)
		}
	})
}

func TestCatchUpOfAStoreThatEndsIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := listedAt(t, &pastServer{}, 500)
		ctx, end := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, end)
		var waiting sync.WaitGroup
		waiting.Go(func() { store.catchUps.run(ctx, store) })
		for _, later := range []time.Duration{0, 100 * time.Millisecond} { // one is on the way, one waits for the next
			waiting.Go(func() {
				time.Sleep(later)
				if _, err := store.CatchUp(t.Context(), 400, 0); !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			})
		}
		waiting.Wait()
		if _, err := store.CatchUp(t.Context(), 400, 0); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

func TestCatchUpIsForgottenAfterItsMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := restarted(t, &pastServer{}, 500)
		if _, err := store.CatchUp(t.Context(), 400, 0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := store.catchUps.kept.len(); n != 1 {
			t.Fatalf("%d are kept", n)
		}
		time.Sleep(keepCatchUp)
		synctest.Wait()
		if n := store.catchUps.kept.len(); n != 0 {
			t.Errorf("%d are held by nobody's use", n)
		}
	})
}

func (k *keptCatchUps) len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.kept)
}

// After a restart each kind may be caught up at the same time. What is kept is bounded for all of them together.
func TestKeptCatchUpsAreBoundedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pastServer{}
		kept := &keptCatchUps{bound: 100 * (eventSize + int64(changedAt(t, 500).Size()))}
		var stores []*Store
		for range 3 {
			store := listedAt(t, server, 500)
			store.catchUps.kept = kept
			stores = append(stores, store)
			catchUp(t, store)
			if _, err := store.CatchUp(t.Context(), 450, 0); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		total := int64(0)
		for _, k := range kept.kept {
			total += k.bytes
		}
		if total > kept.bound || len(kept.kept) != 2 {
			t.Errorf("%d results of %d bytes are kept", len(kept.kept), total)
		}
		for i, asked := range []int{4, 4, 4} { // the first is read again, and takes the second's place
			if _, err := stores[(3-i)%3].CatchUp(t.Context(), 450, 0); err != nil || i == 0 && len(server.asked) != asked {
				t.Errorf("asked %d times, %v", len(server.asked), err)
			}
		}
	})
}
