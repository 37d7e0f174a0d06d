package http

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestConflatedClientThatChangesReplicasIsToldWhatIsGone: while a modification is held back, the
// position does not forget what was told after it. Another replica may have leapt over that.
func TestConflatedClientThatChangesReplicasIsToldWhatIsGone(t *testing.T) {
	inBubbleOf(t, 2, func(t *testing.T, replicas []*gateway) {
		one, other := replicas[0], replicas[1]
		one.api.Put("pods", "team-a/held", "spec.n:=0")
		other.stream("/api/v1/pods").expect("added held", "synced")
		s := one.stream("/api/v1/pods?conflate=30s")
		s.expect("added held", "synced")
		one.api.Put("pods", "team-a/held", "spec.n:=1")
		s.expect("modified held")
		synctest.Wait()
		other.way.cut()
		before := one.api.Put("pods", "team-a/held", "spec.n:=2") - 1 // held back
		brief := one.api.Put("pods", "team-a/brief")
		if f := s.expect("added brief"); f.id != id(before)+fmt.Sprint("-", brief) {
			t.Errorf("%q does not say that all was told up to %d, and some up to %d", f.raw, before, brief)
		}
		s.close()
		one.api.Delete("pods", "team-a/brief")
		one.api.Compact()
		other.way.mend()
		other.eventually("it has listed again", func() bool { return strings.Contains(other.get("/api/v1/pods").body, `"n":2`) })
		s = other.stream("/api/v1/pods?conflate=30s", "Last-Event-ID: "+s.lastID)
		one.api.Put("pods", "team-a/end")
		for f := s.next(); f.String() != "deleted brief" && f.event != "reset"; f = s.next() {
			if f.String() == "added end" {
				t.Fatal("what is gone was not told as deleted, nor was there a reset: the client keeps it for ever")
			}
		}
	})
}

// TestPatchIsOnlyToldOfWhatTheClientHolds: what happened between a position's two ends may have been told, deletions as
// well, so it is told again whole.
func TestPatchIsOnlyToldOfWhatTheClientHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		pad := "spec.text=" + strings.Repeat("0123456789", 20)
		g.api.Put("pods", "team-a/held", "spec.n:=0", pad)
		g.api.Put("pods", "team-a/gone", "spec.n:=0", pad)
		path := "/api/v1/pods?deltas=merge-patch&conflate=30s"
		s := g.stream(path)
		s.expect("added gone", "added held", "synced")
		for _, change := range []struct {
			what string
			do   func()
		}{
			{"patched", func() { g.api.Put("pods", "team-a/held", "spec.n:=1", pad) }},
			{"", func() { g.api.Put("pods", "team-a/held", "spec.n:=2", pad) }}, // held back
			{"patched", func() { g.api.Put("pods", "team-a/gone", "spec.n:=1", pad) }},
			{"deleted gone", func() { g.api.Delete("pods", "team-a/gone") }},
		} {
			change.do()
			synctest.Wait()
			if change.what != "" {
				s.expect(change.what)
			}
		}
		s.close()
		s = g.stream(path, "Last-Event-ID: "+s.lastID)
		s.expect("modified held", "modified gone", "deleted gone")
		g.api.Put("pods", "team-a/held", "spec.n:=3", pad)
		if f := s.expect("patched"); f.field("patch", "spec", "n") != "3" {
			t.Errorf("%q", f.raw)
		}
	})
}

// TestObjectsWithoutUIDAreConflatedByName: an aggregated API server need not give any.
func TestObjectsWithoutUIDAreConflatedByName(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		names := []string{"a", "b", "c"}
		put := func(n int) {
			for _, name := range names {
				g.api.Put("widgets", "team-a/"+name, "metadata.uid=", fmt.Sprintf("spec.n:=%d", n), "spec.text="+strings.Repeat("x", 300))
			}
			synctest.Wait()
		}
		put(0)
		s := g.stream("/apis/example.org/v1/widgets?conflate=10s&deltas=merge-patch")
		s.until("synced")
		put(1)
		s.expect("modified a", "modified b", "modified c") // a patch says by uid of what it is
		put(2)
		put(3)
		told := map[string]string{}
		for range names {
			f := s.next()
			told[f.String()] = f.field("spec", "n")
		}
		if want := map[string]string{"modified a": "3", "modified b": "3", "modified c": "3"}; !maps.Equal(told, want) {
			t.Errorf("%v", told)
		}
	})
}

// TestHeldModificationIsToldWhenItIsDue, also after a catch-up, and by a stream on which nothing else happens.
func TestHeldModificationIsToldWhenItIsDue(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		seen := g.api.Put("pods", "team-a/web", "spec.n:=0")
		g.api.Put("pods", "team-a/web", "spec.n:=1")
		g.api.Put("pods", "team-a/web", "spec.n:=2")
		began := time.Now()
		s := g.stream("/api/v1/pods?conflate=3s", "Last-Event-ID: "+id(seen))
		for _, n := range []string{"1", "2"} {
			if f := s.expect("modified web"); f.field("spec", "n") != n {
				t.Errorf("%q", f.raw)
			}
		}
		if took := time.Since(began); took < 3*time.Second || took > 5*time.Second {
			t.Errorf("told after %v", took)
		}
	})
}
