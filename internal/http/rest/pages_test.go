package rest

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// A continue token may come from a stranger. One that is accepted must continue at one definite place.
func FuzzContinueToken(f *testing.F) {
	for _, seed := range []string{"", "garbage", Token{Version: 5, Namespace: "a", Name: "b"}.Encode(), Token{Name: "\x00"}.Encode(), "bnVsbA", "W10", "e30"} {
		f.Add(seed)
	}
	store := syncedStore(f)
	f.Fuzz(func(t *testing.T, text string) {
		page, err := newPages(budget.NewMemory(1<<20), nil).open(store, visibility.VisibleTarget{}, "", listRequest{token: text}, func(page) bool { return true })
		switch {
		case err == nil && page.snapshot == nil:
			t.Errorf("%q: no snapshot", text)
		case err == nil && text != "" && page.after == nil:
			t.Errorf("%q: no place", text)
		case err != nil:
			if code := reply.To(err).Code; code != http.StatusBadRequest && code != http.StatusGone {
				t.Errorf("%q: %d", text, code)
			}
		}
	})
}

// syncedStore returns the store of a cluster's pods, of which there is one.
func syncedStore(t testing.TB) *cache.Store {
	t.Helper()
	api, url := apitest.Start(t)
	api.Put("pods", "team-a/web")
	c, err := cluster.Connect(cluster.Options{Name: "default", Kubeconfig: apitest.Kubeconfig(t, url)})
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := cache.NewKinds(c, cache.Options{Topic: stream.Options{Events: 1000, Bytes: 64 << 20, Age: time.Hour}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = kinds.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	within, done := context.WithTimeout(ctx, 2*time.Minute)
	defer done()
	kind, err := c.Resolve(within, "", "v1", "pods")
	if err != nil {
		t.Fatal(err)
	}
	store, release, err := kinds.Use(kind, "alice")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	if err := store.WaitSynced(within); err != nil {
		t.Fatal(err)
	}
	return store
}
