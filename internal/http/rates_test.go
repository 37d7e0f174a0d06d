package http

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/ratelimit"
)

// crowd sends requests at once, and counts what becomes of them.
type crowd struct {
	g      *gateway
	asking sync.WaitGroup
	mu     sync.Mutex
	codes  map[string]int
}

func (c *crowd) ask(n int, path string, headers ...string) {
	c.send(n, http.MethodGet, path, headers...)
}

func (c *crowd) send(n int, method, path string, headers ...string) {
	for range n {
		c.asking.Go(func() {
			outcome := "cut"
			if response, err := c.g.client.Do(c.g.newRequest(c.g.t.Context(), method, path, headers)); err == nil {
				body, _ := io.ReadAll(response.Body)
				response.Body.Close()
				outcome = fmt.Sprint(response.StatusCode)
				if strings.Contains(string(body), "goodbye") {
					outcome += " goodbye"
				}
				if response.Close {
					outcome += " closed"
				}
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.codes[outcome]++
		})
	}
	synctest.Wait()
}

// of is how many have had an outcome so far.
func (c *crowd) of(outcome string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.codes[outcome]
}

// TestWhoAsksTooOftenWaits, then is refused, then is not even told that at once; and nobody else notices.
func TestWhoAsksTooOftenWaits(t *testing.T) {
	const (
		perSecond = 5
		atOnce    = ratelimit.BurstSeconds * perSecond
		waiting   = int(ratelimit.LongestWait/time.Second) * perSecond
		held      = int(ratelimit.RefusalLongestWait/time.Second) * ratelimit.RefusalsPerSecond
		more      = 7
	)
	inBubble(t, func(t *testing.T, g *gateway) {
		g.get("/api/v1/pods", "Authorization: Bearer bob")
		c := &crowd{g: g, codes: map[string]int{}}
		c.ask(atOnce+waiting+ratelimit.RefusalsAtOnce+held+more, "/api/v1/pods")
		for outcome, want := range map[string]int{"200": atOnce, "429": ratelimit.RefusalsAtOnce, "429 closed": more} {
			if got := c.of(outcome); got != want {
				t.Errorf("at once %d were told %s, want %d (%v)", got, outcome, want, c.codes)
			}
		}
		began := time.Now()
		if a := g.get("/api/v1/pods", "Authorization: Bearer bob"); a.code != 200 || time.Since(began) > 0 {
			t.Errorf("somebody else: %d after %v", a.code, time.Since(began))
		}
		pass(time.Second)
		synctest.Wait()
		if answered, refused := c.of("200"), c.of("429"); answered != atOnce+perSecond || refused != ratelimit.RefusalsAtOnce+ratelimit.RefusalsPerSecond {
			t.Errorf("within a second %d were answered and %d refused, want %d and %d", answered, refused, atOnce+perSecond, ratelimit.RefusalsAtOnce+ratelimit.RefusalsPerSecond)
		}
		c.asking.Wait()
		if answered, refused := c.of("200"), c.of("429"); answered != atOnce+waiting || refused != ratelimit.RefusalsAtOnce+held {
			t.Errorf("in the end %d were answered and %d refused, want %d and %d", answered, refused, atOnce+waiting, ratelimit.RefusalsAtOnce+held)
		}
	}, options(func(o *Options) { o.Limits.RequestsPerSecond = perSecond }))
}

// A status would end an EventSource for good.
func TestStreamsThatBeginTooOftenAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		c := &crowd{g: g, codes: map[string]int{}}
		for range 4 {
			c.ask(ratelimit.BurstSeconds, "/api/v1/pods")
			c.ask(2*int(ratelimit.LongestWait/time.Second), "/version")
			for _, path := range []string{"/api/v1/pods", "/stream?pods=/api/v1/pods"} {
				g.stream(path).expect("goodbye limit")
			}
			if a := g.get("/api/v1/pods?watch=1"); a.code != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
				t.Errorf("a watch of Kubernetes' own: %d, Retry-After %q", a.code, a.header.Get("Retry-After"))
			}
			c.asking.Wait()
			pass(time.Minute)
		}
	}, options(func(o *Options) { o.Limits.RequestsPerSecond = 1 }))
}

// TestForgedTokensAreToldLate: where many come from, each refusal is told late, or it would be worth another attempt. A
// caller with a good token is not held.
func TestForgedTokensAreToldLate(t *testing.T) {
	for name, attempt := range map[string]struct{ method, path, credentials string }{
		"a forged one":               {http.MethodGet, "/api/v1/pods", "Authorization: Bearer forged"},
		"none":                       {http.MethodGet, "/api/v1/pods", "Authorization: "},
		"none, to go on without one": {http.MethodPost, "/auth/session", "Authorization: "},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *gateway) {
				const held, more = int(ratelimit.RefusalLongestWait/time.Second) * ratelimit.RefusalsPerSecond, 3
				from := "X-Forwarded-For: 2001:db8::1"
				c := &crowd{g: g, codes: map[string]int{}}
				c.send(ratelimit.RefusalsAtOnce+held+more, attempt.method, attempt.path, attempt.credentials, from)
				told := func() int { return c.of("401") + c.of("429") }
				if told() != ratelimit.RefusalsAtOnce || c.of("401 closed")+c.of("429 closed") != more {
					t.Errorf("at once: %v; want %d told, and %d cut off", c.codes, ratelimit.RefusalsAtOnce, more)
				}
				began := time.Now()
				if a := g.get("/api/v1/pods", from); a.code != 200 || time.Since(began) > 0 {
					t.Errorf("a good token from there: %d after %v", a.code, time.Since(began))
				}
				if a := g.get("/api/v1/pods", "Authorization: Bearer forged", "X-Forwarded-For: 2001:db8:0:1::1"); a.code != 401 || time.Since(began) > 0 {
					t.Errorf("from elsewhere: %d after %v", a.code, time.Since(began))
				}
				pass(time.Second)
				synctest.Wait()
				if told() != ratelimit.RefusalsAtOnce+ratelimit.RefusalsPerSecond {
					t.Errorf("within a second %d were told, want %d", told(), ratelimit.RefusalsAtOnce+ratelimit.RefusalsPerSecond)
				}
				c.asking.Wait()
			})
		})
	}
}

// TestWhoHasNoPlaceLeftAsksForNothing: to open watches may cost the API server questions, and the gateway work.
func TestWhoHasNoPlaceLeftAsksForNothing(t *testing.T) {
	g := newGateway(t, options(func(o *Options) { o.Limits.WatchesPerUser = 2 }))
	first := g.stream("/stream?a=/api/v1/pods&b=/api/v1/pods")
	first.until("b.synced")
	asked := g.access.questions()
	g.stream("/stream?a=/api/v1/pods&b=/api/v1/pods").expect("goodbye limit")
	if a := g.get("/api/v1/pods?watch=1"); a.code != http.StatusTooManyRequests {
		t.Errorf("a watch of Kubernetes' own: %d", a.code)
	}
	if now := g.access.questions(); now != asked {
		t.Errorf("%d questions were asked for streams that have no place", now-asked)
	}
}

// TestRefusedStreamsGiveTheirPlacesBack: otherwise clients that come while a cluster is away would soon be told that
// they have too much.
func TestRefusedStreamsGiveTheirPlacesBack(t *testing.T) {
	g := newGateway(t, options(func(o *Options) { o.Limits.WatchesPerUser = 2 }))
	undecided := func(is bool) {
		g.access.set(func(a *fakeAuth) {
			a.decide = nil
			if is {
				a.decide = func(auth.Identity, auth.Request) (bool, error) { return false, auth.ErrUndecided }
			}
		})
	}
	undecided(true)
	for range 3 {
		s := g.stream("/stream?a=/api/v1/pods&b=/api/v1/pods")
		s.expect("goodbye unavailable")
		s.close()
		g.eventually("it has ended", func() bool { return g.streams() == 0 })
	}
	for range 3 {
		if a := g.get("/api/v1/pods?watch=1"); a.code != http.StatusServiceUnavailable {
			t.Errorf("a watch of Kubernetes' own: %d", a.code)
		}
	}
	undecided(false)
	g.eventually("there are places", func() bool {
		s := g.stream("/stream?a=/api/v1/pods&b=/api/v1/pods")
		defer s.close()
		return s.next().event != "goodbye"
	})
	if n := g.server.streams.Stats().Watches; n > 2 {
		t.Errorf("%d watches are counted", n)
	}
}

// Nobody in particular is somebody at each address, or one of them could have the share of all.
func TestAnonymousCallersPayByAddress(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		c := &crowd{g: g, codes: map[string]int{}}
		c.ask(1000, "/api/v1/pods", "Authorization: ", "X-Forwarded-For: 192.0.2.1")
		began := time.Now()
		if a := g.get("/api/v1/pods", "Authorization: ", "X-Forwarded-For: 192.0.2.2"); a.code != 200 || time.Since(began) > 0 {
			t.Errorf("another one: %d after %v", a.code, time.Since(began))
		}
		stream := g.stream("/api/v1/pods", "Authorization: ", "X-Forwarded-For: 192.0.2.2")
		stream.expect("synced")
		g.stream("/api/v1/pods", "Authorization: ", "X-Forwarded-For: 192.0.2.3").expect("synced")
		g.stream("/api/v1/pods", "Authorization: ", "X-Forwarded-For: 192.0.2.2").expect("goodbye limit")
		c.asking.Wait()
	}, options(func(o *Options) {
		o.Limits.RequestsPerSecond, o.Limits.RequestsPerUser, o.Limits.PerUser = 1, 2, 1
	}), func(g *gateway, _ *Options) { g.access.anonymous = true })
}
