package http

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/render"
)

func object(t testing.TB, name string, version int) *cluster.Object {
	t.Helper()
	o, err := cluster.NewObject(fmt.Sprintf(`{"metadata":{"name":%q,"uid":"u","resourceVersion":"%d"},"spec":{"nodeName":"n"},"status":{"phase":"Running","more":%q}}`,
		name, version, strings.Repeat("x", 2<<10)))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// latest is an object as the cache has it, once its spec.n is so.
func (g *gateway) latest(name string, n int) *cluster.Object {
	g.t.Helper()
	var o *cluster.Object
	g.eventually("it is cached", func() bool {
		stores := g.kinds.All()
		if len(stores) == 0 {
			return false
		}
		o = stores[0].Snapshot().Get("team-a", name)
		return o != nil && o.Path("spec.n").Int() == int64(n)
	})
	return o
}

// Whatever variants somebody asks for, and however many, what others want is made once for all of them.
func TestVariantsOfOneUserDoNotMakeOthersDear(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		put := func(n int) {
			g.api.Put("pods", "team-a/web", fmt.Sprintf("spec.n:=%d", n), "spec.pad="+strings.Repeat("x", 300))
		}
		put(0)
		g.latest("web", 0)
		var streams []*events
		open := func(user, query string) {
			s := g.stream("/api/v1/pods?"+query, "Authorization: Bearer "+user)
			s.until("synced")
			streams = append(streams, s)
		}
		for i := range 100 { // these are the first
			open("mallory", fmt.Sprintf("deltas=merge-patch&fields=spec,x%d", i))
		}
		open("bob", "deltas=merge-patch")
		open("carol", "fields=spec.n")
		for n := 1; n <= 3; n++ {
			put(n)
			for _, s := range streams {
				s.next()
			}
			o := g.latest("web", n)
			for _, variant := range []string{"patch", "fields=spec.n"} {
				o.Texts().Get(g.server.memory, "dave", variant, func() string {
					t.Errorf("update %d: %q would be made again for the next", n, variant)
					return ""
				})
			}
		}
	}, cached(streamOptions(), "pods"))
}

// What was rendered is forgotten by time, and with it nothing is left.
func TestRenderingsAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "team-a/web", "spec.n:=1")
		o := g.latest("web", 1)
		want := fields(t, "spec.n").Of(o)
		for range 3 {
			s := g.stream("/api/v1/pods?fields=spec.n")
			if f := s.next(); f.data != want {
				t.Errorf("%s, want %s", f.data, want)
			}
			s.close()
		}
		if bytes, users := g.server.memory.Held(); bytes == 0 || users != 1 {
			t.Errorf("%d bytes of %d users are kept", bytes, users)
		}
		pass(time.Minute)
		if bytes, users := g.server.memory.Held(); bytes != 0 || users != 0 {
			t.Errorf("after a minute %d bytes of %d users are kept", bytes, users)
		}
	}, cached(streamOptions(), "pods"))
}

func fields(t testing.TB, text string) *render.Fields {
	t.Helper()
	f, err := render.ParseFields(cache.Paths{}, text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// BenchmarkSnapshotOfFields is one object of a snapshot for a client that wants some fields: made, and found made.
func BenchmarkSnapshotOfFields(b *testing.B) {
	f, o := fields(b, "status.phase,spec.nodeName,metadata.labels"), object(b, "a", 1)
	b.Run("made", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.Of(o)
		}
	})
	b.Run("found", func(b *testing.B) {
		b.ReportAllocs()
		memory := budget.NewMemory(keptBytes)
		for b.Loop() {
			o.Texts().Get(memory, "u", f.Variant, func() string { return f.Of(o) })
		}
	})
}
