package cache

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

var (
	jobs    = apitest.Jobs
	nodes   = apitest.Nodes
	widgets = cluster.Kind{Group: "example.com", Version: "v1", Resource: "widgets", Kind: "Widget", Namespaced: true, Watchable: true}
)

// runKinds runs the stores of a cluster; the returned function stops them.
func runKinds(t *testing.T, api *apitest.API, opts Options) (k *Kinds, stop func()) {
	t.Helper()
	opts.Topic = roomy
	k, err := NewKinds(api.Connect(t), opts, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- k.Run(ctx) }()
	return k, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// use calls Use, which must succeed.
func use(t *testing.T, k *Kinds, kind cluster.Kind) (store *Store, release func()) {
	t.Helper()
	store, release, err := k.Use(kind, "alice")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.WaitSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store, release
}

func kindsOf(k *Kinds) (names []string) {
	for _, store := range k.All() {
		names = append(names, store.Kind().String())
	}
	return names
}

func TestPreloadedKindsAreReadyTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods, jobs, nodes)
		api.Put("pods", "n/a")
		slow := make(chan struct{})
		api.Intercept(func(r *http.Request) *apitest.Fault {
			if strings.HasSuffix(r.URL.Path, "/jobs") {
				<-slow
			}
			return nil
		})
		k, stop := runKinds(t, api, Options{Preload: []string{"pods", "jobs.batch"}})
		defer stop()
		time.Sleep(10 * time.Second)
		if err := k.Ready(); !errors.Is(err, ErrNotSynced) || !strings.Contains(err.Error(), "jobs.batch") || strings.Contains(err.Error(), "pods") {
			t.Errorf("%v", err)
		}
		close(slow)
		synctest.Wait()
		if err := errors.Join(k.Ready(), k.Missing()); err != nil {
			t.Errorf("%v", err)
		}
		if names := kindsOf(k); !slices.Equal(names, []string{"pods", "jobs.batch"}) {
			t.Errorf("%q", names)
		}
	})
}

func TestKindIsWatchedOnFirstUseAndStoppedWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods, jobs)
		api.Put("jobs", "n/j")
		k, stop := runKinds(t, api, Options{Preload: []string{"pods"}, IdleAfter: time.Minute})
		defer stop()
		synctest.Wait()
		if n := api.Watches(); n != 1 {
			t.Fatalf("%d watches before use", n)
		}
		store, release := use(t, k, jobs)
		same, releaseSame := use(t, k, jobs)
		if store != same || api.Watches() != 2 || store.Snapshot().Len() != 1 {
			t.Errorf("two users have %d watches", api.Watches())
		}
		release()
		release() // once is enough
		time.Sleep(10 * time.Minute)
		if api.Watches() != 2 {
			t.Error("it was stopped under its second user")
		}
		releaseSame()
		time.Sleep(30 * time.Second)
		if again, release := use(t, k, jobs); again != store {
			t.Error("it was stopped too early")
		} else {
			release()
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if names := kindsOf(k); api.Watches() != 1 || !slices.Equal(names, []string{"pods"}) {
			t.Errorf("nobody uses it any more, but there are %d watches, of %q", api.Watches(), names)
		}
		api.Put("jobs", "n/k")
		fresh, release := use(t, k, jobs)
		defer release()
		if fresh == store || fresh.Snapshot().Len() != 2 {
			t.Errorf("used again, it has %d objects", fresh.Snapshot().Len())
		}
	})
}

func TestRefusedAndMissingKindsHoldNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unwatchable := cluster.Kind{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods", Kind: "PodMetrics", Namespaced: true}
		api := apitest.New(pods, jobs, nodes, unwatchable)
		refuse := func(r *http.Request) *apitest.Fault {
			if r.URL.Path == nodes.Path() {
				return apitest.Refuse(http.StatusForbidden)
			}
			return nil
		}
		api.Intercept(refuse)
		k, stop := runKinds(t, api, Options{Preload: []string{"pods", "nodes", "widgets.example.com", "pods.metrics.k8s.io"}})
		defer stop()
		time.Sleep(time.Second)
		synctest.Wait()
		if err := k.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
		err := k.Missing()
		for _, words := range []string{"cluster test: nodes", "may not list and watch nodes", "widgets.example.com", "pods.metrics.k8s.io", "cannot be listed and watched"} {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("it does not say %q: %v", words, err)
			}
		}
		began := time.Now()
		if store, release, err := k.Use(nodes, "alice"); err != nil {
			t.Error(err)
		} else if err := store.WaitSynced(t.Context()); !errors.Is(err, ErrRefused) || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		} else {
			release()
		}
		if _, _, err := k.Use(unwatchable, "alice"); !errors.Is(err, ErrNotWatchable) {
			t.Errorf("%v", err)
		}
		_, release := use(t, k, jobs)
		release()

		// The missing kinds come later.
		api.Intercept(nil)
		api.Serve(widgets, true)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if err := k.Missing(); err == nil || strings.Contains(err.Error(), "nodes") || strings.Contains(err.Error(), "widgets") {
			t.Errorf("%v", err)
		}
		if names := kindsOf(k); !slices.Equal(names, []string{"nodes", "pods", "widgets.example.com", "jobs.batch"}) &&
			!slices.Equal(names, []string{"nodes", "pods", "jobs.batch", "widgets.example.com"}) {
			t.Errorf("%q", names)
		}
	})
}

// A kind that the gateway may not list, or that is not there, holds nobody up while the API server is
// away, either: else all replicas would be taken out of service together.
func TestRefusedKindsHoldNobodyUpInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods, nodes)
		api.Fail("nodes", http.StatusForbidden)
		k, stop := runKinds(t, api, Options{Preload: []string{"pods", "nodes", "widgets.example.com"}})
		defer stop()
		time.Sleep(time.Minute)
		for _, outage := range []func(bool){api.Away, func(on bool) { // the other is of this list alone
			if api.Fail("nodes", http.StatusForbidden); on {
				api.Answer("nodes", func(*http.Request) *apitest.Fault { return apitest.Busy() })
			}
		}} {
			outage(true)
			for range 300 {
				time.Sleep(time.Second)
				if err := k.Ready(); err != nil {
					t.Fatalf("not ready: %v", err)
				}
				if err := k.Missing(); err == nil || !strings.Contains(err.Error(), "nodes") || !strings.Contains(err.Error(), "widgets") {
					t.Fatalf("missing: %v", err)
				}
			}
			outage(false)
			time.Sleep(2 * time.Minute)
		}
		api.Fail("nodes", 0)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if err := k.Missing(); err == nil || strings.Contains(err.Error(), "nodes") {
			t.Errorf("it may be listed, but: %v", err)
		}
	})
}

func TestClusterThatIsAwayAtStartIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		api.Away(true)
		k, stop := runKinds(t, api, Options{Preload: []string{"pods"}})
		defer stop()
		time.Sleep(5 * time.Minute)
		if err := k.Ready(); !errors.Is(err, cluster.ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") || k.Missing() != nil {
			t.Errorf("%v", err)
		}
		api.Away(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := k.Ready(); err != nil {
			t.Errorf("it is back, but: %v", err)
		}
	})
}

func TestClusterThatGoesAwayIsStaleUntilItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		api.Put("pods", "n/a")
		k, stop := runKinds(t, api, Options{Preload: []string{"pods"}})
		defer stop()
		store, release := use(t, k, pods)
		defer release()
		synctest.Wait()
		c, w := store.Topic().From(store.Topic().Head(), stream.AllNamespaces()), stream.NewWakeChannel()
		if batch, _, err := c.Next(make([]*Event, 0, 1), w); len(batch) > 0 || err != nil {
			t.Fatal(batch, err)
		}
		defer c.Disarm()
		api.Away(true)
		<-w.C // told, though nothing happened
		up := store.Upstream()
		if up.Live || !up.Synced || up.Err == nil || up.Refused() || time.Since(up.Since) > 0 || k.Ready() != nil {
			t.Errorf("%+v", up)
		}
		if store.Snapshot().Len() != 1 {
			t.Error("what is known is not shown")
		}
		if batch, _, err := c.Next(make([]*Event, 0, 1), w); len(batch) > 0 || err != nil {
			t.Fatal(batch, err)
		}
		time.Sleep(time.Minute)
		api.Put("pods", "n/b")
		api.Away(false)
		<-w.C
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if up := store.Upstream(); !up.Live || up.Err != nil || store.Snapshot().Len() != 2 {
			t.Errorf("%+v with %d objects", up, store.Snapshot().Len())
		}
	})
}

func TestEndWaitsForAllAndServesNobodyAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods, jobs)
		k, stop := runKinds(t, api, Options{Preload: []string{"pods", "widgets.example.com"}})
		_, release := use(t, k, jobs)
		stop()
		synctest.Wait()
		if n := api.Watches(); n != 0 {
			t.Errorf("%d watches are left", n)
		}
		for _, kind := range []cluster.Kind{jobs, nodes} {
			if _, _, err := k.Use(kind, "alice"); !errors.Is(err, ErrClosed) {
				t.Errorf("%v", err)
			}
		}
		release()
	})
}

// requestsOutlive is how long a request to the cluster may outlive its caller.
const requestsOutlive = 15 * time.Second

// A goroutine that waits for a store to start must not keep Run from ending.
func TestEndWhilePreloadingDoesNotHang(t *testing.T) {
	for n := range 30 {
		synctest.Test(t, func(t *testing.T) {
			api := apitest.New(pods, jobs, nodes)
			api.Intercept(func(*http.Request) *apitest.Fault {
				time.Sleep(time.Second)
				return nil
			})
			_, stop := runKinds(t, api, Options{Preload: []string{"pods", "jobs.batch", "nodes"}})
			time.Sleep(2*time.Second + time.Duration(n%3-1)) // discovery ends, and the stores begin
			stop()
			time.Sleep(requestsOutlive)
		})
	}
}

func TestIndexesThatAreNoneAreRefused(t *testing.T) {
	_, err := NewKinds(apitest.New().Connect(t), Options{Indexes: map[string][]string{"pods": {"spec..nodeName"}}}, quiet)
	if err == nil || !strings.Contains(err.Error(), "cache.indexes.pods") || !strings.Contains(err.Error(), "spec..nodeName") {
		t.Errorf("%v", err)
	}
}
