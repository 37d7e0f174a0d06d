package board

import (
	"context"

	"github.com/kubecast/kubecast/internal/stream"
)

// Reader is somebody who asks a question. It is for one goroutine at a time.
type Reader struct {
	board     *Board
	key       key
	question  *question
	user      string
	fresh     <-chan struct{} // closed once there is a view that is not older than the reader
	uncounted bool            // others ask in its place
}

// Ready waits until there is a view, or the context has ended.
func (r *Reader) Ready(ctx context.Context) error {
	select {
	case <-r.fresh:
	case <-ctx.Done():
		return ctx.Err()
	}
	_, err := r.View(nil, nil)
	return err
}

// View is the newest view. It is nil as long as there is none that was made since the reader asked, or asked anew. The
// waiter, unless it is nil, is woken once when there is another view, or something to be told of the store. Of places, unless
// they are nil, it is another view only if something else stands on them, or elsewhere more or less. An error says why there is no
// answer any more.
func (r *Reader) View(w stream.Waiter, of *Places) (*View, error) {
	return r.view(awaited{waiter: w}, of)
}

// Stand is View, but the waiter is woken only once there is something to be told of the store, or no answer any more.
func (r *Reader) Stand(w stream.Waiter) (*View, error) {
	return r.view(awaited{waiter: w, still: true}, nil)
}

func (r *Reader) view(a awaited, of *Places) (*View, error) {
	q := r.question
	q.mu.Lock()
	if q.err != nil {
		defer q.mu.Unlock()
		return nil, q.err
	}
	// With the lock, so that one who gets none is woken when there is one.
	view := q.view.Load()
	select {
	case <-r.fresh:
	default:
		view = nil
	}
	if a.waiter != nil {
		q.await(r, a, of, view)
	}
	q.mu.Unlock()
	if view != nil {
		q.payment.Load().charge.Use()
	}
	return view, nil
}

// Refresh asks anew: the next view is one of everything that the store knows now.
func (r *Reader) Refresh() { r.fresh = r.question.refresh() }

// Touch brings the view up to what the store knows, which is more than the answer's last change. Nobody waits for that.
func (r *Reader) Touch() { r.question.bell.Wake() }

// Suspend says that the waiter is to be woken no more, until View is called again.
func (r *Reader) Suspend() {
	q := r.question
	q.mu.Lock()
	defer q.mu.Unlock()
	q.awaitNoMore(r)
}

// Clone returns another reader of the question, which counts against no quota. It reads for others, and not longer than they do.
func (r *Reader) Clone() *Reader {
	return &Reader{board: r.board, key: r.key, question: r.question, user: r.user, fresh: r.fresh, uncounted: true}
}

// ChargeTo says which user pays for work that is done for this reader.
func (r *Reader) ChargeTo(user string) {
	r.question.mu.Lock()
	defer r.question.mu.Unlock()
	r.user = user
}

// Identity is equal for readers of the same question, as long as it is kept.
func (r *Reader) Identity() any { return r.question }

// Close ends the reading: the waiter is woken no more.
func (r *Reader) Close() {
	r.Suspend()
	if !r.uncounted {
		r.board.leave(r.key, r.question, r.user)
	}
}
