package http

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/http/request"
)

// TestDrainEndsAllStreamsWithinTheWindow: no new streams, and the old ones end one by one within
// the window, each with its position.
func TestDrainEndsAllStreamsWithinTheWindow(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		var open []*events
		for range 40 {
			s := g.stream("/api/v1/pods")
			s.expect("synced")
			open = append(open, s)
		}
		g.api.Hang("nodes")
		waiting := g.stream("/api/v1/nodes", "Last-Event-ID: "+id(7))
		began := time.Now()
		drained := make(chan time.Duration, 1)
		go func() {
			g.server.Drain(context.Background())
			drained <- time.Since(began)
		}()
		g.eventually("it drains", g.server.streams.Draining)
		late := g.stream("/api/v1/pods", "Last-Event-ID: "+id(1001)).end()
		if last := late[len(late)-1]; last.String() != "goodbye drain" || last.id != id(1001) {
			t.Errorf("%q", last.raw)
		}
		if retry := lastRetry(late); retry < 2*time.Second || retry > 6*time.Second { // or it is turned away again and again
			t.Errorf("who comes while it drains is to come back after %v", retry)
		}
		before := id(g.api.Version())
		g.api.Put("pods", "team-a/last") // streams go on until it is their turn
		put := time.Since(began)
		type end struct {
			at   time.Duration
			left []frame
		}
		ends := make(chan end, len(open))
		for _, s := range append(open, waiting) {
			go func() {
				left := s.end()
				ends <- end{time.Since(began), left}
			}()
		}
		halves := [2]int{}
		for range len(open) + 1 {
			e := <-ends
			if e.at > 16*time.Second {
				t.Errorf("ended after %v", e.at)
			}
			halves[min(1, int(e.at/(8*time.Second)))]++
			last := e.left[len(e.left)-1]
			if retry := lastRetry(e.left); last.id != id(7) && (retry < 100*time.Millisecond || retry > 500*time.Millisecond) {
				t.Errorf("the client is to come back after %v", retry)
			}
			wasTold := last.id == id(g.api.Version()) || last.id == id(7) || last.id == before && e.at <= put // its turn came first
			if last.String() != "goodbye drain" || !wasTold {
				t.Errorf("%q", last.raw)
			}
		}
		if halves[0] < 8 || halves[1] < 8 {
			t.Errorf("the ends are not spread: %v", halves)
		}
		if took := <-drained; took > 16*time.Second {
			t.Errorf("Drain returned after %v", took)
		}
		if a := g.get("/api/v1/pods"); a.code != 200 {
			t.Errorf("requests that are no streams are still answered: %d", a.code)
		}
	}, options(func(o *Options) { o.SyncTimeout = time.Hour }))
}

// lastRetry is the wait that a client was told last.
func lastRetry(all []frame) (retry time.Duration) {
	for _, f := range all {
		if f.retry > 0 {
			retry = f.retry
		}
	}
	return retry
}

// TestDrainGivesUpWithItsContext: a client that takes nothing must not hold up the end.
func TestDrainGivesUpWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.stream("/api/v1/pods").expect("synced")
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		began := time.Now()
		g.server.Drain(ctx)
		if took := time.Since(began); took > 0 {
			t.Errorf("after %v", took)
		}
	})
}

// TestPlacesAreGivenBack: of each user, each address and all, when a stream has ended, for whatever reason.
func TestPlacesAreGivenBack(t *testing.T) {
	for name, limits := range map[string]Limits{"user": {PerUser: 2}, "address": {PerAddress: 2}, "total": {Total: 2}} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, options(func(o *Options) { o.Limits = limits }))
			var open []*events
			for range 2 {
				s := g.stream("/api/v1/pods", "X-Forwarded-For: spoofed, 10.0.0.1")
				s.expect("synced")
				open = append(open, s)
			}
			for range 10 {
				g.stream("/api/v1/pods", "X-Forwarded-For: 10.0.0.9, 10.0.0.1").expect("goodbye limit")
			}
			if limits.PerUser > 0 {
				g.stream("/api/v1/pods", "Authorization: Bearer bob").expect("synced")
			}
			if limits.PerAddress > 0 {
				g.stream("/api/v1/pods", "X-Forwarded-For: 10.0.0.1, 10.0.0.2").expect("synced")
			}
			open[0].close()
			g.eventually("it has left", func() bool { return strings.Contains(g.log.String(), "reason=left") })
			g.eventually("there is a place again", func() bool {
				s := g.stream("/api/v1/pods", "X-Forwarded-For: 10.0.0.1")
				defer s.close()
				return s.next().event == "synced"
			})
		})
	}
}

func TestAddresses(t *testing.T) {
	for _, test := range []struct {
		remote, want string
		forwarded    []string
	}{
		{"192.0.2.1:5", "192.0.2.1", nil},
		{"[2001:db8::1]:5", "2001:db8::1", nil},
		{"pipe", "pipe", nil},
		{"192.0.2.1:5", "198.51.100.7", []string{"198.51.100.7"}},
		{"192.0.2.1:5", "198.51.100.7", []string{"1.1.1.1, 198.51.100.7"}},
		{"192.0.2.1:5", "198.51.100.7", []string{"1.1.1.1", "2.2.2.2,198.51.100.7 "}},
		{"192.0.2.1:5", "192.0.2.1", []string{"unknown"}},
		{"192.0.2.1:5", "192.0.2.1", []string{""}},
		{"192.0.2.1:5", "2001:db8::2", []string{"2001:DB8:0::2"}},
	} {
		r := &http.Request{RemoteAddr: test.remote, Header: http.Header{}}
		if test.forwarded != nil {
			r.Header["X-Forwarded-For"] = test.forwarded
		}
		if got := request.Address(r); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}
