package cache

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/stream"
)

func TestQuietNamespacesAreKnownToBeUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		api.Put("pods", "quiet/a")
		f, stop := fill(t, api, stream.Options{Events: 100, Bytes: 1 << 20})
		defer stop()
		synctest.Wait()
		listed := f.Snapshot().Version()
		expect := func(when string, scope stream.NamespaceSet, want uint64) {
			t.Helper()
			synctest.Wait()
			snapshot, changed := f.View(scope)
			if changed.Version != want || snapshot.Version() < want {
				t.Errorf("%s: changed at %+v, not %d; the snapshot is of %d", when, changed, want, snapshot.Version())
			}
		}
		quiet, busy := stream.Namespaces("quiet"), stream.Namespaces("busy")
		expect("listed", quiet, listed)
		expect("listed", stream.AllNamespaces(), listed)
		put := api.Put("pods", "busy/b")
		expect("put", quiet, listed)
		expect("put", busy, put)
		expect("put", stream.Namespaces("quiet", "busy"), put)
		expect("put", stream.AllNamespaces(), put)
		deleted := api.Delete("pods", "busy/b")
		expect("deleted", busy, deleted)
		expect("deleted", quiet, listed)
		api.Bookmark()
		expect("bookmark", stream.AllNamespaces(), deleted)
	})
}

// What came and went in a gap was not seen, but another replica may have shown it to a client. So a relist forgets
// when the namespaces changed.
func TestRelistForgetsWhenNamespacesChanged(t *testing.T) {
	store, err := newStore(pods, stream.Options{Events: 10, Bytes: 1 << 20}, nil, func() {}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	store.listed(5, 0)
	store.pending = nil
	store.listed(9, 0)
	if _, changed := store.View(stream.Namespaces("any")); changed.Version != 9 {
		t.Errorf("unchanged since %+v", changed)
	}
}

func TestMemoryOfNamespacesIsBounded(t *testing.T) {
	l := lastChanges{}
	l.begin(stream.Revision{Version: 1})
	for i := range 3 * maxLastChanges {
		o := newObject(t, fmt.Sprintf("n%d/a", i))
		l.note(stream.Revision{Version: uint64(i + 2)}, []change{{Object: o}})
		if got := l.in(stream.Namespaces(o.GetNamespace())); got.Version != uint64(i+2) {
			t.Fatalf("changed at %+v, not %d", got, i+2)
		}
	}
	if len(l.namespaces) > maxLastChanges || l.in(stream.Namespaces("n0")).Version <= 2 {
		t.Errorf("%d namespaces; the first is said to have changed at %+v", len(l.namespaces), l.in(stream.Namespaces("n0")))
	}
}

func TestVersionIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		f, stop := fill(t, api, stream.Options{Events: 100, Bytes: 1 << 20})
		defer stop()
		synctest.Wait()
		now := f.Snapshot().Version()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if have := f.Await(ctx, now); have != now {
			t.Errorf("has %d", have)
		}
		reached := make(chan uint64)
		for range 3 {
			go func() { reached <- f.Await(ctx, now+2) }()
		}
		synctest.Wait()
		api.Put("pods", "n/a")
		synctest.Wait()
		select {
		case have := <-reached:
			t.Fatalf("did not wait: has %d", have)
		default:
		}
		api.Skip(1)
		api.Bookmark()
		for range 3 {
			if have := <-reached; have != now+2 {
				t.Errorf("has %d, not %d", have, now+2)
			}
		}
		if have := f.Await(ctx, now+3); have != now+2 || ctx.Err() == nil {
			t.Errorf("has %d; %v", have, ctx.Err())
		}
	})
}
