package http

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// TestOneSourceThatIsNotReadySilencesNoOther: a kind whose list fails, as while its conversion
// webhook is down, is stale with the reason, and everything else on its stream goes on. It begins
// when it can.
func TestOneSourceThatIsNotReadySilencesNoOther(t *testing.T) {
	for name, fault := range map[string]struct {
		makes  func(*gateway)
		reason string
	}{
		"its list fails":     {func(g *gateway) { g.api.Fail("pods", http.StatusInternalServerError) }, "unreachable"},
		"its list hangs":     {func(g *gateway) { g.api.Hang("pods") }, "starting"},
		"it may not be read": {func(g *gateway) { g.api.Fail("pods", http.StatusForbidden) }, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *gateway) {
				g.api.Put("pods", "team-a/web")
				g.api.Put("jobs", "team-a/train")
				g.patience = time.Hour
				fault.makes(g)
				began := time.Now()
				s := g.stream("/stream?jobs=/apis/batch/v1/jobs&pods=/api/v1/pods&hist=/api/v1/pods%3FcountBy%3Dspec.x")
				told := map[string]string{}
				for len(told) < 3 {
					f := s.next()
					if name, is := strings.CutSuffix(f.event, ".stale"); is {
						told[name] = f.field("reason")
					} else if f.event == "jobs.synced" {
						told["jobs"] = "synced"
					}
				}
				if told["pods"] != fault.reason || told["hist"] != fault.reason || time.Since(began) > 2*time.Second {
					t.Errorf("after %v: %v", time.Since(began), told)
				}
				defer time.AfterFunc(2*time.Minute, func() { g.api.Put("jobs", "team-a/more") }).Stop() // longer than any patience
				for f := s.next(); f.event != "jobs.added"; f = s.next() {
					if strings.HasSuffix(f.event, "goodbye") || strings.Contains(f.id, "pods") {
						t.Fatalf("%q", f.raw)
					}
				}
				g.api.Fail("pods", 0)
				s.until("pods.added")
				if f := s.until("pods.live"); !strings.Contains(f.id, "pods-") || !strings.Contains(f.id, "jobs-") {
					t.Errorf("%q", f.raw)
				}
			})
		})
	}
}

// TestSourceThatHasNotBegunKeepsItsPlaceInTheIDs: a client that comes to a replica which cannot
// read one of its kinds keeps the position that it has there, and goes on from it wherever that can
// be read.
func TestSourceThatHasNotBegunKeepsItsPlaceInTheIDs(t *testing.T) {
	inBubbleOf(t, 2, func(t *testing.T, replicas []*gateway) {
		one, other := replicas[0], replicas[1]
		const path = "/stream?jobs=/apis/batch/v1/jobs&pods=/api/v1/pods"
		one.api.Put("pods", "team-a/web")
		one.api.Put("jobs", "team-a/train")
		held := one.stream(path)
		position := held.until("pods.synced").id
		other.stream("/apis/batch/v1/jobs").until("synced")
		one.api.Fail("pods", http.StatusInternalServerError) // what one has of them it keeps
		one.api.Put("jobs", "team-a/missed")
		s := other.stream(path, "Last-Event-ID: "+position)
		f := s.until("jobs.added")
		claim := position[strings.Index(position, "pods-"):]
		if !strings.Contains(f.id, "."+claim) {
			t.Fatalf("the client came with %s, and has %q", position, f.raw)
		}
		one.api.Fail("pods", 0)
		one.api.Put("pods", "team-a/missed")
		// Each goes on from it: the one that was away at first, and any other replica.
		for f := s.next(); f.event != "pods.added" || f.field("metadata", "name") != "missed"; f = s.next() {
			if f.event == "pods.reset" || f.event == "pods.synced" {
				t.Fatalf("%q", f.raw)
			}
		}
		one.stream(path, "Last-Event-ID: "+f.id).expect("pods.added missed")
	})
}

// TestSourceBeginsWithThePermissionsOfNow in whatever form, also if they change, and clients leave,
// while it cannot be read.
func TestSourceBeginsWithThePermissionsOfNow(t *testing.T) {
	for _, query := range []string{"", "conflate=1m", "deltas=merge-patch", "fields=spec.n", "limit=5", "countBy=metadata.namespace", "sendInitialEvents=false"} {
		t.Run(query, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *gateway) {
				g.api.Put("pods", "team-a/one")
				g.api.Put("pods", "team-b/two")
				g.api.Put("jobs", "team-a/train")
				g.access.permit("ann", auth.Scope{All: true})
				g.api.Hang("pods")
				path, ann := "/stream?jobs=/apis/batch/v1/jobs&pods="+escape("/api/v1/pods?"+query), "Authorization: Bearer ann"
				s := g.stream(path, ann)
				s.until("pods.stale")
				for range 20 {
					g.stream(path, ann).close()
				}
				for i := range 10 {
					g.access.permit("ann", auth.Scope{Namespaces: []string{fmt.Sprintf("team-%c", 'a'+rune(i%2))}})
					pass(time.Duration(i) * 30 * time.Millisecond)
				}
				// Only team-b is left.
				s.until("jobs.narrowed")
				pass(time.Second)
				g.api.Put("pods", "team-a/unseen")
				g.api.Fail("pods", 0)
				healed := time.Now()
				for told := ""; ; {
					f := s.next()
					if told += f.data; strings.Contains(f.event+f.data, "goodbye") || f.event != "jobs.deleted" && strings.Contains(f.data, "team-a") && strings.HasPrefix(f.event, "pods.") {
						t.Fatalf("%q", f.raw)
					}
					if f.event == "pods.live" {
						break
					}
				}
				if late := time.Since(healed); late > 30*time.Second {
					t.Errorf("live after %v", late)
				}
				g.api.Put("pods", "team-a/hidden")
				g.api.Put("pods", "team-b/new")
				for f := s.next(); ; f = s.next() {
					if strings.Contains(f.data, "hidden") {
						t.Fatalf("%q", f.raw)
					}
					if f.event == "pods.counts" || f.event == "pods.added" && f.field("metadata", "name") == "new" {
						break
					}
				}
				s.close()
				g.eventually("all have left", func() bool { return g.streams() == 0 && g.access.listeners() == 0 })
			})
		})
	}
}
