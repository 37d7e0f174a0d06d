package board

import (
	"slices"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// Places are some of those that an order has.
type Places struct{ Offset, Limit int }

// Of returns what stands on the places.
func (p Places) Of(view *View) []*cluster.Object {
	return view.Ranking.Window(make([]*cluster.Object, 0, min(p.Limit, max(0, view.Ranking.Len()-p.Offset))), p.Offset, p.Limit)
}

// window is what stands on places, for those who wait until that is something else: most changes are elsewhere, and to find that out once
// is cheaper than to wake everybody.
type window struct {
	places  Places
	objects []*cluster.Object
	total   int // of the order
	moved   bool
	waiting int
}

// awaited is what a reader waits for.
type awaited struct {
	waiter stream.Waiter
	window *window // nil: any change
	still  bool    // no change, only what is to be told of the store
}

// mostWindows is how many windows a question has at most. Whoever asks for more of them finds out alone what a change means to them.
const mostWindows = 64

// await has a reader be woken who has a view. The lock is held.
func (q *question) await(r *Reader, a awaited, of *Places, view *View) {
	q.awaitNoMore(r)
	if of != nil && view != nil {
		found := q.windows[*of]
		if found == nil && len(q.windows) < mostWindows {
			found = &window{places: *of, objects: of.Of(view), total: view.Ranking.Len()}
			q.windows[*of] = found
		}
		if found != nil {
			found.waiting++
			a.window = found
		}
	}
	q.waiting[r] = a
}

// awaitNoMore forgets that a reader waits. The lock is held.
func (q *question) awaitNoMore(r *Reader) {
	if a, waits := q.waiting[r]; waits {
		delete(q.waiting, r)
		q.left(a.window)
	}
}

// left counts one less who waits for a window to change. The lock is held.
func (q *question) left(w *window) {
	if w == nil {
		return
	}
	if w.waiting--; w.waiting == 0 && q.windows[w.places] == w {
		delete(q.windows, w.places)
	}
}

// wakeMoved wakes all who wait for any change, and of the others those who wait for one on their places.
func (q *question) wakeMoved(task *budget.Task) {
	view := q.view.Load()
	q.mu.Lock()
	windows := make([]*window, 0, len(q.windows))
	for _, w := range q.windows {
		windows = append(windows, w)
	}
	q.mu.Unlock()
	var moved []*window
	for _, w := range windows {
		task.Step(16 * w.places.Limit)
		q.places = view.Ranking.Window(q.places[:0], w.places.Offset, w.places.Limit)
		if view.Ranking.Len() != w.total || !slices.Equal(q.places, w.objects) {
			moved = append(moved, w)
		}
		clear(q.places) // it must not keep objects alive
	}
	q.mu.Lock()
	// Who has come meanwhile has what stands there now, and is woken once too often.
	for _, w := range moved {
		w.moved = true
	}
	q.mu.Unlock()
	q.wake(func(a awaited) bool { return !a.still && (a.window == nil || a.window.moved) })
}
