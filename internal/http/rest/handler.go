package rest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/pace"
	"github.com/kubecast/kubecast/internal/http/reply"
)

// Options configure a Handler; all are required but the limit.
type Options struct {
	Access          *access.Access
	Processors      *budget.Queue  // turns for long work
	Memory          *budget.Memory // memory for results that are kept
	RequestsPerUser int            // lists and gets of one user that are answered at once; some more wait; 0: no limit
	Rates           *pace.Rates    // by which refusals are held
	WriteTimeout    time.Duration  // a client that takes no byte for so long is disconnected
	SyncTimeout     time.Duration  // how long /auth/me may ask what may be watched
	Log             *slog.Logger
}

// Handler answers requests that are not for streams: objects, lists, documents, and the caller's clusters and kinds.
type Handler struct {
	opts     Options
	access   *access.Access
	pages    *pages
	requests *budget.Queue // of lists and gets
}

// New returns a Handler.
func New(opts Options) *Handler {
	return &Handler{opts: opts, access: opts.Access, pages: newPages(opts.Memory), requests: newRequests(opts.RequestsPerUser)}
}

// Kept returns how many snapshots are kept for lists whose pages are being read, and of how many stores.
func (h *Handler) Kept() (snapshots, stores int) {
	h.pages.mu.Lock()
	defer h.pages.mu.Unlock()
	for _, kept := range h.pages.kept {
		snapshots += len(kept)
	}
	return snapshots, len(h.pages.kept)
}

// Resource answers a get or a list, once it is its user's turn.
func (h *Handler) Resource(w http.ResponseWriter, r *http.Request, id auth.Identity, t access.Target, accepted reply.Form) error {
	release, err := h.takeRequest(r.Context(), id.Payer())
	if err != nil {
		return err
	}
	defer release()
	if t.Name != "" {
		return h.get(w, r, id, t, accepted)
	}
	return h.list(w, r, id, t, accepted)
}

const (
	waitingRequests = 16               // waiting requests of one user, per request that may be under way
	requestPatience = 10 * time.Second // how long a request waits for its turn
)

// newRequests returns the queue of lists and gets: perUser of one user are answered at a time, and some more wait.
func newRequests(perUser int) *budget.Queue {
	return budget.NewQueue(0, perUser, waitingRequests*perUser)
}

// takeRequest waits until a user's request may be answered. The caller calls release when it is answered.
func (h *Handler) takeRequest(ctx context.Context, user string) (release func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	release, err = h.requests.Take(waiting, user)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return nil, budget.ErrTooMuch
	case errors.Is(err, budget.ErrTooMuch):
		return nil, h.opts.Rates.Hold(ctx, user, reply.To(err))
	}
	return release, err
}
