package livequery

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
)

// placed is one who has what stands on window, and looks again when woken.
type placed struct {
	*asked
	reader *Reader
	window Window
	has    []*cluster.Object
	total  int
	woken  int
	slow   bool // looks a while after it was woken
	due    bool
}

func (p *placed) Wake() {
	p.woken++
	if p.due = true; !p.slow {
		p.look()
	}
}

func (p *placed) look() {
	snapshot, err := p.reader.Snapshot(p, &p.window)
	if err != nil || snapshot == nil {
		p.Fatal(snapshot, err)
	}
	p.has, p.total, p.due = p.window.Of(snapshot), snapshot.Ranking.Len(), false
}

// TestWhoWaitsForPlacesIsWokenByWhatChangesThere, at once, and seldom by anything else.
func TestWhoWaitsForPlacesIsWokenByWhatChangesThere(t *testing.T) {
	t.Run("all kept", func(t *testing.T) { whoWaitsIsWoken(t, 100) })
	t.Run("some kept", func(t *testing.T) { whoWaitsIsWoken(t, 1) })
}

func whoWaitsIsWoken(t *testing.T, keep int) {
	withRing(t, 1000, keep, 10, 16<<20, func(a *asked) {
		random := rand.New(rand.NewPCG(1, 2))
		var all []*placed
		for n := range 12 {
			window := Window{Offset: random.IntN(3) * 4, Limit: 1 + random.IntN(5)}
			reader, err := a.places(window.Offset+window.Limit, []string{"spec.n", "-spec.n"}[n%2], "ann")
			if err != nil {
				t.Fatal(err)
			}
			if err := reader.Ready(a.Context()); err != nil {
				t.Fatal(err)
			}
			p := &placed{asked: a, reader: reader, window: window, slow: n%3 == 0}
			p.look()
			all = append(all, p)
		}
		synctest.Wait()
		needed := 0
		for step := range 2000 {
			before := make([][]*cluster.Object, len(all))
			for i, p := range all {
				before[i], p.woken = p.has, 0
			}
			key := fmt.Sprintf("c/%d", random.IntN(60))
			for range 1 + random.IntN(2) {
				if random.IntN(6) == 0 && slices.Contains(a.api.Keys("pods"), key) {
					a.api.Delete("pods", key)
				} else {
					a.api.Put("pods", key, fmt.Sprintf("spec.n:=%d", random.IntN(50)))
				}
			}
			if random.IntN(20) == 0 {
				all[random.IntN(len(all))].reader.Touch()
			}
			time.Sleep(2 * sameRevision) // of the bubble, for which the query waits as well
			synctest.Wait()
			for i, p := range all {
				snapshot, err := p.reader.Snapshot(nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				is := p.window.Of(snapshot)
				if !p.due && (!slices.Equal(p.has, is) || p.total != snapshot.Ranking.Len()) {
					t.Fatalf("step %d: %d places from %d have changed, and nobody was woken", step, p.window.Limit, p.window.Offset)
				}
				if !slices.Equal(before[i], is) {
					needed++
				}
				if p.due && random.IntN(3) == 0 {
					p.look()
				}
			}
		}
		if needed < 2000 {
			t.Errorf("only %d times there was something to tell", needed)
		}
		// What stands in the middle concerns nobody who has the first place.
		first := &placed{asked: a, reader: all[0].reader, window: Window{Limit: 1}}
		for n := range 20 {
			a.api.Put("pods", "c/middle", "spec.n:=25", fmt.Sprintf("spec.m:=%d", n))
			time.Sleep(2 * sameRevision)
			synctest.Wait()
			if n == 0 {
				first.look()
			}
		}
		if first.woken > 0 {
			t.Errorf("woken %d times by what stands elsewhere", first.woken)
		}
		for _, p := range all {
			p.reader.Close()
		}
		for _, q := range []*query{all[0].reader.query, all[1].reader.query} {
			q.mu.Lock()
			if len(q.subscribed)+len(q.waiting) > 0 {
				t.Errorf("%d subscriptions and %d who wait are left", len(q.subscribed), len(q.waiting))
			}
			q.mu.Unlock()
		}
	})
}
