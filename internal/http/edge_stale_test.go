package http

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestAnEdgeWhoseCoreIsBehindIsStale: what an edge shows is as old as what its core has. Its clients are told so once the core has lost its
// own watch, also by an edge that asks only then, and by an edge of that; and of the end of it once all is told that was missed.
func TestAnEdgeWhoseCoreIsBehindIsStale(t *testing.T) {
	inBubbleOf(t, 2, func(t *testing.T, cores []*gateway) {
		core := cores[0]
		core.api.Put("pods", "team-a/one")
		edge := edgeOf(core, 0, cached(streamOptions(), "pods"))
		second := edgeOf(edge, 1, cached(streamOptions(), "pods"))
		gateways := []*gateway{core, edge, second}
		told := make([]chan frame, len(gateways)) // changes, and what is said of freshness
		for i, g := range gateways {
			told[i] = make(chan frame, 100)
			s := g.stream("/api/v1/pods")
			s.until("synced")
			go func() {
				for f, err := s.read(); err == nil; f, err = s.read() {
					if f.event != "" && f.event != "bookmark" {
						told[i] <- f
					}
				}
			}()
		}
		all := func(when, want string) {
			synctest.Wait()
			for i := range gateways {
				var names []string
				for len(told[i]) > 0 {
					f := <-told[i]
					names = append(names, f.event)
					if f.event == "stale" && f.field("reason") != "unreachable" {
						t.Errorf("%s: %d is told %q", when, i, f.raw)
					}
				}
				if got := fmt.Sprint(names); got != want {
					t.Errorf("%s: %d is told %s, not %s", when, i, got, want)
				}
			}
			for i, g := range gateways {
				if stale := slices.Contains([]string{"[stale]", "[]"}, want); g.isLive("pods") == stale {
					t.Errorf("%s: %d takes itself for live: %v", when, i, !stale)
				}
			}
		}
		for round := range 3 {
			when := fmt.Sprintf("in round %d, ", round)
			core.api.Fail("pods", http.StatusServiceUnavailable)
			core.api.CutWatches("pods")
			pass(10 * time.Second)
			all(when+"when the core has lost its watch", "[stale]")
			pass(3 * time.Minute)
			all(when+"for all the bookmarks", "[]")
			if round == 1 {
				edge.way.cut()
				edge.way.mend()
				pass(time.Minute)
				all(when+"when the edge has asked again", "[]")
			}
			core.api.Put("pods", "team-a/one", fmt.Sprintf("spec.round:=%d", round))
			core.api.Fail("pods", 0)
			pass(2 * time.Minute)
			all(when+"when it has its watch back", "[modified live]")
		}
		for _, g := range gateways { // a core that ends waits for the streams of all
			g.way.cut()
		}
	}, cached(streamOptions(), "pods"))
}
