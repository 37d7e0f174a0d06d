package rest

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/coding"
	"github.com/kubecast/kubecast/internal/http/ratelimit"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/livequery"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Options configure a Handler; all are required.
type Options struct {
	Access       *access.Access
	Processors   *budget.Queue       // turns for long work
	Memory       *budget.Memory      // memory for results that are kept
	Queries      *livequery.Registry // orders that are kept for live pages
	Turns        *ratelimit.Turns    // of lists and gets
	WriteTimeout time.Duration       // a client that takes no byte for so long is disconnected
	SyncTimeout  time.Duration       // how long /auth/me may ask what may be watched
	Codings      *coding.Codings     // nil: none
	NoQueues     bool                // nobody is told of queues, other gateways neither
	Log          *slog.Logger
}

// Handler answers requests that are not for streams: objects, lists, documents, and the caller's clusters and kinds.
type Handler struct {
	opts   Options
	access *access.Access
	pages  *pages
}

// New returns a Handler.
func New(opts Options) *Handler {
	return &Handler{opts: opts, access: opts.Access, pages: newPages(opts.Memory, opts.Queries)}
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
func (h *Handler) Resource(w http.ResponseWriter, r *http.Request, id auth.Identity, t visibility.Target, accepted reply.Form) error {
	release, err := h.opts.Turns.Take(r.Context(), id.QuotaOwner())
	if err != nil {
		return err
	}
	defer release()
	switch {
	case cluster.IsMeasured(t.Group, t.Resource):
		return h.measured(w, r, id, t, accepted)
	case t.Name != "":
		return h.get(w, r, id, t, accepted)
	}
	return h.list(w, r, id, t, accepted)
}
