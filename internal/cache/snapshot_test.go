package cache

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// The trees are copied on write; the race detector sees whether a node is ever changed under the readers of a copy.
// At any moment, a snapshot and the cursor that begins at it join exactly.
func TestSnapshotsAreReadWhileTheStateChanges(t *testing.T) {
	store, err := newStore(pods, stream.Options{Events: 1 << 20, Bytes: 1 << 40}, []string{"spec.node"}, func() {}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	store.topic.Begin(1)
	store.upstream.setSynced()
	const changes = 5000
	selector, err := Paths{}.Selector("app=web", "")
	if err != nil {
		t.Fatal(err)
	}
	byNode, err := Paths{}.Selector("", "spec.node=n1")
	if err != nil {
		t.Fatal(err)
	}
	snapshots := make([][]*Snapshot, 4)
	var readers sync.WaitGroup
	done := make(chan struct{})
	for r := range snapshots {
		readers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				s := store.Snapshot()
				if n%50 == 0 && len(snapshots[r]) < 40 {
					snapshots[r] = append(snapshots[r], s)
				}
				all, web, node := 0, 0, 0
				for o := range s.List(stream.AllNamespaces(), Selector{}, "", "") {
					all++
					if o.Version() > s.Version() || s.Get(o.GetNamespace(), o.GetName()) != o {
						t.Errorf("a snapshot at %d has %s at %d", s.Version(), o.Key(), o.Version())
					}
					if selector.Matches(o) {
						web++
					}
					if byNode.Matches(o) {
						node++
					}
				}
				for range s.List(stream.AllNamespaces(), selector, "", "") {
					web--
				}
				for range s.List(stream.AllNamespaces(), byNode, "", "") {
					node--
				}
				if all != s.Len() || web != 0 || node != 0 {
					t.Errorf("of %d objects %d were listed; by the indexes %d and %d too few", s.Len(), all, web, node)
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for version := uint64(2); version < changes; version++ {
		name, app, node := rng.IntN(200), []string{"web", "db"}[rng.IntN(2)], rng.IntN(3)
		o, err := cluster.NewObject(fmt.Sprintf(`{"metadata":{"name":"p%d","namespace":"n","uid":"u%d","resourceVersion":"%d","labels":{"app":"%s"}},"spec":{"node":"n%d"}}`,
			name, name, version, app, node))
		if err != nil {
			t.Fatal(err)
		}
		if rng.IntN(4) == 0 {
			(*handler)(store).OnDelete(o)
		} else {
			(*handler)(store).OnUpdate(nil, o)
		}
	}
	close(done)
	readers.Wait()

	final := keys(store.Snapshot())
	for _, taken := range snapshots {
		for _, s := range taken {
			has := keys(s)
			c := store.Topic().From(s.Head, stream.AllNamespaces())
			for {
				batch, _, err := c.Next(make([]*Event, 0, 100), nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range batch {
					if has[e.Object.Key()] = e.Object.Version(); e.Type == stream.Deleted {
						delete(has, e.Object.Key())
					}
				}
				if len(batch) < 100 {
					break
				}
			}
			if fmt.Sprint(has) != fmt.Sprint(final) {
				t.Fatalf("a snapshot at %d and what followed give\n%v, not\n%v", s.Version(), has, final)
			}
		}
	}
}

func keys(s *Snapshot) map[string]uint64 {
	found := map[string]uint64{}
	for o := range s.List(stream.AllNamespaces(), Selector{}, "", "") {
		found[o.Key()] = o.Version()
	}
	return found
}
