package http

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// TestLiveCountsAreTold at once, when they change, and with what the caller may see; not when something else changes.
func TestLiveCountsAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		for key, phase := range map[string]string{"a/1": "Running", "a/2": "Running", "b/1": "Failed"} {
			g.api.Put("pods", key, "status.phase="+phase, "spec.node=n1")
		}
		g.access.permit("ann", auth.Scope{Namespaces: []string{"a"}})
		all := g.stream("/api/v1/pods?countBy=status.phase")
		two := g.stream("/stream?n=" + strings.ReplaceAll("/api/v1/pods?countBy=status.phase,spec.node&search=1&conflate=1s", "&", "%26"))
		ann := g.stream("/api/v1/pods?countBy=status.phase", "Authorization: Bearer ann")
		tells := func(s *events, event, want string) {
			t.Helper()
			if f := s.next(); f.event != event || !strings.HasPrefix(f.data, `{"counts":`+want+`,"resourceVersion":"`) || !strings.Contains(f.id, f.field("resourceVersion")) {
				t.Fatalf("not %s: %s", want, f.raw)
			}
		}
		tells(all, "counts", `[{"value":"Running","count":2},{"value":"Failed","count":1}]`)
		tells(two, "n.counts", `[{"values":["Failed","n1"],"count":1},{"values":["Running","n1"],"count":1}]`)
		ann.expect("narrowed")
		tells(ann, "counts", `[{"value":"Running","count":2}]`)
		pass(time.Second)

		g.api.Put("pods", "b/1", "status.phase=Failed", "spec.node=n1", "spec.other=1") // changes no count
		g.api.Put("pods", "a/2", "status.phase=Failed", "spec.node=n1")
		tells(all, "counts", `[{"value":"Failed","count":2},{"value":"Running","count":1}]`)
		tells(ann, "counts", `[{"value":"Failed","count":1},{"value":"Running","count":1}]`)
		began := time.Now()
		for _, phase := range []string{"A", "B", "C"} { // within the interval only the last is told
			g.api.Put("pods", "a/2", "status.phase="+phase)
		}
		tells(all, "counts", `[{"value":"C","count":1},{"value":"Failed","count":1},{"value":"Running","count":1}]`)
		if since := time.Since(began); since > 300*time.Millisecond {
			t.Errorf("told after %v", since)
		}
		tells(ann, "counts", `[{"value":"C","count":1},{"value":"Running","count":1}]`)
		g.api.Delete("pods", "b/1")
		tells(two, "n.counts", `[{"values":["Running","n1"],"count":1}]`)

		g.access.permit("ann", auth.Scope{All: true})
		ann.expect("widened")
		tells(ann, "counts", `[{"value":"C","count":1},{"value":"Running","count":1}]`)
		g.access.permit("ann", auth.Scope{Namespaces: []string{"b"}})
		ann.expect("narrowed")
		tells(ann, "counts", `[]`)
	})
}

// TestLiveCountsAreTheClusters: at each event, the counts are those of the API server's objects at that version.
func TestLiveCountsAreTheClusters(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.access.permit("carl", auth.Scope{Namespaces: []string{"team-a"}}) // whose permissions do not change
		m := &pageModel{T: t, Rand: rand.New(rand.NewPCG(1, 2)), replicas: []*gateway{g}, api: g}
		var running sync.WaitGroup
		told, last := make([]int, 4), make([]uint64, 4)
		var mu sync.Mutex
		var rests []func() // check what was told last, when nothing has happened for a while
		for i, by := range []string{"status.phase", "spec.n", "spec.n,status.phase", "metadata.name"} {
			user := []string{"alice", "carl"}[i%2]
			var has map[string]int
			rests = append(rests, func() {
				if want := countsOf(g.api.Objects("pods"), by, user == "carl"); !maps.Equal(has, want) {
					t.Errorf("by %s after a rest: %v, not %v", by, has, want)
				}
			})
			s := g.stream("/api/v1/pods?conflate=10ms&labelSelector=app%3Dweb&countBy="+by, "Authorization: Bearer "+user)
			running.Go(func() {
				for {
					f, err := s.read()
					if err != nil {
						return
					}
					if f.event != "counts" {
						continue
					}
					var data struct {
						Counts []struct {
							Value  string
							Values []string
							Count  int
						}
						ResourceVersion string
					}
					if err := json.Unmarshal([]byte(f.data), &data); err != nil {
						t.Error(err)
						return
					}
					version, err := strconv.ParseUint(data.ResourceVersion, 10, 64)
					if err != nil {
						t.Error(err)
						return
					}
					var want map[string]int
					got := map[string]int{}
					for _, c := range data.Counts {
						if c.Values == nil {
							c.Values = []string{c.Value}
						}
						got[fmt.Sprint(c.Values)] = c.Count
					}
					for _, objects := range g.api.States("pods", version) { // of a revision that comes in parts, the counts may have some
						if want = countsOf(objects, by, user == "carl"); maps.Equal(got, want) {
							break
						}
					}
					if !maps.Equal(got, want) || version < last[i] {
						t.Errorf("by %s at %d: %v, not %v", by, version, got, want)
					}
					told[i]++
					last[i] = version
					mu.Lock()
					has = got
					mu.Unlock()
				}
			})
			defer s.close()
		}
		for step := range 300 {
			m.churn()
			pass(time.Duration(m.IntN(60)) * time.Millisecond)
			if step%50 == 49 {
				g.api.Fail("pods", 0)
				pass(3 * time.Minute)
				m.lastInParts()
				synctest.Wait()
				mu.Lock()
				for _, check := range rests {
					check()
				}
				mu.Unlock()
			}
		}
		g.api.Fail("pods", 0)
		pass(3 * time.Minute)
		g.api.Put("pods", "team-a/last", "metadata.labels.app=web", "status.phase=Last", "spec.n:=77")
		pass(time.Second)
		version := g.api.Version()
		g.server.streams.Drain(t.Context())
		running.Wait()
		for i := range told {
			if told[i] < 3 || last[i] != version { // how often counts were told together is a matter of luck
				t.Errorf("only %d events, up to %d of %d", told[i], last[i], version)
			}
		}
	})
}

// countsOf are the counts of some objects with the label app=web, in all namespaces or in team-a.
func countsOf(objects map[string]string, by string, narrowed bool) map[string]int {
	counts := map[string]int{}
	for key, text := range objects {
		o := decodedObject(text)
		if metadata := o["metadata"].(map[string]any); fmt.Sprint(metadata["labels"]) != "map[app:web]" || narrowed && !strings.HasPrefix(key, "team-a/") {
			continue
		}
		var values []string
		for path := range strings.SplitSeq(by, ",") {
			outer, inner, _ := strings.Cut(path, ".")
			value, is := o[outer].(map[string]any)[inner]
			if !is {
				value = ""
			}
			values = append(values, fmt.Sprint(value))
		}
		counts[fmt.Sprint(values)]++
	}
	return counts
}
