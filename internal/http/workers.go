package http

import (
	"sync"
	"time"
)

// workers serve the sessions that were woken, a few for all of them: an idle stream has no goroutine. A worker never
// waits for a client; a session that would have to is given a goroutine of its own.
//
// One worker does the work as long as that takes no longer than patience; only then do the others help. To have all of
// them at it at once takes the processors from everybody else, and is sooner done only where many streams are woken.
type workers struct {
	patience time.Duration

	mu     sync.Mutex
	more   sync.Cond
	ready  []*session // in their order
	taken  int        // how many of ready were taken off its front
	since  time.Time  // there have been some
	total  int        // workers
	asleep int        // of them, and not called
	closed bool
}

// helpAfter is the patience of the workers: as long as events are gathered by default, and as it takes one of them to
// serve some five hundred streams.
const helpAfter = 5 * time.Millisecond

func newWorkers() *workers {
	w := &workers{patience: helpAfter}
	w.more.L = &w.mu
	return w
}

// push has a session served, which the caller must not touch any more.
func (w *workers) push(ss *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taken == len(w.ready) {
		w.since = time.Now()
	}
	w.ready = append(w.ready, ss)
	w.call()
}

// call wakes a worker if all are asleep, or those who work are late.
func (w *workers) call() {
	if w.asleep > 0 && (w.asleep == w.total || time.Since(w.since) > w.patience) {
		w.asleep--
		w.more.Signal()
	}
}

// run is one worker; it ends when the workers are closed and nothing is left to be served.
func (w *workers) run() {
	w.mu.Lock()
	w.total++
	w.mu.Unlock()
	for ss := w.pop(); ss != nil; ss = w.pop() {
		ss.work()
	}
}

func (w *workers) pop() *session {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.taken == len(w.ready) {
		if w.closed {
			return nil
		}
		w.asleep++
		w.more.Wait()
	}
	ss := w.ready[w.taken]
	w.ready[w.taken] = nil
	if w.taken++; w.taken == len(w.ready) {
		w.ready, w.taken = w.ready[:0], 0
		return ss
	}
	if w.taken >= 1024 && w.taken > len(w.ready)/2 {
		w.ready, w.taken = append(w.ready[:0], w.ready[w.taken:]...), 0
	}
	w.call()
	return ss
}

func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.asleep = true, 0
	w.more.Broadcast()
}
