package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// A server that finds its lists' version by comparing texts gives one that is less than its
// objects' own. What was seen is not undone by that.
func TestListBehindItsOwnObjectsIsNoRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		api.Put("pods", "n/a")
		api.Put("pods", "n/b")
		api.Put("pods", "n/c")
		var said atomic.Int32 // which lists' version is said; 0: the true one
		said.Store(98)
		api.Intercept(func(r *http.Request) *apitest.Fault {
			if r.URL.Path != pods.Path() || r.URL.Query().Get("watch") == "true" || said.Load() == 0 {
				return nil
			}
			var items []string
			for _, key := range api.Keys("pods") {
				items = append(items, api.Objects("pods")[key])
			}
			return &apitest.Fault{Body: fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"},"items":[%s]}`, said.Load(), strings.Join(items, ","))}
		})
		store, stop := fill(t, api, roomy)
		defer stop()
		synctest.Wait()
		if head := store.Topic().Head().Version; head != 1003 {
			t.Errorf("listed at %d", head)
		}
		c := store.Topic().From(store.Snapshot().Head, stream.AllNamespaces())
		api.Put("pods", "n/b")
		api.Put("pods", "n/gone")
		synctest.Wait()
		api.ExpireWatches()
		synctest.Wait()
		api.Put("pods", "n/a")
		api.Delete("pods", "n/gone") // the newest of all: what is left is older than what was seen
		time.Sleep(time.Minute)
		expectContent(t, "after the list", store.Snapshot(), api)
		if n := len(told(t, c)); n != 4 || store.restarts.Load() != 0 {
			t.Errorf("%d events, and versions went back %d times", n, store.restarts.Load())
		}
		// When versions do go back, it is noticed all the same.
		api.ExpireWatches()
		api.Renumber(7)
		api.Put("pods", "n/new")
		said.Store(5)
		time.Sleep(3 * time.Minute)
		expectContent(t, "after a restart", store.Snapshot(), api)
		if store.restarts.Load() != 1 {
			t.Errorf("versions went back %d times", store.restarts.Load())
		}
	})
}

// A kind whose versions are no numbers will not be served, so nobody waits for it.
func TestVersionsThatAreNoNumbersAreRefusedAtOnce(t *testing.T) {
	for name, list := range map[string]string{
		"the list's":    `{"metadata":{"resourceVersion":"eyJhIjoiNyJ9"},"items":[]}`,
		"an object's":   `{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","resourceVersion":"eyJhIjoiNyJ9"}}]}`,
		"not canonical": `{"metadata":{"resourceVersion":"007"},"items":[]}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			api := apitest.New(pods)
			api.Put("pods", "n/a")
			var opaque atomic.Bool
			opaque.Store(true)
			api.Intercept(func(r *http.Request) *apitest.Fault {
				if opaque.Load() && r.URL.Path == pods.Path() {
					return &apitest.Fault{Body: list}
				}
				return nil
			})
			store, stop := fill(t, api, roomy)
			defer stop()
			began := time.Now()
			if err := store.WaitSynced(t.Context()); !errors.Is(err, ErrVersions) || !errors.Is(err, cluster.ErrNoNumber) {
				t.Errorf("%s: %v", name, err)
			}
			if err := store.WaitReachable(t.Context()); !errors.Is(err, ErrVersions) || time.Since(began) > 0 {
				t.Errorf("%s: %v after %s", name, err, time.Since(began))
			}
			opaque.Store(false) // another server takes its place
			time.Sleep(time.Minute)
			if err := store.WaitSynced(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// Servers behind APIServices have versions of their own, which say nothing of others'.
func TestAggregatedServerThatIsRestartedTouchesNoOtherKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gauges := cluster.Kind{Group: "metering.example.org", Version: "v1", Resource: "gauges", Kind: "Gauge", Namespaced: true, Watchable: true}
		behind := apitest.New(gauges)
		api := apitest.New(pods)
		api.Aggregated = map[string]*apitest.API{gauges.Group: behind}
		api.Put("pods", "n/a")
		behind.Put("gauges", "n/a")
		kinds, err := NewKinds(api.Connect(t), Options{Topic: roomy}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- kinds.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		stores := map[string]*Store{}
		look := func() map[string]string {
			now := map[string]string{}
			for name, store := range stores {
				if now[name], err = kinds.Cluster().EpochOf(t.Context(), store.Kind(), store.Followed()); err != nil {
					t.Fatal(err)
				}
			}
			return now
		}
		for _, name := range []string{"pods", "gauges.metering.example.org"} {
			kind, err := kinds.Cluster().Named(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			store, release, err := kinds.Use(kind, "")
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			if err := store.WaitSynced(t.Context()); err != nil {
				t.Fatal(err)
			}
			stores[kind.Resource] = store
		}
		epochs := look()
		ofPods, ofGauges := stores["pods"].Topic().From(stores["pods"].Snapshot().Head, stream.AllNamespaces()), stores["gauges"].Topic().From(stores["gauges"].Snapshot().Head, stream.AllNamespaces())
		behind.Renumber(1)
		behind.Put("gauges", "n/b")
		time.Sleep(time.Minute)
		if _, _, err := ofGauges.Next(make([]*Event, 1), nil); !errors.Is(err, stream.ErrEpoch) {
			t.Errorf("gauges: %v", err)
		}
		if _, _, err := ofPods.Next(nil, nil); err != nil {
			t.Errorf("pods: %v", err)
		}
		if now := look(); now["pods"] != epochs["pods"] || now["gauges"] == epochs["gauges"] {
			t.Errorf("the epochs are %v, were %v", now, epochs)
		}
		epochs = look()
		api.Restore(1000)
		time.Sleep(time.Minute)
		if now := look(); now["pods"] == epochs["pods"] || now["gauges"] == epochs["gauges"] {
			t.Errorf("after a restore the epochs are %v, were %v", now, epochs)
		}
	})
}
