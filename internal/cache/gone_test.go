package cache

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

var (
	widget           = "n/w"
	widgetDefinition = "widgets.example.com"
)

// waitOn arms a reader at the head of a store's topic, and returns its channel.
func waitOn(t *testing.T, store *Store) *stream.WakeChannel {
	t.Helper()
	c, w := store.Topic().From(store.Topic().Head(), stream.AllNamespaces()), stream.NewWakeChannel()
	if batch, _, err := c.Next(make([]*Event, 0, 1), w); len(batch) > 0 || err != nil {
		t.Fatal(batch, err)
	}
	t.Cleanup(c.Disarm)
	return w
}

func expectGone(t *testing.T, store *Store) {
	t.Helper()
	if err := store.Err(); !errors.Is(err, ErrNotServed) || !strings.Contains(err.Error(), store.Kind().String()) {
		t.Errorf("it is not gone: %v", err)
	}
	if err := store.WaitSynced(t.Context()); !errors.Is(err, ErrNotServed) {
		t.Errorf("a new reader is told: %v", err)
	}
}

// Without a watch on the definitions, the API server's 404 ends a store, at once if discovery agrees.
func TestKindThatTheAPIServerNoLongerKnowsIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods, widgets)
		api.Put("widgets", widget)
		k, stop := runKinds(t, api, Options{})
		defer stop()
		store, release := use(t, k, widgets)
		defer release()
		other, releaseOther := use(t, k, pods)
		defer releaseOther()
		w := waitOn(t, store)
		api.Serve(widgets, false)
		api.CutWatches()
		<-w.C // for the watch that broke off
		<-store.Gone()
		expectGone(t, store)
		synctest.Wait()
		if err := other.Err(); err != nil {
			t.Errorf("pods are gone, too: %v", err)
		}
		if names := kindsOf(k); len(names) != 1 {
			t.Errorf("these still run: %q", names)
		}
		if _, err := k.Cluster().Resolve(t.Context(), "example.com", "v1", "widgets"); !errors.Is(err, cluster.ErrNoKind) {
			t.Errorf("it is still resolved: %v", err)
		}

		// The kind comes back, and gets another store.
		api.Serve(widgets, true)
		api.Put("widgets", "n/new")
		time.Sleep(1001 * time.Millisecond)
		kind, err := k.Cluster().Resolve(t.Context(), "example.com", "v1", "widgets")
		if err != nil {
			t.Fatal(err)
		}
		again, releaseAgain := use(t, k, kind)
		defer releaseAgain()
		if again == store || again.Err() != nil || again.Snapshot().Get("n", "new") == nil {
			t.Errorf("it is back, but its store is %v", again.Err())
		}
	})
}

// Discovery documents lag behind by seconds. A kind that the API server denies twice is gone all the same.
func TestKindIsGoneAlsoIfDiscoveryStillHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(widgets)
		api.Intercept(func(r *http.Request) *apitest.Fault {
			if r.URL.Path == widgets.Path() {
				return apitest.Refuse(http.StatusNotFound)
			}
			return nil
		})
		k, stop := runKinds(t, api, Options{})
		defer stop()
		store, release, err := k.Use(widgets, "alice")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		<-store.Gone()
		if ctx.Err() != nil {
			t.Error("it took more than ten seconds")
		}
		expectGone(t, store)
	})
}

// A kind is not gone because its cluster is away, refuses, or was restored: its readers keep what they have.
func TestKindOfAClusterThatFailsIsNotGone(t *testing.T) {
	for name, fault := range map[string]func(*apitest.API){
		"away": func(api *apitest.API) { api.Away(true) },
		"refused": func(api *apitest.API) {
			api.Intercept(func(*http.Request) *apitest.Fault { return apitest.Refuse(http.StatusForbidden) })
			api.CutWatches()
		},
		"discovery fails": func(api *apitest.API) {
			api.Stale("example.com", true)
			api.CutWatches()
		},
		"one 404 while discovery has it": func(api *apitest.API) {
			missed := false
			api.Intercept(func(r *http.Request) *apitest.Fault {
				if r.URL.Path != widgets.Path() || missed {
					return nil
				}
				missed = true
				return apitest.Refuse(http.StatusNotFound)
			})
			api.CutWatches()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.New(widgets, apitest.Definitions)
				api.Put("customresourcedefinitions", widgetDefinition)
				api.Put("widgets", widget)
				k, stop := runKinds(t, api, Options{})
				defer stop()
				store, release := use(t, k, widgets)
				defer release()
				if _, err := k.Cluster().Resolve(t.Context(), "example.com", "v1", "widgets"); err != nil {
					t.Fatal(err)
				}
				fault(api)
				time.Sleep(time.Minute)
				if kind, err := k.Cluster().Resolve(t.Context(), "example.com", "v1", "widgets"); err != nil || kind != widgets {
					t.Errorf("it is not resolved any more: %v", err)
				}
				same, releaseSame := use(t, k, widgets)
				defer releaseSame()
				if store.Err() != nil || same != store || store.Snapshot().Len() != 1 {
					t.Errorf("%v", store.Err())
				}
			})
		})
	}
}

// A definition that is removed ends the stores of all its versions at once, before any watch has broken off.
func TestRemovedDefinitionEndsItsStoresAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newer := widgets
		newer.Version = "v2"
		api := apitest.New(pods, widgets, newer, apitest.Definitions)
		api.Put("customresourcedefinitions", widgetDefinition)
		api.Put("customresourcedefinitions", "widgets.example.org")
		k, stop := runKinds(t, api, Options{})
		defer stop()
		var stores []*Store
		for _, kind := range []cluster.Kind{widgets, newer, pods} {
			store, release := use(t, k, kind)
			defer release()
			stores = append(stores, store)
		}
		synctest.Wait()
		began := time.Now()
		api.Delete("customresourcedefinitions", "widgets.example.org")
		api.Delete("customresourcedefinitions", "widgets.example.com")
		<-stores[0].Gone()
		<-stores[1].Gone()
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
		expectGone(t, stores[0])
		expectGone(t, stores[1])
		if err := stores[2].Err(); err != nil {
			t.Errorf("pods: %v", err)
		}
	})
}

// The removal of a definition may be told late, when the definition has been made anew. It does not concern the new
// kind.
func TestLateRemovalDoesNotEndTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(widgets)
		k, stop := runKinds(t, api, Options{})
		defer stop()
		old, releaseOld := use(t, k, widgets)
		defer releaseOld()
		removed := api.Put("widgets", widget)
		old.end("it is over")
		synctest.Wait()
		store, release := use(t, k, widgets)
		defer release()
		(*definitions)(k).DefinitionRemoved("widgets.example.com", removed)
		if err := store.Err(); err != nil {
			t.Error(err)
		}
		(*definitions)(k).DefinitionRemoved("widgets.example.com", removed+1)
		expectGone(t, store)
	})
}

// A definition that was removed and made anew while the gateway was cut off is another kind.
func TestDefinitionThatWasReplacedUnseenEndsItsStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(widgets, apitest.Definitions)
		api.Put("customresourcedefinitions", widgetDefinition)
		k, stop := runKinds(t, api, Options{})
		defer stop()
		store, release := use(t, k, widgets)
		defer release()
		synctest.Wait()
		api.Away(true)
		api.Delete("customresourcedefinitions", "widgets.example.com")
		api.Put("customresourcedefinitions", widgetDefinition)
		api.Compact()
		api.Away(false)
		<-store.Gone()
		expectGone(t, store)
	})
}

// A kind that is installed, or changes its versions, is found at once, by a request and by a preload that waits.
func TestInstalledKindIsThereAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods, apitest.Definitions)
		k, stop := runKinds(t, api, Options{Preload: []string{"widgets.example.com"}})
		defer stop()
		time.Sleep(10 * time.Minute)
		if err := k.Missing(); !errors.Is(err, cluster.ErrNoKind) {
			t.Fatalf("%v", err)
		}
		for range 3 {
			api.Serve(widgets, true)
			api.Put("customresourcedefinitions", widgetDefinition)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if err := k.Missing(); err != nil {
				t.Errorf("two seconds after it was installed: %v", err)
			}
			api.Serve(widgets, false)
			api.Delete("customresourcedefinitions", "widgets.example.com")
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if err := errors.Join(k.Missing(), k.Ready()); !errors.Is(err, cluster.ErrNoKind) {
				t.Errorf("two seconds after it was removed: %v", err)
			}
		}
	})
}

// The users of a cluster that is removed from the gateway are told, and no new use begins.
func TestRemovedClusterEndsItsStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods, jobs)
		k, stop := runKinds(t, api, Options{Preload: []string{"jobs.batch"}})
		defer stop()
		store, release := use(t, k, pods)
		defer release()
		w := waitOn(t, store)
		k.Remove()
		<-w.C
		expectGone(t, store)
		if _, _, err := k.Use(jobs, "alice"); !errors.Is(err, ErrNotServed) {
			t.Errorf("%v", err)
		}
	})
}
