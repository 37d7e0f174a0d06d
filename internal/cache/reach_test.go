package cache

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/stream"
)

// reachable runs the stores of a cluster and uses that of pods.
func reachable(t *testing.T, api *apitest.API, test func(*Store)) {
	kinds, stop := runKinds(t, api, Options{Topic: roomy})
	defer stop()
	store, release, err := kinds.Use(pods, "alice")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := store.WaitSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
	test(store)
}

func TestVersionOfAnotherKindIsReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		api.Put("pods", "n/a")
		reachable(t, api, func(store *Store) {
			for range 5 {
				api.Skip(3)
				began := time.Now()
				if have := store.Reach(t.Context(), api.Version()); have != api.Version() || time.Since(began) > 5*time.Second {
					t.Errorf("version %d: %d is reached after %s", api.Version(), have, time.Since(began))
				}
			}
			if store.Snapshot().Version() != api.Version() {
				t.Errorf("the snapshot is at %d", store.Snapshot().Version())
			}
			expectContent(t, "at the version that was reached", store.Snapshot(), api)
		})
	})
}

// What has happened meanwhile comes before the version: a reader of the ring misses nothing, and nothing goes back.
func TestVersionIsReachedBehindWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		api.Put("pods", "n/a")
		reachable(t, api, func(store *Store) {
			c := store.Topic().From(store.Snapshot().Head, stream.AllNamespaces())
			api.Slowly(1500 * time.Millisecond)
			for _, name := range []string{"b", "c", "passing"} {
				api.Put("pods", "n/"+name)
			}
			api.Delete("pods", "n/passing")
			api.Skip(3)
			version := api.Version()
			if have := store.Reach(t.Context(), version); have < version {
				t.Errorf("version %d: %d is reached", version, have)
			}
			expectContent(t, "at the version that was reached", store.Snapshot(), api)
			lines := told(t, c)
			if len(lines) != 4 || !strings.HasPrefix(lines[3], "deleted n/passing@1005") {
				t.Errorf("%q", lines)
			}
		})
	})
}

// TestVersionsThatNobodyHasAreOneQuestionASecond: whoever names them.
func TestVersionsThatNobodyHasAreOneQuestionASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		reachable(t, api, func(store *Store) {
			api.Requests()
			began := time.Now()
			var asking sync.WaitGroup
			for i := range uint64(40) {
				asking.Go(func() {
					for range 5 {
						have := store.Reach(t.Context(), api.Version()+1000*i+1)
						if have > api.Version() {
							t.Errorf("version %d is reached", have)
						}
						time.Sleep(time.Duration(i) * 7 * time.Millisecond)
					}
				})
			}
			asking.Wait()
			asked, seconds := api.Requests(), int(time.Since(began)/time.Second)
			asked = slices.DeleteFunc(asked, func(request string) bool { return !strings.HasPrefix(request, "GET /api/v1/pods") })
			if len(asked) > seconds+1 {
				t.Errorf("%d questions in %d seconds: %q", len(asked), seconds, asked)
			}
		})
	})
}

// A version that exists is reached while others name versions that do not, within the time that it takes anyway.
func TestVersionsThatNobodyHasHoldUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		reachable(t, api, func(store *Store) {
			hostile, end := context.WithCancel(t.Context())
			var asking sync.WaitGroup
			for range 10 {
				asking.Go(func() {
					for hostile.Err() == nil {
						store.Reach(hostile, 1<<60)
					}
				})
			}
			for range 5 {
				time.Sleep(700 * time.Millisecond)
				api.Skip(1)
				began := time.Now()
				if have := store.Reach(t.Context(), api.Version()); have != api.Version() || time.Since(began) > 5*time.Second {
					t.Errorf("version %d: %d is reached after %s", api.Version(), have, time.Since(began))
				}
			}
			end()
			asking.Wait()
		})
	})
}

func TestWaitForAVersionEndsWithTheCallerAndWithoutAnAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		reachable(t, api, func(store *Store) {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			began := time.Now()
			if store.Reach(ctx, 1<<60); time.Since(began) > time.Second {
				t.Errorf("after the caller has left it takes %s", time.Since(began))
			}
			api.Away(true)
			began = time.Now()
			if have := store.Reach(t.Context(), 1<<60); have >= 1<<60 || time.Since(began) > 2*versionWithin {
				t.Errorf("%d after %s", have, time.Since(began))
			}
		})
	})
}
