package cluster_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
)

// staleCore is a core that has lost its own watch, and tells so at the beginning of each watch.
type staleCore struct {
	core
	breaks  atomic.Bool  // each watch breaks off behind that
	watches atomic.Int64 // that were asked for
}

func (c *staleCore) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.core.RoundTrip(r)
	if err != nil || r.URL.Query().Get("watch") == "" || response.StatusCode != http.StatusOK || !strings.HasSuffix(r.URL.Path, "/pods") {
		return response, err
	}
	c.watches.Add(1)
	first := strings.NewReader(`{"type":"STALE","object":{"since":"2026-01-01T00:00:00Z","reason":"unreachable"}}` + "\n")
	rest := io.Reader(response.Body)
	if c.breaks.Load() {
		rest = iotest.ErrReader(io.ErrUnexpectedEOF)
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(first, rest), response.Body}
	return response, nil
}

// TestAStaleCoreIsNotAskedAgainAndAgain: a core that has lost its own watch cannot say what follows a version. An edge whose watch follows
// another one must not ask it that ten times a second, nor watch anew without a pause while the watches break off.
func TestAStaleCoreIsNotAskedAgainAndAgain(t *testing.T) {
	for name, breaks := range map[string]bool{"stands": false, "breaks off": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &staleCore{core: core{API: apitest.New(apitest.Pods), history: "one"}}
				c.Put("pods", "n/a")
				r := &recorder{}
				edge, err := cluster.Connect(cluster.Options{Name: "test", UserAgent: "edge", Config: &rest.Config{Host: "http://core.test", Transport: c}})
				if err != nil {
					t.Fatal(err)
				}
				defer informFrom(t, edge.ListWatch(apitest.Pods, r), r)()
				synctest.Wait()
				c.Put("pods", "n/b")
				synctest.Wait()
				c.breaks.Store(breaks)
				c.CutWatches("pods")
				before := c.watches.Load()
				time.Sleep(time.Minute)
				if asked := c.watches.Load() - before; asked > 20 {
					t.Errorf("it is asked for %d watches within a minute", asked)
				}
			})
		})
	}
}
