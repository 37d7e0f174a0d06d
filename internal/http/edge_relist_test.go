package http

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/stream"
)

// Where a core has listed anew, its edge gives no client a position that names more than the client was told. The events of a watch
// do not show which of them a list found, nor what came and went before it.
func TestAnEdgeClaimsNothingThatItsCorePassedOver(t *testing.T) {
	for name, forgotten := range map[string]bool{"the API server still has it": false, "the API server has forgotten it": true} {
		t.Run(name, func(t *testing.T) {
			inBubbleOf(t, 2, func(t *testing.T, cores []*gateway) {
				const path = "/api/v1/pods?deltas=merge-patch"
				api, edge := cores[0].api, edgeOf(cores[0], 0)
				api.Put("pods", "team-a/other")
				api.Put("pods", "team-a/newest")
				elsewhere, here := cores[1].stream("/api/v1/pods"), edge.stream("/api/v1/pods")
				elsewhere.until("synced")
				here.until("synced")

				cores[0].way.cut()
				api.Put("pods", "team-a/newest") // or the core's watch would go on
				api.Put("pods", "team-a/goes")
				met := elsewhere.until("added").id
				api.Put("pods", "team-a/comes")
				api.Put("pods", "team-a/other")
				api.Delete("pods", "team-a/goes")
				api.Put("pods", "team-a/comes", "status.phase=Running")
				if forgotten {
					api.Compact()
				}
				cores[0].way.mend()

				// Whoever is cut off here goes on at the other core, which has seen all of it.
				other, knows := here.event(), false
				for ; !strings.HasSuffix(other.String(), " other"); other = here.event() {
					knows = knows || strings.HasSuffix(other.String(), " comes")
				}
				back := cores[1].stream(path, "Last-Event-ID: "+other.id)
				for f := back.event(); f.event != "bookmark" && f.event != "reset"; f = back.event() {
					if f.event == "patched" && !knows {
						t.Errorf("whoever was told %s last is told a patch of what they were not told: %q", other.id, f.raw)
					}
				}
				// Whoever was told more by that core comes here.
				edge.eventually("the edge has it all", func() bool {
					_, version := edge.known("pods")
					return version == api.Version()
				})
				if anew := strings.Contains(edge.log.String(), "kind was listed again"); anew != forgotten {
					t.Errorf("the edge has listed anew: %v", anew)
				}
				back = edge.stream(path, "Last-Event-ID: "+met)
				for f := back.event(); f.event != "reset" && f.String() != "deleted goes"; f = back.event() {
					if f.event == "bookmark" {
						t.Fatalf("whoever knows of what has gone since is not told that: %q", f.raw)
					}
				}
			}, cached(streamOptions(), "pods"))
		})
	}
}

// TestClientsOfEdgesEndWithTheClustersState, and go from edges to cores and back. Which of several gateways in line know of a restore
// is another test's matter.
func TestClientsOfEdgesEndWithTheClustersState(t *testing.T) {
	playSeeds(t, 4, func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 3))
		ring := cached(stream.Options{Events: 64 << random.IntN(4), Bytes: 1 << 20, Age: time.Minute}, "pods")
		inBubbleOf(t, 2, func(t *testing.T, cores []*gateway) {
			m := &model{T: t, Rand: random, api: cores[0], replicas: cores, seed: seed, lasts: true}
			for i, core := range cores[:1+random.IntN(2)] {
				m.replicas = append(m.replicas, edgeOf(core, i, ring))
			}
			m.play()
			for _, replica := range m.replicas { // a core that ends waits for the streams of all
				replica.way.cut()
			}
		}, ring)
	})
}
