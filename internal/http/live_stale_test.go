package http

import (
	"testing"
	"time"
)

// TestStaleIsToldAtOnceWhateverIsConflated: who wants to be told once in a minute still learns within seconds that what they have is old.
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
