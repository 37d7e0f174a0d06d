package http

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
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

// TestProjectionsAreMadeOnceAndForgotten, and those of another version or of other fields are others.
func TestProjectionsAreMadeOnceAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p projections
		phase, node := fields(t, "status.phase"), fields(t, "spec.nodeName")
		old, young := object(t, "a", 1), object(t, "a", 2)
		for range 3 {
			p.use()
			for _, o := range []*cluster.Object{old, young} {
				for _, f := range []*projection{phase, node, nil} {
					if got, want := p.of(f, o), f.of(o.JSON()); got != want {
						t.Errorf("%s, not %s", got, want)
					}
				}
			}
			p.mu.RLock()
			if len(p.made) != 4 {
				t.Errorf("%d were kept", len(p.made))
			}
			p.mu.RUnlock()
			time.Sleep(projectionsKept * 3 / 4)
		}
		time.Sleep(projectionsKept)
		synctest.Wait()
		p.mu.Lock()
		if p.made != nil || p.bytes != 0 || p.waiting {
			t.Errorf("%d are left", len(p.made))
		}
		p.bytes = projectionsBytes
		p.mu.Unlock()
		if got := p.of(phase, old); got != phase.of(old.JSON()) || len(p.made) != 0 {
			t.Errorf("beyond the bound %d are kept", len(p.made))
		}
	})
}

func fields(t testing.TB, text string) *projection {
	t.Helper()
	f, err := parseFields(text)
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
			f.of(o.JSON())
		}
	})
	b.Run("found", func(b *testing.B) {
		b.ReportAllocs()
		var p projections
		for b.Loop() {
			p.of(f, o)
		}
	})
}
