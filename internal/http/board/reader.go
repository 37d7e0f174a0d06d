package board

import (
	"context"

	"github.com/kubecast/kubecast/internal/stream"
)

// Reader is somebody who asks a question. It is for one goroutine at a time.
type Reader struct {
	board    *Board
	key      key
	question *question
	user     string
	fresh    <-chan struct{} // closed once there is a view that is not older than the reader
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
	if w != nil {
		q.await(r, w, of, view)
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

// Close ends the reading: the waiter is woken no more.
func (r *Reader) Close() {
	q := r.question
	q.mu.Lock()
	q.awaitNoMore(r)
	q.mu.Unlock()
	r.board.leave(r.key, q, r.user)
}
