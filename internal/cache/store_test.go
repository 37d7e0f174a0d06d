package cache

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/cluster/clustertest"
	"github.com/kubecast/kubecast/internal/stream"
)

func resumed(t *testing.T, s *Store, version uint64) *Cursor {
	t.Helper()
	c, err := s.Topic().Resume(stream.UpTo(version), stream.AllNamespaces())
	if err != nil {
		t.Fatalf("Resume(%d): %v", version, err)
	}
	return c
}

func TestFirstListIsNoEventAndLiveChangesAre(t *testing.T) {
	for _, streamed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			api := clustertest.New(pods)
			api.StreamLists(streamed)
			api.Put(pods, pod("a"))
			api.Put(pods, pod("b"))
			store, stop := fill(t, api, roomy)
			defer stop()
			if err := store.WaitSynced(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			expectContent(t, "after the first list", store.Snapshot(), api)
			if up := store.Upstream(); !up.Synced || !up.Live || up.Err != nil {
				t.Errorf("%+v", up)
			}
			head := store.Topic().Head()
			if s := store.Topic().Stats(); head.Version != 1002 || s.Events != 0 {
				t.Errorf("the topic begins at %d with %+v", head.Version, s)
			}
			if _, err := store.Topic().Resume(stream.UpTo(1001), stream.AllNamespaces()); !errors.Is(err, stream.ErrExpired) {
				t.Errorf("resuming before the first list gives %v", err)
			}
			c := store.Topic().From(store.Snapshot().Head, stream.AllNamespaces())
			api.Put(pods, pod("c"))
			api.Put(pods, pod("a", "app", "web"))
			api.Delete(pods, "n/b")
			api.Put(pods, pod("b"))
			synctest.Wait()
			expect(t, "live changes", told(t, c), []string{
				"added n/c@1003, claims 1003", "modified n/a@1004 was 1001, claims 1004",
				"deleted n/b@1005 was 1002, claims 1005", "added n/b@1006, claims 1006",
			})
			expectContent(t, "after live changes", store.Snapshot(), api)
			api.Skip(10)
			api.Bookmark()
			synctest.Wait()
			if version := store.Snapshot().Version(); version != 1016 {
				t.Errorf("a bookmark moved the snapshot to %d", version)
			}
		})
	}
}

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
		if _, position, err := c.Next(nil); position != 1013 || err != nil {
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
			if _, _, err := c.Next(make([]*Event, 0, 1)); !errors.Is(err, stream.ErrEpoch) {
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
			api.StreamLists(false)
			api.Put(pods, pod("a"))
			api.Put(pods, pod("b"))
			refuse := func(r *http.Request) *clustertest.Intercept {
				if strings.Contains(r.URL.RawQuery, "watch=true") && !strings.Contains(r.URL.RawQuery, "sendInitialEvents") {
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

// What the informer should never tell must not confuse the state either.
func TestOddNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := clustertest.New(pods)
		api.Put(pods, pod("a"))
		store, stop := fill(t, api, roomy)
		synctest.Wait()
		stop()
		h := (*handler)(store.Store)
		head := store.Topic().Head()
		object := func(text string) *cluster.Object {
			o, err := cluster.NewObject(text)
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		marker := func(version string) *cluster.Object {
			w, err := api.Connect(t).ListWatch(pods, store).Watch(metav1.ListOptions{ResourceVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			return (<-w.ResultChan()).Object.(*cluster.Object)
		}
		api.Skip(1000)
		h.OnDelete(object(`{"metadata":{"name":"never","namespace":"n","resourceVersion":"1005"}}`))
		h.OnUpdate(nil, store.Snapshot().Get("n", "a")) // as a resync does
		expect(t, "an unknown deletion and a resync", told(t, store.Topic().From(head, stream.AllNamespaces())), nil)

		h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "n/a"}) // client-go does not know what it was
		h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "n/never"})
		h.OnAdd(object(`{"metadata":{"name":"b","namespace":"n","resourceVersion":"1006"}}`), false)
		h.OnAdd(marker("1010"), false)
		expect(t, "tombstones without an object", told(t, store.Topic().From(head, stream.AllNamespaces())),
			[]string{"deleted n/a@1010 was 1001, claims 1001", "added n/b@1006, claims 1001"})

		// A connection that breaks between the deletions of one revision: the list finds the rest at that version.
		h.OnAdd(object(`{"metadata":{"name":"c","namespace":"n","resourceVersion":"1010"}}`), false)
		head = store.Topic().Head()
		h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "n/c"})
		h.OnAdd(marker("1010"), false)
		expect(t, "the rest of a revision", told(t, store.Topic().From(head, stream.AllNamespaces())),
			[]string{"deleted n/c@1010 was 1010, claims 1010"})
		expect(t, "the rest of a revision, resumed", told(t, resumed(t, store.Store, 1010)),
			[]string{"added n/c@1010, claims 1010", "deleted n/c@1010 was 1010, claims 1010"})

		head = store.Topic().Head()
		h.OnUpdate(nil, object(`{"metadata":{"name":"b","namespace":"n","uid":"other","resourceVersion":"1011"}}`))
		expect(t, "another object of the same name", told(t, store.Topic().From(head, stream.AllNamespaces())),
			[]string{"deleted n/b@1011 was 1006, claims 1011", "added n/b@1011, claims 1011"})

		h.OnUpdate(nil, object(`{"metadata":{"name":"b","namespace":"n","uid":"other","resourceVersion":"1009"}}`))
		if n := store.restarts.Load(); n != 1 || store.Topic().Head().Version != 1009 || store.Snapshot().Get("n", "b").Version() != 1009 {
			t.Errorf("a live change from before: versions went back %d times", n)
		}
	})
}

func TestSnapshotIsMadeOnceForAllWhoAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := clustertest.New(pods)
		store, stop := fill(t, api, roomy)
		defer stop()
		synctest.Wait()
		api.Put(pods, pod("a"))
		synctest.Wait()
		first := store.Snapshot()
		if store.Snapshot() != first {
			t.Error("two who ask get two")
		}
		api.Put(pods, pod("b"))
		synctest.Wait()
		if store.Snapshot() == first || first.Len() != 1 || store.Snapshot().Len() != 2 || first.Get("n", "b") != nil {
			t.Error("a snapshot changes")
		}
	})
}

func TestWaitSyncedSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := clustertest.New(pods)
		api.Away(true)
		store, stop := fill(t, api, roomy)
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := store.WaitSynced(ctx); !errors.Is(err, ErrNotSynced) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("a cluster that is away: %v", err)
		}
		api.Intercept(func(*http.Request) *clustertest.Intercept { return clustertest.Refuse() })
		began := time.Now()
		if err := store.WaitSynced(t.Context()); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "pods") || !store.Upstream().Refused() {
			t.Errorf("a kind that is refused: %v", err)
		}
		if time.Since(began) > time.Minute {
			t.Errorf("it took %v", time.Since(began))
		}
		api.Intercept(nil)
		for !store.Upstream().Live {
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if err := store.WaitSynced(t.Context()); err != nil || store.Upstream().Refused() {
			t.Errorf("once it is granted: %v", err)
		}
	})
}
