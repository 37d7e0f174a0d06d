package http

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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
