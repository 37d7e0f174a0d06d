package http

import "sync"

// workers serve the sessions that were woken, a few for all of them: an idle stream has no goroutine. A worker never
// waits for a client; a session that would have to is given a goroutine of its own.
type workers struct {
	mu     sync.Mutex
	more   sync.Cond
	ready  []*session // woken, in their order
	taken  int        // how many of ready were taken off its front
	closed bool
}

func newWorkers() *workers {
	w := &workers{}
	w.more.L = &w.mu
	return w
}

// push has a session served, which the caller must not touch any more.
func (w *workers) push(ss *session) {
	w.mu.Lock()
	w.ready = append(w.ready, ss)
	w.mu.Unlock()
	w.more.Signal()
}

// run is one worker; it ends when the workers are closed and nothing is left to be served.
func (w *workers) run() {
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
		w.more.Wait()
	}
	ss := w.ready[w.taken]
	w.ready[w.taken] = nil
	if w.taken++; w.taken == len(w.ready) {
		w.ready, w.taken = w.ready[:0], 0
	} else if w.taken >= 1024 && w.taken > len(w.ready)/2 {
		w.ready, w.taken = append(w.ready[:0], w.ready[w.taken:]...), 0
	}
	return ss
}

func (w *workers) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.more.Broadcast()
}
