package http

import (
	"fmt"
	"testing"
	"time"
)

// TestStaleIsToldAtOnceWhateverIsConflated: who wants to be told once in a minute still learns
// within seconds that what they have is old.
func TestStaleIsToldAtOnceWhateverIsConflated(t *testing.T) {
	for query, begun := range map[string]string{"conflate=1m": "synced", "limit=5&conflate=1m": "page", "countBy=status.phase&conflate=1m": "counts"} {
		t.Run(begun, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *gateway) {
				g.api.Put("pods", "a/1", "status.phase=Running")
				s := g.stream("/api/v1/pods?" + query)
				s.until(begun)
				pass(time.Second)
				began := time.Now()
				g.api.Away(true)
				g.api.CutWatches("pods")
				s.until("stale")
				if after := time.Since(began); after > 5*time.Second {
					t.Errorf("for %v the client took what it had for live", after)
				}
			})
		})
	}
}

// TestLiveComesBehindWhatAWatchMissed when it goes on where it broke off: not with the first event,
// which proves that it stands.
func TestLiveComesBehindWhatAWatchMissed(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "a/first")
		s := g.stream("/api/v1/pods")
		s.until("synced")
		g.api.Put("pods", "a/first", "spec.told=yes")
		s.until("modified")
		g.api.Slowly(300 * time.Millisecond)
		g.api.Away(true)
		s.until("stale")
		for n := range 10 {
			g.api.Put("pods", fmt.Sprintf("a/%d", n))
		}
		g.api.Put("pods", "a/last")
		g.api.Away(false)
		for f := s.next(); f.field("metadata", "name") != "last"; f = s.next() {
			if f.event == "live" || f.event == "reset" {
				t.Fatalf("%q before all that was missed", f.raw)
			}
		}
		s.until("live")
	})
}
