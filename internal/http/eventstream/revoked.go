package eventstream

import (
	"errors"

	"github.com/kubecast/kubecast/internal/auth"
)

// endRevoked ends the streams of callers who were revoked.
func (h *Hub) endRevoked() {
	for _, ss := range h.open.all() {
		ss.checkRevoked()
	}
}

// checkRevoked makes the session end if its caller was revoked. It may be called by any goroutine, at any time.
func (ss *session) checkRevoked() {
	if revocations := ss.hub.opts.Revocations; revocations != nil && errors.Is(revocations.Check(ss.id), auth.ErrRevoked) {
		ss.revoked.Store(true)
		ss.Wake()
	}
}
