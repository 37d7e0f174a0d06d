package http

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// In these tests time passes only while everything waits: what takes an hour takes milliseconds, and takes exactly an
// hour.

// TestSilenceIsNeverLongerThanTheHeartbeat, and traffic puts the heartbeat off.
func TestSilenceIsNeverLongerThanTheHeartbeat(t *testing.T) {
	for name, test := range map[string]struct {
		query    string
		interval time.Duration
	}{
		"the server's":     {"", 15 * time.Second},
		"the client's":     {"?heartbeat=20s", 20 * time.Second},
		"too short":        {"?heartbeat=1ms", 5 * time.Second},
		"too long":         {"?heartbeat=48h", 60 * time.Second},
		"the same as ours": {"?heartbeat=15000ms", 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *gateway) {
				s := g.stream("/api/v1/pods" + test.query)
				s.expect("synced")
				comments, last := 0, time.Now()
				for began := last; time.Since(began) < 10*time.Minute; {
					f := s.frame()
					silence := time.Since(last)
					if silence > test.interval {
						t.Errorf("%v of silence", silence)
					}
					if f.comment {
						if comments++; silence < test.interval/2 {
							t.Errorf("a heartbeat after only %v", silence)
						}
					}
					last = time.Now()
				}
				if most := int(10*time.Minute/test.interval) + 12; comments > most {
					t.Errorf("%d heartbeats in ten minutes", comments)
				}
			})
		})
	}
}

func TestTrafficPutsTheHeartbeatOff(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		s := g.stream("/api/v1/pods")
		s.expect("synced")
		for i := range 100 {
			pass(5 * time.Second)
			g.api.Put("pods", fmt.Sprintf("team-a/pod-%d", i))
			for f := s.frame(); f.event != "added"; f = s.frame() {
				if f.comment {
					t.Fatal("a heartbeat in the midst of traffic")
				}
			}
		}
	})
}

// TestBookmarksOfAQuietWatch: there is one at least every minute, for each watch (docs/wire.md, rule 6).
func TestBookmarksOfAQuietWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		s := g.stream("/stream?a=/api/v1/pods&b=" + escape("/api/v1/namespaces/none/pods?labelSelector=app=web"))
		s.until("a.synced")
		s.until("b.synced")
		last := map[string]time.Time{"a.bookmark": time.Now(), "b.bookmark": time.Now()}
		for range 40 {
			// What neither watch is told moves both of their positions.
			g.api.Put("pods", "other/pod", "metadata.labels.app=db")
			version := g.api.Version()
			for seen := 0; seen < 2; {
				f := s.frame()
				if !strings.HasSuffix(f.event, "bookmark") {
					continue
				}
				if silence := time.Since(last[f.event]); silence > time.Minute {
					t.Fatalf("%v without a %s", silence, f.event)
				}
				last[f.event] = time.Now()
				if f.field("resourceVersion") == fmt.Sprint(version) {
					seen++
				}
			}
		}
	})
}

// TestClientThatComesBackHearsAtOnce: to a page, an open stream that says nothing is as one whose gateway is away.
func TestClientThatComesBackHearsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		path := "/stream?a=/api/v1/pods&b=/api/v1/nodes"
		s := g.stream(path)
		s.until("a.synced")
		position := s.until("b.synced").id
		s.close()
		began := time.Now()
		s = g.stream(path, "Last-Event-ID: "+position)
		for _, want := range []string{"a.bookmark", "b.bookmark"} {
			f := s.event()
			if f.event != want || f.id != position || time.Since(began) > time.Second {
				t.Errorf("after %v %s at %s, not %s at %s", time.Since(began), f.event, f.id, want, position)
			}
		}
	})
}
