package http

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

func TestWatchesOfOneUserAreBoundedOverAllStreams(t *testing.T) {
	g := newGateway(t, options(func(o *Options) { o.Limits.WatchesPerUser = 3 }))
	two := "/stream?a=/api/v1/pods&b=/api/v1/pods"
	first := g.stream(two)
	first.until("b.synced")
	g.stream(two).expect("goodbye limit")
	g.stream("/api/v1/pods").expect("synced")
	if a := g.get("/api/v1/pods?watch=1"); a.code != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Errorf("one watch of Kubernetes' too many: %d, Retry-After %q", a.code, a.header.Get("Retry-After"))
	}
	g.stream(two, "Authorization: Bearer bob").until("b.synced")
	first.close()
	g.eventually("there are places again", func() bool {
		s := g.stream(two)
		defer s.close()
		return s.next().event != "goodbye"
	})
}

// What one user asks for at once waits for itself; nobody else notices, and what waits is bounded.
func TestRequestsOfOneUserWaitForEachOther(t *testing.T) {
	const perUser = 2
	inBubble(t, func(t *testing.T, g *gateway) {
		g.get("/api/v1/pods")
		var mu sync.Mutex
		codes := map[string]int{}
		var asking sync.WaitGroup
		ask := func(ctx context.Context, user, path string) {
			asking.Go(func() {
				response, err := g.client.Do(g.newRequest(ctx, http.MethodGet, path, []string{"Authorization: Bearer " + user}))
				if err != nil {
					return
				}
				response.Body.Close()
				mu.Lock()
				defer mu.Unlock()
				codes[fmt.Sprint(user, " ", response.StatusCode)]++
			})
			synctest.Wait()
		}
		const toCome = "/api/v1/pods?resourceVersion=999999999" // waits for AwaitVersion
		gone, leave := context.WithCancel(t.Context())
		for range perUser {
			ask(t.Context(), "alice", toCome)
		}
		for range perUser * 16 /* that wait of one user, for each that is answered */ {
			ask(gone, "alice", toCome)
		}
		ask(t.Context(), "alice", "/api/v1/pods")
		ask(t.Context(), "bob", "/api/v1/pods")
		mu.Lock()
		if codes["alice 429"] != 1 || codes["bob 200"] != 1 || len(codes) != 2 {
			t.Errorf("at once: %v; want one of alice's refused, and bob answered", codes)
		}
		mu.Unlock()
		leave() // whoever waited
		synctest.Wait()
		ask(t.Context(), "alice", "/api/v1/pods")
		pass(3 * time.Second) // as long as a version that is yet to come is waited for
		asking.Wait()
		if codes["alice 200"] != 1 {
			t.Errorf("in the end: %v; want alice answered, once hers before were", codes)
		}
	}, options(func(o *Options) { o.Limits.RequestsPerUser = perUser }))
}

// Other gateways hold a watch of each kind and ask at once for all who are behind them, with one identity, and from one address. Limits of single
// users are none for them, and stay for everybody else.
func TestOtherGatewaysAreNotLimitedAsOneUser(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		opens := func(user string) int { return g.watch("/api/v1/pods?watch=1", "Authorization: Bearer "+user).code }
		began := time.Now()
		for n := range 20 {
			if code := opens("edge"); code != 200 {
				t.Fatalf("watch %d of the other gateway is answered with %d", n, code)
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the other gateway is held up for %v", took)
		}
		for n, want := range []int{200, 429} {
			if code := opens("bob"); code != want {
				t.Errorf("watch %d of a user: %d, want %d", n, code, want)
			}
		}
	}, options(func(o *Options) {
		o.Limits = Limits{PerUser: 1, PerAddress: 3, WatchesPerUser: 1, RequestsPerUser: 1, RequestsPerSecond: 1, Gateways: []string{"edge"}}
	}))
}

// Logs that another gateway reads are its users'.
func TestOtherGatewaysReadAnyNumberOfLogs(t *testing.T) {
	g := newGateway(t, options(func(o *Options) { o.Limits.Logs.PerUser = 1 }))
	gateway := auth.Identity{Username: "edge", Gateway: true}
	for user, want := range map[string]int{gateway.QuotaOwner(): 5, "bob": 1} {
		taken := 0
		for range 5 {
			if leave, err := g.server.logs.Take(user); err == nil {
				defer leave()
				taken++
			}
		}
		if taken != want {
			t.Errorf("%s reads %d logs at once, want %d", user, taken, want)
		}
	}
}
