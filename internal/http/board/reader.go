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
	_, err := r.View(nil)
	return err
}

// View is the newest view. It is nil as long as there is none that was made since the reader asked, or asked anew. The
// waiter, unless it is nil, is woken once when there is another view, or something to be told of the store. An error says
// why there is no answer any more.
func (r *Reader) View(w stream.Waiter) (*View, error) {
	q := r.question
	q.mu.Lock()
	err := q.err
	if err == nil && w != nil {
		q.waiting[r] = w
	}
	q.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case <-r.fresh:
	default:
		return nil, nil
	}
	q.payment.Load().charge.Use()
	return q.view.Load(), nil
}

// Refresh asks anew: the next view is one of everything that the store knows now.
func (r *Reader) Refresh() { r.fresh = r.question.refresh() }

// Touch brings the view up to what the store knows, which is more than the answer's last change. Nobody waits for that.
func (r *Reader) Touch() { r.question.bell.Wake() }

// Close ends the reading: the waiter is woken no more.
func (r *Reader) Close() {
	q := r.question
	q.mu.Lock()
	delete(q.waiting, r)
	q.mu.Unlock()
	r.board.leave(r.key, q, r.user)
}
