package livequery

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/http/access"
)

// TestWhatWasReadAheadIsNotYetInTheAnswer: who was promised it is not told before, nor is the store said to be stale. When it
// is in the answer, nothing of it is held.
func TestWhatWasReadAheadIsNotYetInTheAnswer(t *testing.T) {
	const many = 3 * mostUntold
	withRing(t, 2*many, 100, 10, 16<<20, func(a *asked) {
		q := newQuery(Query{Part: access.Part{Target: access.Target{Version: "v1", Resource: "pods"}}}, a.store, 100, nil)
		q.ownership.Store(&ownership{charge: a.registry.memory.Enter("ann", time.Hour, func() {})})
		defer q.ownership.Load().charge.Release()
		task := budget.NewTask(a.Context(), a.registry.opts.Processors, "ann")
		defer task.Rest()
		if err := a.store.WaitSynced(a.Context()); err != nil || !q.build(task) {
			t.Fatal(err)
		}
		defer func() { q.cursor.Disarm() }()
		for n := range many {
			a.api.Put("pods", fmt.Sprintf("meanwhile/%d", n))
		}
		synctest.Wait()
		q.readAhead()
		asked := q.refresh()
		var first *Snapshot
		paid := false
		q.waiting[&Reader{query: q, user: "ann"}] = awaited{waiter: wakeFunc(func() {
			first = q.snapshot.Load()
			select {
			case <-asked:
				paid = true
			default:
			}
		})}
		if !q.follow(a.Context(), task) {
			t.Fatal("the answer has to be made anew")
		}
		if n := first.Ranking.Len(); n == 3+many || paid {
			t.Errorf("who was promised %d objects was told of %d, and that this was it: %v", 3+many, n, paid)
		}
		if !first.Upstream.Live {
			t.Error("a store that is live is said to be stale")
		}
		if cap(q.read) > 0 {
			t.Error("what was read ahead is held")
		}
	})
}

type wakeFunc func()

func (f wakeFunc) Wake() { f() }
