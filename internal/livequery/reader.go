package livequery

import (
	"context"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// Reader is somebody who subscribes to a query. It is for one goroutine at a time.
type Reader struct {
	registry  *Registry
	key       key
	query     *query
	user      string
	fresh     <-chan struct{} // closed once there is a snapshot that is not older than the reader
	uncounted bool            // others ask in its place
}

// Ready waits until there is a snapshot, or the context has ended.
func (r *Reader) Ready(ctx context.Context) error {
	select {
	case <-r.fresh:
	case <-ctx.Done():
		return ctx.Err()
	}
	_, err := r.Snapshot(nil, nil)
	return err
}

// Snapshot is the newest snapshot. It is nil as long as there is none that was made since the
// reader asked, or asked anew. The waiter, unless it is nil, is woken once when there is another
// snapshot, or something to be told of the store. If a window is given, a snapshot is another one
// only if something else stands in the window, or the total has changed. An error says why there is
// no answer any more.
func (r *Reader) Snapshot(w stream.Waiter, of *Window) (*Snapshot, error) {
	return r.snapshot(awaited{waiter: w}, of)
}

// Stand is Snapshot, but the waiter is woken only once there is something to be told of the store,
// or no answer any more.
func (r *Reader) Stand(w stream.Waiter) (*Snapshot, error) {
	return r.snapshot(awaited{waiter: w, still: true}, nil)
}

func (r *Reader) snapshot(a awaited, of *Window) (*Snapshot, error) {
	q := r.query
	q.mu.Lock()
	if q.err != nil {
		defer q.mu.Unlock()
		return nil, q.err
	}
	// With the lock, so that one who gets none is woken when there is one.
	snapshot := q.snapshot.Load()
	select {
	case <-r.fresh:
	default:
		snapshot = nil
	}
	if a.waiter != nil {
		q.await(r, a, of, snapshot)
	}
	q.mu.Unlock()
	if snapshot != nil {
		q.ownership.Load().charge.Use()
	}
	return snapshot, nil
}

// Refresh asks anew: the next snapshot is one of everything that the store knows now.
func (r *Reader) Refresh() { r.fresh = r.query.refresh() }

// Selects reports whether the query selects an object in a state of it.
func (r *Reader) Selects(o *cluster.Object) bool { return r.query.covers(o) && r.query.matches(o) }

// Touch brings the snapshot up to what the store knows, which is more than the answer's last
// change. Nobody waits for that.
func (r *Reader) Touch() { r.query.wakes.Wake() }

// Suspend says that the waiter is to be woken no more, until Snapshot is called again.
func (r *Reader) Suspend() {
	q := r.query
	q.mu.Lock()
	defer q.mu.Unlock()
	q.awaitNoMore(r)
}

// Clone returns another reader of the query, which counts against no quota. It reads for others,
// and not longer than they do.
func (r *Reader) Clone() *Reader {
	return &Reader{registry: r.registry, key: r.key, query: r.query, user: r.user, fresh: r.fresh, uncounted: true}
}

// ChargeTo says which user pays for work that is done for this reader.
func (r *Reader) ChargeTo(user string) {
	r.query.mu.Lock()
	defer r.query.mu.Unlock()
	r.user = user
}

// Identity is equal for readers of the same query, as long as it is kept.
func (r *Reader) Identity() any { return r.query }

// Close ends the reading: the waiter is woken no more.
func (r *Reader) Close() {
	r.Suspend()
	if !r.uncounted {
		r.registry.leave(r.key, r.query, r.user)
	}
}
