package http

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/stream"
)

// TestLiveEventAfterACatchUpIsToldAtOnce, and not with the next heartbeat.
func TestLiveEventAfterACatchUpIsToldAtOnce(t *testing.T) {
	for _, behind := range []int{1, eventstream.BatchSize - 1, eventstream.BatchSize, eventstream.BatchSize + 1} {
		inBubble(t, func(t *testing.T, g *gateway) {
			seen := g.api.Put("pods", "team-a/first")
			want := make([]string, behind)
			for i := range behind {
				g.api.Put("pods", fmt.Sprintf("team-a/pod-%d", i))
				want[i] = fmt.Sprintf("added pod-%d", i)
			}
			s := g.stream("/api/v1/pods", "Last-Event-ID: "+id(seen))
			s.expect(want...)
			for range 3 {
				synctest.Wait()
				put := time.Now()
				g.api.Put("pods", "team-a/live", "spec.at="+put.String())
				s.next()
				if late := time.Since(put); late > time.Second {
					t.Errorf("%d events were caught up, and then one is told after %v", behind, late)
				}
			}
		})
	}
}

// TestBurstToAClientThatWasSlowForAMomentIsToldAtOnce: what a worker could not send, and left, is
// not the end of what the ring has. Only on a real connection is there a worker.
func TestBurstToAClientThatWasSlowForAMomentIsToldAtOnce(t *testing.T) {
	g := newGateway(t, func(g *gateway, _ *Options) {
		g.wrap = func(l net.Listener) net.Listener { return smallBuffers{l, 32 << 10} }
	}, cached(stream.Options{Events: 1000, Bytes: 64 << 20, Age: time.Hour, Gather: 500 * time.Millisecond}), options(func(o *Options) { o.Stream.Heartbeat, o.Reauthorize = time.Hour, time.Hour }))
	_, s := g.rawStream("/api/v1/pods")
	s.expect("synced")
	g.parked(1)
	const n = 5 * eventstream.BatchSize
	pad := "spec.pad=" + strings.Repeat("x", 2<<10)
	for i := range n {
		g.api.Put("pods", fmt.Sprintf("team-a/pod-%d", i), pad)
	}
	g.eventually("all are in the ring", func() bool { return g.kinds.All()[0].Snapshot().Len() == n })
	pass(time.Second) // the client is slow, until its session has a goroutine of its own
	for range n {
		s.next() // whatever else wakes the stream would come too late
	}
}

// TestStreamOfAKindThatIsGoneTellsAllThatWasKnown before it says so, whatever came before: a catch-up, or what was held
// back.
func TestStreamOfAKindThatIsGoneTellsAllThatWasKnown(t *testing.T) {
	const path = "/apis/example.org/v1/widgets"
	put := func(g *gateway, n int) { g.api.Put("widgets", "team-a/w", fmt.Sprintf("spec.n:=%d", n)) }
	end := func(t *testing.T, g *gateway, s *events, want string) {
		g.api.Serve(apitest.Widgets, false)
		pass(20 * time.Second) // it is believed, and nobody reads meanwhile
		last := ""
		for f := s.next(); f.event != "goodbye"; f = s.next() {
			if n := f.field("spec", "n"); n != "" {
				last = n
			}
		}
		if last != want {
			t.Errorf("the last that was told before the end is %s, not %s", last, want)
		}
	}
	patient := options(func(o *Options) { o.Stream.WriteTimeout = time.Hour })
	inBubble(t, func(t *testing.T, g *gateway) {
		seen := g.api.Version()
		for n := range eventstream.BatchSize + 1 {
			put(g, n)
		}
		s := g.stream(path, "Last-Event-ID: "+id(seen))
		pass(5 * time.Second) // it is being told the first batch
		put(g, 1000)
		synctest.Wait()
		end(t, g, s, "1000")
	}, patient)
	inBubble(t, func(t *testing.T, g *gateway) {
		s := g.stream(path + "?conflate=1m")
		s.until("synced")
		for n := range 3 {
			put(g, n)
			synctest.Wait()
		}
		s.expect("added w", "modified w")
		end(t, g, s, "2")
	}, patient)
}

// TestTheRestOfARevisionIsCaughtUp: of objects that share a version (a lease's end) a client may
// have been told the first only, when it and the gateway are cut off.
func TestTheRestOfARevisionIsCaughtUp(t *testing.T) {
	inBubbleOf(t, 2, func(t *testing.T, replicas []*gateway) {
		one, other := replicas[0], replicas[1]
		for i := range 20 {
			one.api.Put("pods", fmt.Sprintf("team-%d/e%02d", i%2, i))
		}
		s := one.stream("/api/v1/namespaces/team-1/pods")
		s.until("synced")
		version := one.api.Delete("pods", one.api.Keys("pods")...)
		first := s.expect("deleted e01")
		if first.id != id(version-1)+fmt.Sprint("-", version) {
			t.Fatalf("%q", first.raw)
		}
		s.close()
		one.api.Put("pods", "team-1/end")
		// The other one has read its list only now.
		s = other.stream("/api/v1/namespaces/team-1/pods", "Last-Event-ID: "+first.id)
		told := map[string]bool{}
		for f := s.next(); f.String() != "added end"; f = s.next() {
			told[f.String()] = true
		}
		for i := 3; i < 20; i += 2 {
			if what := fmt.Sprintf("deleted e%02d", i); !told[what] {
				t.Errorf("%s was not told, nor a reset: the client keeps it for ever", what)
			}
		}
	})
}

// TestTheRestOfARevisionIsToldByAReplicaThatListedAtIt: to that one everything up to the list's
// version is old, so a client that was told the first deletion of it by another replica must not
// claim it.
func TestTheRestOfARevisionIsToldByAReplicaThatListedAtIt(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		t.Run(fmt.Sprint("compacted ", compacted), func(t *testing.T) {
			inBubbleOf(t, 2, func(t *testing.T, replicas []*gateway) {
				one, other := replicas[0], replicas[1]
				one.api.Put("pods", "team-a/first")
				other.stream("/api/v1/pods").expect("added first", "synced")
				other.way.cut()
				one.api.Put("pods", "team-a/second") // the other never sees it
				s := one.stream("/api/v1/pods")
				s.expect("added first", "added second", "synced")
				version := one.api.Delete("pods", "team-a/first", "team-a/second")
				first := s.expect("deleted first")
				s.close()
				if compacted {
					one.api.Compact()
				}
				other.way.mend()
				other.eventually("it has listed again", func() bool { _, at := other.known("pods"); return at == version })
				s = other.stream("/api/v1/pods", "Last-Event-ID: "+first.id)
				one.api.Put("pods", "team-a/end")
				for f := s.next(); f.String() != "deleted second" && f.event != "reset"; f = s.next() {
					if f.String() == "added end" {
						t.Fatal("the rest of the revision was not told, nor was there a reset: the client keeps it for ever")
					}
				}
			})
		})
	}
}

// TestCatchUpFromTheFirstVersionIsAReset: what happened from there on cannot be asked for, since before 1 is any.
func TestCatchUpFromTheFirstVersionIsAReset(t *testing.T) {
	g := newGateway(t)
	g.api.Put("pods", "team-a/web")
	g.stream("/api/v1/pods", "Last-Event-ID: "+id(1)).expect("reset expired", "added web", "synced")
}

// TestOldPositionsAreServedWhileTheClusterIsAway, by a reset, if they cannot be by what the API server would know: the
// gateway has the state, and serves it to whoever comes without a position.
func TestOldPositionsAreServedWhileTheClusterIsAway(t *testing.T) {
	for name, away := range map[string]func(*gateway){
		"failing": func(g *gateway) { g.api.Fail("pods", http.StatusServiceUnavailable) },
		"silent":  func(g *gateway) { g.api.Hang("pods") },
		"gone":    func(g *gateway) { g.way.cut() },
	} {
		inBubble(t, func(t *testing.T, g *gateway) {
			version := g.api.Put("pods", "team-a/web")
			g.stream("/api/v1/pods").expect("added web", "synced")
			away(g)
			for position, reason := range map[string]string{id(900): "expired", id(version + 1): "ahead", id(version-2) + fmt.Sprint("-", version-1): "expired"} {
				began := time.Now()
				s := g.stream("/api/v1/pods", "Last-Event-ID: "+position)
				for _, want := range []string{"reset " + reason, "added web", "synced"} {
					f := s.next()
					for strings.HasPrefix(f.event, "stale") {
						f = s.next()
					}
					if f.String() != want {
						t.Fatalf("%s: after %s: %q, not %s", name, position, f.raw, want)
					}
				}
				if took := time.Since(began); took > 11*time.Second {
					t.Errorf("%s: %s is served after %v", name, position, took)
				}
			}
			// An informer is told to list again, which it can.
			w := g.watch(fmt.Sprint("/api/v1/pods?watch=true&resourceVersion=", version-3))
			w.expect("ERROR 410")
		})
	}
}
