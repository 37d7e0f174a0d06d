package cluster_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
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

// behind runs an informer behind a core.
func behind(t *testing.T, c *core) (r *recorder, stop func()) {
	t.Helper()
	r = &recorder{}
	edge, err := cluster.Connect(cluster.Options{Name: "test", UserAgent: "edge", Config: &rest.Config{Host: "http://core.test", Transport: c}})
	if err != nil {
		t.Fatal(err)
	}
	return r, informFrom(t, edge.ListWatch(apitest.Pods, r), r)
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
			r, stop := behind(t, c)
			defer stop()
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

// Whoever may see another part by the next watch lists it, however that watch ended.
func TestTheNextWatchOfAnotherPartIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &core{API: apitest.New(apitest.Pods), history: "one-s1"}
		c.Put("pods", "n/a")
		_, stop := behind(t, c)
		defer stop()
		synctest.Wait()
		c.Put("pods", "n/b")
		c.becomes("one-s2")
		time.Sleep(30 * time.Minute) // the watch's time is up
		c.Put("pods", "n/b")
		synctest.Wait()
		c.Away(true)
		synctest.Wait()
		c.Put("pods", "n/b")
		time.Sleep(5 * time.Second)
		c.Away(false)
		time.Sleep(time.Minute)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.lists < 2 {
			t.Errorf("%d lists, claims %q", c.lists, c.claims)
		}
	})
}

// The newest object does not say what else may be seen by now.
func TestAnotherPartIsListedThoughTheNewestObjectIsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &core{API: apitest.New(apitest.Pods), history: "one-s1"}
		c.Put("pods", "n/a")
		_, stop := behind(t, c)
		defer stop()
		synctest.Wait()
		c.Put("pods", "n/b")
		synctest.Wait()
		c.Away(true)
		synctest.Wait()
		c.becomes("one-s2")
		time.Sleep(5 * time.Second)
		c.Away(false)
		time.Sleep(time.Minute)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.lists < 2 {
			t.Errorf("%d lists", c.lists)
		}
	})
}

// A refusal that no waiting heals, as of a proxy that takes no unknown header, is followed by a list.
func TestAWatchThatIsRefusedForGoodIsNoReasonToWait(t *testing.T) {
	for _, history := range []string{"", "one"} {
		for _, code := range []int{400, 410, 413, 422, 500, 501} {
			t.Run(fmt.Sprint(history, code), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := &core{API: apitest.New(apitest.Pods), history: history}
					c.Put("pods", "n/a")
					r, stop := behind(t, c)
					defer stop()
					synctest.Wait()
					c.Put("pods", "n/b")
					synctest.Wait()
					c.Away(true)
					synctest.Wait()
					v := c.Put("pods", "n/b")
					time.Sleep(5 * time.Second)
					c.Answer("pods", func(req *http.Request) *apitest.Fault {
						if req.URL.Query().Get("watch") != "" {
							return apitest.Refuse(code)
						}
						return nil
					})
					c.Away(false)
					time.Sleep(10 * time.Minute)
					told, _ := r.take()
					c.mu.Lock()
					defer c.mu.Unlock()
					if !slices.Contains(told, fmt.Sprintf("update n/b@%d", v)) {
						t.Errorf("%d: %d lists, claims %d, %q", code, c.lists, len(c.claims), told)
					}
				})
			})
		}
	}
}

// Another gateway that is killed again as soon as it is back loses no version either.
func TestAnotherGatewayThatIsKilledTwiceLosesNoVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &core{API: apitest.New(apitest.Pods), history: "one"}
		c.Put("pods", "n/a")
		r, stop := behind(t, c)
		defer stop()
		synctest.Wait()
		c.Put("pods", "n/b")
		synctest.Wait()
		c.Away(true)
		time.Sleep(2 * time.Second)
		c.Away(false)
		for c.Watches() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(300 * time.Millisecond)
		c.Away(true)
		synctest.Wait()
		middle := c.Put("pods", "n/b")
		c.Put("pods", "n/b")
		time.Sleep(2 * time.Second)
		c.Away(false)
		time.Sleep(2 * time.Minute)
		told, _ := r.take()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.lists > 1 || !slices.Contains(told, fmt.Sprintf("update n/b@%d", middle)) {
			t.Errorf("%d lists, claims %q, told %q", c.lists, c.claims, told)
		}
	})
}

// retelling is a core that tells a watch from a version of that version again, as a gateway does where several objects were deleted in
// one revision.
type retelling struct {
	*core
	asked int // what follows a version
}

func (c *retelling) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if query.Get("timeoutSeconds") != "3" {
		return c.core.RoundTrip(r)
	}
	c.mu.Lock()
	c.asked++
	asked := c.asked
	c.mu.Unlock()
	if asked > 100 {
		return nil, errors.New("it was asked without end")
	}
	version, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	query.Set("resourceVersion", fmt.Sprint(version-1))
	r.URL.RawQuery = query.Encode()
	return c.core.RoundTrip(r)
}

// What is told of a version again does not follow it: it is not asked for again and again, and the watch is live soon.
func TestWhatIsToldAgainOfAVersionDoesNotFollowIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &retelling{core: &core{API: apitest.New(apitest.Pods), history: "one"}}
		c.Put("pods", "n/a")
		c.Put("pods", "n/b")
		r := &recorder{}
		edge, err := cluster.Connect(cluster.Options{Name: "test", UserAgent: "edge", Config: &rest.Config{Host: "http://core.test", Transport: c}})
		if err != nil {
			t.Fatal(err)
		}
		defer informFrom(t, edge.ListWatch(apitest.Pods, r), r)()
		synctest.Wait()
		c.Delete("pods", "n/a", "n/b")
		synctest.Wait()
		c.Away(true)
		synctest.Wait()
		c.Away(false)
		time.Sleep(10 * time.Second)
		_, health := r.take()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.asked == 0 || c.asked > 2 || health[len(health)-1] != "up" {
			t.Errorf("what follows was asked %d times; the watch is %q", c.asked, health)
		}
	})
}

// relisting is a core whose watches end as those of a gateway do that has listed anew: with 429.
type relisting struct{ *core }

func (c *relisting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.core.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "" && response.StatusCode == http.StatusOK {
		response.Body = &sentAway{body: response.Body}
	}
	return response, err
}

// sentAway is a watch that ends with 429.
type sentAway struct {
	body io.ReadCloser
	end  io.Reader
}

func (b *sentAway) Read(to []byte) (int, error) {
	if b.end == nil {
		n, err := b.body.Read(to)
		if err == nil || n > 0 {
			return n, nil
		}
		b.end = strings.NewReader(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}}` + "\n")
	}
	return b.end.Read(to)
}

func (b *sentAway) Close() error { return b.body.Close() }

// Another gateway lists anew whenever its API server was restarted, and an edge of several of them is sent away by each. Changes are known soon
// however often that was: client-go by itself would wait twice as long each time, for up to a minute.
func TestChangesAreKnownSoonHoweverOftenAnotherGatewayListsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &relisting{core: &core{API: apitest.New(apitest.Pods), history: "one"}}
		c.Put("pods", "n/a")
		r := &recorder{}
		edge, err := cluster.Connect(cluster.Options{Name: "test", UserAgent: "edge", Config: &rest.Config{Host: "http://core.test", Transport: c}})
		if err != nil {
			t.Fatal(err)
		}
		defer informFrom(t, edge.ListWatch(apitest.Pods, r), r)()
		synctest.Wait()
		for range 12 {
			time.Sleep(3 * time.Second)
			r.take()
			c.EndWatches()
			c.Put("pods", "n/a")
			ended := time.Now()
			for known := false; !known && time.Since(ended) < time.Hour; {
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				told, _ := r.take()
				known = strings.Contains(strings.Join(told, " "), "update n/a@")
			}
			if late := time.Since(ended); late > 9*time.Second {
				t.Errorf("a change was known after %s", late)
			}
		}
	})
}
