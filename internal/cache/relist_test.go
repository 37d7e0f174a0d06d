package cache

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/cluster/clustertest"
	"github.com/kubecast/kubecast/internal/stream"
)

func TestRelistIsOneBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := clustertest.New(pods)
		for _, name := range []string{"changed", "gone", "recreated", "same", "zebra"} {
			api.Put(pods, pod(name))
		}
		store, stop := fill(t, api, roomy)
		defer stop()
		synctest.Wait()
		c := store.Topic().From(store.Snapshot().Head, stream.AllNamespaces())
		api.ExpireWatches()
		synctest.Wait()
		if store.Upstream().Live {
			t.Error("the watch is taken for live")
		}
		api.Delete(pods, "n/gone")
		api.Delete(pods, "n/recreated")
		api.Put(pods, pod("recreated"))
		api.Put(pods, pod("zebra"))
		api.Put(pods, pod("changed"))
		api.Put(pods, pod("new"))
		api.Put(pods, pod("passing"))
		api.Delete(pods, "n/passing")
		api.Compact()
		time.Sleep(time.Minute)
		lines := told(t, c)
		if len(lines) > 1 && strings.Contains(lines[0], "recreated") {
			lines[0], lines[1] = lines[1], lines[0] // deletions come in any order
		}
		expect(t, "the relist", lines, []string{
			"deleted n/gone@1013 was 1002, claims 1005", "deleted n/recreated@1008 was 1003, claims 1005",
			"added n/recreated@1008, claims 1005", "modified n/zebra@1009 was 1005, claims 1005",
			"modified n/changed@1010 was 1001, claims 1005", "added n/new@1011, claims 1005",
		})
		if _, position, err := c.Next(nil, nil); position != 1013 || err != nil {
			t.Errorf("after the burst the client claims %d, %v", position, err)
		}
		expectContent(t, "after the relist", store.Snapshot(), api)
		// Who stands where the list before ended gets the difference; who stands within may know what we do not.
		if n := len(told(t, resumed(t, store.Store, 1005))); n != 6 {
			t.Errorf("%d events for who stands at its beginning", n)
		}
		if _, err := store.Topic().Resume(stream.UpTo(1009), stream.AllNamespaces()); !errors.Is(err, stream.ErrExpired) {
			t.Errorf("within, it is %v", err)
		}
		if up := store.Upstream(); !up.Live {
			t.Errorf("%+v", up)
		}
	})
}

func TestVersionsThatGoBackBeginAnotherHistory(t *testing.T) {
	for _, test := range []struct {
		name  string
		after int // changes between the restore and the next list
	}{{"found behind", 1}, {"found at the same version", 3}, {"found ahead", 9}} {
		synctest.Test(t, func(t *testing.T) {
			api := clustertest.New(pods)
			api.Put(pods, pod("a"))
			api.Put(pods, pod("b"))
			api.Put(pods, pod("c"))
			store, stop := fill(t, api, roomy)
			defer stop()
			synctest.Wait()
			c := store.Topic().From(store.Snapshot().Head, stream.AllNamespaces())
			api.Put(pods, pod("b"))
			api.Delete(pods, "n/a")
			synctest.Wait()
			if n := len(told(t, c)); n != 2 {
				t.Fatalf("%d events", n)
			}
			api.ExpireWatches()
			synctest.Wait()
			api.Rewind(1002) // a and b are back, c is not
			for range test.after {
				api.Put(pods, pod("d"))
			}
			time.Sleep(time.Minute)
			expectContent(t, test.name, store.Snapshot(), api)
			if n := store.restarts.Load(); n != 1 {
				t.Errorf("%s: versions went back %d times", test.name, n)
			}
			if _, _, err := c.Next(make([]*Event, 0, 1), nil); !errors.Is(err, stream.ErrEpoch) {
				t.Errorf("%s: a cursor of the old history gets %v", test.name, err)
			}
			fresh := store.Topic().From(store.Snapshot().Head, stream.AllNamespaces())
			api.Put(pods, pod("e"))
			synctest.Wait()
			if n := len(told(t, fresh)); n != 1 {
				t.Errorf("%s: %d events in the new history", test.name, n)
			}
		})
	}
}

// Whoever is told that history has begun anew tells his client so, with the epoch of that moment: it must be the new
// one. But no snapshot of the old history may be given the new epoch either: its versions would mean something else.
func TestEpochChangesWithHistory(t *testing.T) {
	for _, live := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			api := clustertest.New(pods)
			api.Put(pods, pod("a"))
			store, stop := fill(t, api, roomy)
			defer stop()
			synctest.Wait()
			api.Skip(100)
			api.Bookmark()
			api.Put(pods, pod("b"))
			synctest.Wait()
			c := store.Topic().From(store.Snapshot().Head, stream.AllNamespaces())
			store.restart = func() {
				if _, _, err := c.Next(make([]*Event, 0, 1), nil); err != nil {
					t.Errorf("live: %v: a cursor was told before the epoch changed: %v", live, err)
				}
				if store.mu.TryLock() {
					store.mu.Unlock()
					t.Errorf("live: %v: a snapshot can be taken between", live)
				}
			}
			if live {
				store.told(newObject(t, pod("c")).WithVersion(1002))
			} else {
				api.ExpireWatches()
				synctest.Wait()
				api.Rewind(1001)
				time.Sleep(time.Minute)
			}
			if _, _, err := c.Next(make([]*Event, 0, 1), nil); !errors.Is(err, stream.ErrEpoch) || store.restarts.Load() != 1 {
				t.Errorf("live: %v: a cursor of the old history gets %v after %d restarts", live, err, store.restarts.Load())
			}
		})
	}
}

// When a lease ends, etcd deletes what was bound to it in one revision.
func TestDeletionsOfOneRevisionAreNoWayBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := clustertest.New(pods)
		for _, name := range []string{"a", "b", "c"} {
			api.Put(pods, pod(name))
		}
		store, stop := fill(t, api, roomy)
		defer stop()
		synctest.Wait()
		c := store.Topic().From(store.Snapshot().Head, stream.AllNamespaces())
		api.Delete(pods, "n/a", "n/b", "n/c")
		synctest.Wait()
		expect(t, "the deletions", told(t, c), []string{
			"deleted n/a@1004 was 1001, claims 1004", "deleted n/b@1004 was 1002, claims 1004", "deleted n/c@1004 was 1003, claims 1004",
		})
		if n := store.restarts.Load(); n != 0 || store.Snapshot().Len() != 0 {
			t.Errorf("versions went back %d times, %d objects are left", n, store.Snapshot().Len())
		}
		if n := len(told(t, resumed(t, store.Store, 1004))); n != 2 {
			t.Errorf("%d events for a client that may have been told only the first", n)
		}
	})
}

// Objects are listed, but their watch cannot be opened: what the lists find is told together, once one can.
func TestListsWithoutAWatchAreTakenTogether(t *testing.T) {
	for _, later := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			api := clustertest.New(pods)
			api.Put(pods, pod("a"))
			api.Put(pods, pod("b"))
			refuse := func(r *http.Request) *clustertest.Intercept {
				if strings.Contains(r.URL.RawQuery, "watch=true") {
					return clustertest.Refuse()
				}
				return nil
			}
			if !later {
				api.Intercept(refuse)
			}
			store, stop := fill(t, api, roomy)
			defer stop()
			synctest.Wait()
			head := store.Topic().Head()
			if later {
				api.ExpireWatches()
				api.Intercept(refuse)
			}
			time.Sleep(10 * time.Second)
			api.Put(pods, pod("c"))
			api.Delete(pods, "n/a")
			time.Sleep(time.Minute)
			api.Put(pods, pod("a"))
			api.Delete(pods, "n/b")
			time.Sleep(time.Minute)
			if n := store.Snapshot().Len(); later != (n == 2) || !later && n != 0 || store.Upstream().Synced != later {
				t.Errorf("later: %v: half a list is shown: %d objects", later, n)
			}
			api.Intercept(nil)
			time.Sleep(2 * time.Minute)
			expectContent(t, "at last", store.Snapshot(), api)
			if !later {
				return
			}
			lines := told(t, store.Topic().From(head, stream.AllNamespaces()))
			if len(lines) == 4 && strings.Contains(lines[0], "n/b") {
				lines[0], lines[1] = lines[1], lines[0]
			}
			expect(t, "the difference", lines, []string{
				"deleted n/a@1005 was 1001, claims 1002", "deleted n/b@1006 was 1002, claims 1002",
				"added n/c@1003, claims 1002", "added n/a@1005, claims 1002",
			})
		})
	}
}
