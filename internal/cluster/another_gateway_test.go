package cluster_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
)

// core is an API server that says of which history it tells, as another gateway does.
type core struct {
	*apitest.API
	mu      sync.Mutex
	history string
	lists   int
	claims  []string // of which history the watches had to be, but for those of any
}

func (c *core) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	history := c.history
	switch query := r.URL.Query(); {
	case !strings.HasSuffix(r.URL.Path, "/pods"):
	case query.Get("watch") == "":
		c.lists++
	case r.Header.Get(cluster.HistoryHeader) != "":
		c.claims = append(c.claims, r.Header.Get(cluster.HistoryHeader))
	}
	c.mu.Unlock()
	response, err := c.API.RoundTrip(r)
	if err == nil && history != "" {
		response.Header.Set(cluster.HistoryHeader, history)
	}
	return response, err
}

func (c *core) becomes(history string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = history
}

// What happens while another gateway is away, or is not ready yet, is told version by version once it is back, whatever has
// become of the newest object: it says that its history is the same. If it does not, or if versions went back, everything is
// listed anew.
func TestARestartOfAnotherGatewayLosesNoVersion(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(*core)
		while  func(*core) // it is away
		after  func(*core) // it is back
		anew   bool        // everything is listed anew
	}{
		{name: "the newest object changes"},
		{name: "the newest event was a deletion", before: func(c *core) { c.Delete("pods", "n/c") }},
		{name: "the newest object is deleted", while: func(c *core) { c.Delete("pods", "n/b") }},
		{name: "it is not ready yet", after: func(c *core) {
			c.Fail("pods", http.StatusServiceUnavailable)
			time.Sleep(20 * time.Second)
			c.Answer("pods", nil)
		}},
		{name: "another history begins", while: func(c *core) { c.becomes("other") }, anew: true},
		{name: "it is replaced by one that says nothing", while: func(c *core) { c.becomes("") }, anew: true},
		{name: "another part is visible", while: func(c *core) { c.becomes("one-s1") }, anew: true},
		{name: "versions went back", while: func(c *core) { c.Restore(1002); c.Put("pods", "n/c") }, anew: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &core{API: apitest.New(apitest.Pods), history: "one"}
			c.Put("pods", "n/a")
			c.Put("pods", "n/c")
			r := &recorder{}
			edge, err := cluster.Connect(cluster.Options{Name: "test", UserAgent: "edge", Config: &rest.Config{Host: "http://core.test", Transport: c}})
			if err != nil {
				t.Fatal(err)
			}
			defer informFrom(t, edge.ListWatch(apitest.Pods, r), r)()
			synctest.Wait()
			c.Put("pods", "n/b")
			c.Put("pods", "n/b")
			if test.before != nil {
				test.before(c)
			}
			synctest.Wait()
			r.take()
			c.Away(true)
			synctest.Wait()
			c.Put("pods", "n/b")
			middle := c.Put("pods", "n/b")
			c.Put("pods", "n/b")
			if test.while != nil {
				test.while(c)
			}
			time.Sleep(5 * time.Second)
			c.Away(false)
			if test.after != nil {
				test.after(c)
			}
			time.Sleep(time.Minute)
			told, _ := r.take()
			between := slices.Contains(told, fmt.Sprintf("update n/b@%d", middle))
			if between == test.anew {
				t.Errorf("%s: version %d, which nothing shows any more, was told: %v: %q", test.name, middle, between, told)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.lists > 1 != test.anew {
				t.Errorf("%s: %d lists", test.name, c.lists)
			}
			if !test.anew && !slices.Contains(c.claims, "one") {
				t.Errorf("%s: the other gateway was not told of which history the watch has to be", test.name)
			}
		})
	}
}
