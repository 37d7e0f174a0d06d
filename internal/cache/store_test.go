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

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
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
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		api.Put("pods", "n/a")
		api.Put("pods", "n/b")
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
		api.Put("pods", "n/c")
		api.Put("pods", "n/a", "metadata.labels.app=web")
		api.Delete("pods", "n/b")
		api.Put("pods", "n/b")
		synctest.Wait()
		expect(t, "live changes", told(t, c), []string{
			"added n/c@1003, claims 1003", "modified n/a@1004 was 1001, claims 1004",
			"deleted n/b@1005 was 1002, claims 1004", "added n/b@1006, claims 1006",
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

// Notifications that the informer should never send must not confuse the state either.
func TestOddNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		api.Put("pods", "n/a")
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

		// The connection breaks between the deletions of one revision, and the list finds the rest at that version.
		c, d := object(`{"metadata":{"name":"c","namespace":"n","resourceVersion":"1011"}}`), object(`{"metadata":{"name":"d","namespace":"n","resourceVersion":"1012"}}`)
		h.OnAdd(c, false)
		h.OnAdd(d, false)
		h.OnDelete(c.WithVersion(1013))
		head = store.Topic().Head()
		h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "n/d"})
		h.OnAdd(marker("1013"), false)
		expect(t, "the rest of a revision", told(t, store.Topic().From(head, stream.AllNamespaces())),
			[]string{"deleted n/d@1013 was 1012, claims 1012"})
		expect(t, "the rest of a revision, resumed", told(t, resumed(t, store.Store, 1013)),
			[]string{"deleted n/d@1013 was 1012, claims 1012"})

		head = store.Topic().Head()
		h.OnUpdate(nil, object(`{"metadata":{"name":"b","namespace":"n","uid":"other","resourceVersion":"1014"}}`))
		expect(t, "another object of the same name", told(t, store.Topic().From(head, stream.AllNamespaces())),
			[]string{"deleted n/b@1014 was 1006, claims 1013", "added n/b@1014, claims 1014"})

		h.OnUpdate(nil, object(`{"metadata":{"name":"b","namespace":"n","uid":"other","resourceVersion":"1009"}}`))
		if n := store.restarts.Load(); n != 1 || store.Topic().Head().Version != 1009 || store.Snapshot().Get("n", "b").Version() != 1009 {
			t.Errorf("a live change from before: versions went back %d times", n)
		}
	})
}

func TestSnapshotIsMadeOnceForAllWhoAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		store, stop := fill(t, api, roomy)
		defer stop()
		synctest.Wait()
		api.Put("pods", "n/a")
		synctest.Wait()
		first := store.Snapshot()
		if store.Snapshot() != first {
			t.Error("two who ask get two")
		}
		api.Put("pods", "n/b")
		synctest.Wait()
		if store.Snapshot() == first || first.Len() != 1 || store.Snapshot().Len() != 2 || first.Get("n", "b") != nil {
			t.Error("a snapshot changes")
		}
	})
}

func TestWaitSyncedSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		api.Away(true)
		store, stop := fill(t, api, roomy)
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := store.WaitSynced(ctx); !errors.Is(err, ErrNotSynced) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("a cluster that is away: %v", err)
		}
		api.Intercept(func(*http.Request) *apitest.Fault { return apitest.Refuse(http.StatusForbidden) })
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
