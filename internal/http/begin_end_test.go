package http

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
)

const widgetsPath = "/apis/example.org/v1/widgets"

// opaque makes the versions of widgets ones that are no numbers.
func opaque(g *gateway) {
	g.api.Answer("widgets", func(*http.Request) *apitest.Fault {
		return &apitest.Fault{Body: `{"metadata":{"resourceVersion":"eyJhIjoiNyJ9"},"items":[]}`}
	})
}

// TestVersionsThatAreNoNumbersEndNoOtherSource: who asks for such a kind learns that retrying does
// not help, and what else is on the stream goes on.
func TestVersionsThatAreNoNumbersEndNoOtherSource(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		opaque(g)
		g.api.Put("pods", "team-a/web")
		if left := g.stream(widgetsPath).end(); left[len(left)-1].String() != "goodbye gone" {
			t.Errorf("the stream of a kind that is not known yet to be one of these: %v", left)
		}
		for _, query := range []string{"", "?limit=5", "?countBy=spec.x"} {
			if a := g.get(widgetsPath+query, "Accept: text/event-stream"); a.code != http.StatusMethodNotAllowed {
				t.Errorf("%s once it is known: %d %s", query, a.code, a.body)
			}
		}
		if a := g.get(widgetsPath + "?watch=true"); a.code != http.StatusMethodNotAllowed {
			t.Errorf("a watch: %d %s", a.code, a.body)
		}
		began := time.Now()
		s := g.stream("/stream?p=/api/v1/pods&w=" + widgetsPath + "&c=" + escape(widgetsPath+"?countBy=spec.x"))
		told := map[string]string{}
		for len(told) < 3 {
			if f := s.next(); f.event == "p.synced" || strings.HasSuffix(f.event, ".stale") {
				told[f.event] = f.field("reason")
			}
		}
		if told["w.stale"] != "gone" || told["c.stale"] != "gone" || time.Since(began) > 2*time.Second {
			t.Errorf("after %v: %v", time.Since(began), told)
		}
		time.AfterFunc(10*time.Minute, func() { g.api.Put("pods", "team-a/more") })
		s.expect("p.added more")
		// A server that is mended is served, soon.
		g.api.Fail("widgets", 0)
		g.api.Put("widgets", "team-a/one")
		mended := time.Now()
		s.until("w.added")
		s.until("w.live")
		if late := time.Since(mended); late > time.Minute {
			t.Errorf("begun after %v", late)
		}
	})
}

// TestKindThatIsRemovedEndsNoOtherSource of its stream, neither while it runs nor when its client
// comes back. If the kind is installed again, it is told of again.
func TestKindThatIsRemovedEndsNoOtherSource(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("widgets", "team-a/one")
		path := "/stream?p=/api/v1/pods&w=" + widgetsPath + "&l=" + escape(widgetsPath+"?limit=5")
		s := g.stream(path)
		for begun := 0; begun < 3; {
			if f := s.next(); f.event == "p.synced" || f.event == "w.synced" || f.event == "l.page" {
				begun++
			}
		}
		g.api.Delete("widgets", "team-a/one")
		g.api.Serve(apitest.Widgets, false)
		removed := time.Now()
		gone, deleted := map[string]bool{}, map[string]bool{}
		for len(gone) < 2 {
			f := s.next()
			switch name, event, _ := strings.Cut(f.event, "."); {
			case event == "deleted":
				deleted[name] = true
			case event == "stale" && f.field("reason") == "gone":
				gone[name] = true
			case f.event == "goodbye":
				t.Fatalf("%q", f.raw)
			}
		}
		if late := time.Since(removed); !deleted["w"] || !deleted["l"] || late > 10*time.Second {
			t.Errorf("gone after %v; deleted: %v", late, deleted)
		}
		g.api.Put("pods", "team-a/web")
		position := s.until("p.added").id
		s.close()
		back := g.stream(path, "Last-Event-ID: "+position)
		for told := map[string]bool{}; len(told) < 2; {
			switch f := back.next(); {
			case f.event == "goodbye":
				t.Fatalf("%q", f.raw)
			case strings.HasSuffix(f.event, ".stale"):
				if told[f.event] = true; f.field("reason") != "gone" {
					t.Errorf("%q", f.raw)
				}
			}
		}
		g.api.Put("pods", "team-a/more")
		back.until("p.added")
		// Who asks for it anew learns that there is no such kind.
		if a := g.get(path, "Accept: text/event-stream"); a.code != http.StatusNotFound {
			t.Errorf("asked for anew: %d", a.code)
		}
		g.api.Serve(apitest.Widgets, true)
		g.api.Put("widgets", "team-a/two")
		installed := time.Now()
		for told := map[string]bool{}; len(told) < 2; {
			if f := back.next(); f.field("metadata", "name") == "two" || strings.HasSuffix(f.event, ".live") {
				told[f.event[:1]+f.field("metadata", "name")] = true
				delete(told, "w")
				delete(told, "l")
			}
		}
		if late := time.Since(installed); late > time.Minute {
			t.Errorf("begun after %v", late)
		}
		back.close()
		// A stream of which nothing is left ends.
		both := g.stream("/stream?a=" + widgetsPath + "&b=" + widgetsPath)
		both.until("b.synced")
		g.api.Serve(apitest.Widgets, false)
		if left := both.end(); left[len(left)-1].String() != "goodbye gone" {
			t.Errorf("%v", left)
		}
	})
}

// TestSourceThatCannotBeOpenedForWhateverReasonIsTriedAgain, and keeps the client from nothing else of its stream.
func TestSourceThatCannotBeOpenedForWhateverReasonIsTriedAgain(t *testing.T) {
	for name, late := range map[string]time.Duration{"at once": 0, "late": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *gateway) {
				g.api.Put("pods", "team-a/web")
				g.api.Put("jobs", "team-a/train")
				var broken atomic.Bool
				broken.Store(true)
				g.access.set(func(a *fakeAuth) {
					a.decide = func(_ auth.Identity, r auth.Request) (bool, error) {
						if r.Resource == "jobs" && broken.Load() {
							pass(late)
							return false, errors.New("broken inside")
						}
						return true, nil
					}
				})
				s := g.stream("/stream?p=/api/v1/pods&j=/apis/batch/v1/jobs")
				for told := map[string]bool{}; !told["p.synced"] || !told["j.stale"]; {
					f := s.next()
					if told[f.event] = true; f.event == "goodbye" {
						t.Fatalf("%q", f.raw)
					}
				}
				broken.Store(false)
				began := time.Now()
				s.until("j.added")
				if took := time.Since(began); took > 30*time.Second {
					t.Errorf("begun after %v", took)
				}
			})
		})
	}
}

// TestClientThatLeavesWhileItsSourcesAreOpenedIsNoticed, whoever is asked what they may see.
func TestClientThatLeavesWhileItsSourcesAreOpenedIsNoticed(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		hang := make(chan struct{})
		g.access.set(func(a *fakeAuth) { a.hang = hang })
		defer close(hang)
		for _, path := range []string{"/api/v1/pods", "/stream?a=/api/v1/pods&b=/apis/batch/v1/jobs"} {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if response, err := g.client.Do(g.newRequest(ctx, http.MethodGet, path, []string{"Accept: text/event-stream"})); err == nil {
				response.Body.Close()
			}
			cancel()
			pass(time.Second)
			if n := g.access.listeners(); n != 0 {
				t.Errorf("%s: a second after its client has left, %d streams are being opened", path, n)
			}
		}
	})
}
