package http

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/stream"
)

// TestSlowReadersDoNotKeepOldStates: a client that takes a list, or a stream's snapshot, so slowly that all of it has
// been replaced since is cut, however steady it is. While nothing changes, clients may be as slow as they like, since
// then they keep nothing.
func TestSlowReadersDoNotKeepOldStates(t *testing.T) {
	const objects, size = 64, 64 << 10
	for _, version := range []int{0, 1, 2} {
		t.Run(fmt.Sprintf("TLS with HTTP %d", version), func(t *testing.T) {
			t.Parallel()
			opts := []option{cached(stream.Options{Events: 100, Bytes: 1 << 20, Age: time.Hour}, "pods"), func(g *gateway, o *Options) {
				g.wrap = func(l net.Listener) net.Listener { return smallBuffers{l, 32 << 10} }
				o.Stream.WriteTimeout = 2 * time.Second
			}}
			if version > 0 {
				opts = append(opts, overTLS(t, version))
			}
			g := newGateway(t, opts...)
			change := func(round int) {
				for i := range objects {
					g.api.Put("pods", fmt.Sprintf("team-a/pod-%02d", i), "spec.pad="+noise(size), fmt.Sprintf("spec.n:=%d", round))
				}
				want := fmt.Sprintf(`"n":%d`, round)
				g.eventually("all is cached", func() bool {
					kinds := g.kinds.All() // preloaded, but perhaps not yet
					if len(kinds) == 0 {
						return false
					}
					o := kinds[0].Snapshot().Get("team-a", fmt.Sprintf("pod-%02d", objects-1))
					return o != nil && strings.Contains(o.JSON(), want)
				})
			}
			change(0)
			var readers sync.WaitGroup
			cut := make(chan error, 2)
			for _, accept := range []string{"application/json", eventStream} {
				other, _ := g.another(64 << 10) // over HTTP/2 a connection for each
				response, err := other.client.Do(other.newRequest(t.Context(), http.MethodGet, "/api/v1/pods", []string{"Accept: " + accept}))
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				readers.Go(func() { // some 64 KiB a second
					piece := make([]byte, 4<<10)
					for {
						if _, err := io.ReadFull(response.Body, piece); err != nil {
							cut <- err
							return
						}
						time.Sleep(60 * time.Millisecond)
					}
				})
			}
			select {
			case err := <-cut:
				t.Fatalf("while nothing changes, a slow reader is cut: %v; log: %s", err, g.log)
			case <-time.After(5 * time.Second): // more than twice what a client may take nothing for
			}
			change(1)
			change(2)
			for range 2 {
				select {
				case <-cut:
				case <-time.After(g.patience):
					t.Fatal("a slow reader of what was replaced is not cut")
				}
			}
			readers.Wait()
			g.eventually("nothing is written to them any more", func() bool {
				return g.streams() == 0 && strings.Count(g.log.String(), conn.ErrOutgrown.Error()) == 2
			})
			if a := g.get("/api/v1/pods"); a.code != 200 {
				t.Errorf("%d", a.code)
			}
		})
	}
}
