package livequery

import (
	"slices"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// Window is some of the places that an order has.
type Window struct{ Offset, Limit int }

// Of returns what stands in the window.
func (w Window) Of(snapshot *Snapshot) []*cluster.Object {
	return snapshot.Ranking.Window(make([]*cluster.Object, 0, min(w.Limit, max(0, snapshot.Ranking.Len()-w.Offset))), w.Offset, w.Limit)
}

// subscription is a subscribed window: what stands in it, for all who wait until that is something
// else. Most changes are elsewhere. To find that out once is cheaper than to wake everybody.
type subscription struct {
	window  Window
	objects []*cluster.Object
	total   int // of the order
	moved   bool
	waiting int
}

// awaited is what a reader waits for.
type awaited struct {
	waiter       stream.Waiter
	subscription *subscription // nil: any change
	still        bool          // no change, only what is to be told of the store
}

// mostSubscribed is how many subscribed windows a query has at most. Whoever asks for more of them
// finds out alone what a change means to them.
const mostSubscribed = 64

// await has a reader be woken who has a snapshot. The lock is held.
func (q *query) await(r *Reader, a awaited, of *Window, snapshot *Snapshot) {
	q.awaitNoMore(r)
	if of != nil && snapshot != nil {
		found := q.subscribed[*of]
		if found == nil && len(q.subscribed) < mostSubscribed {
			found = &subscription{window: *of, objects: of.Of(snapshot), total: snapshot.Ranking.Len()}
			q.subscribed[*of] = found
		}
		if found != nil {
			found.waiting++
			a.subscription = found
		}
	}
	q.waiting[r] = a
}

// awaitNoMore forgets that a reader waits. The lock is held.
func (q *query) awaitNoMore(r *Reader) {
	if a, waits := q.waiting[r]; waits {
		delete(q.waiting, r)
		q.left(a.subscription)
	}
}

// left counts one less who waits for a subscription to change. The lock is held.
func (q *query) left(w *subscription) {
	if w == nil {
		return
	}
	if w.waiting--; w.waiting == 0 && q.subscribed[w.window] == w {
		delete(q.subscribed, w.window)
	}
}

// wakeMoved wakes all who wait for any change, and of the others those who wait for one in their window.
func (q *query) wakeMoved(task *budget.Task) {
	snapshot := q.snapshot.Load()
	q.mu.Lock()
	subscribed := make([]*subscription, 0, len(q.subscribed))
	for _, w := range q.subscribed {
		subscribed = append(subscribed, w)
	}
	q.mu.Unlock()
	var moved []*subscription
	for _, w := range subscribed {
		task.Step(16 * w.window.Limit)
		q.window = snapshot.Ranking.Window(q.window[:0], w.window.Offset, w.window.Limit)
		if snapshot.Ranking.Len() != w.total || !slices.Equal(q.window, w.objects) {
			moved = append(moved, w)
		}
		clear(q.window) // it must not keep objects alive
	}
	q.mu.Lock()
	// Who has come meanwhile has what stands there now, and is woken once too often.
	for _, w := range moved {
		w.moved = true
	}
	q.mu.Unlock()
	q.wake(func(a awaited) bool { return !a.still && (a.subscription == nil || a.subscription.moved) })
}
