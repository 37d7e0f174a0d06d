package livequery

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/visibility"
)

// built is a query of all pods whose answer was made, and the task in which it goes on, until end is called.
func (a *asked) built() (q *query, task *budget.Task, end func()) {
	a.Helper()
	q = newQuery(Query{Target: visibility.VisibleTarget{Target: visibility.Target{Version: "v1", Resource: "pods"}}}, a.store, 100, nil)
	q.ownership.Store(&ownership{charge: a.registry.memory.Enter("ann", time.Hour, func() {})})
	task = budget.NewTask(a.Context(), a.registry.opts.Processors, "ann")
	if err := a.store.WaitSynced(a.Context()); err != nil || !q.build(task) {
		a.Fatal(err)
	}
	return q, task, func() {
		q.cursor.Disarm()
		task.Rest()
		q.ownership.Load().charge.Release()
	}
}

// TestWhatComesWhileAnAnswerIsMadeIsReadMeanwhile, since the ring may forget it before the answer about many objects is there.
func TestWhatComesWhileAnAnswerIsMadeIsReadMeanwhile(t *testing.T) {
	withRing(t, 8, 100, 10, 16<<20, func(a *asked) {
		q, task, end := a.built()
		defer end()
		const many = 3*batchSize + 5
		for n := range many {
			a.api.Put("pods", fmt.Sprintf("meanwhile/%d", n))
			synctest.Wait()
			if n%7 == 0 {
				q.readAhead()
			}
		}
		last := a.api.Put("pods", "meanwhile/0", "spec.n=2")
		synctest.Wait()
		if !q.follow(a.Context(), task) {
			t.Fatal("the answer has to be made anew")
		}
		if s := q.snapshot.Load(); s.Ranking.Len() != 3+many || s.Version != last || s.Known().All != last {
			t.Errorf("%d objects at %d, all up to %d; want %d at %d", s.Ranking.Len(), s.Version, s.Known().All, 3+many, last)
		}
	})
}

// TestWhatWasReadAheadIsNotYetInTheAnswer: who was promised it is not told before, nor is the store said to be stale. When it
// is in the answer, nothing of it is held.
func TestWhatWasReadAheadIsNotYetInTheAnswer(t *testing.T) {
	const many = 3 * mostUntold
	withRing(t, 2*many, 100, 10, 16<<20, func(a *asked) {
		q, task, end := a.built()
		defer end()
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
