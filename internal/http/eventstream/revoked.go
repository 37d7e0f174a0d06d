package eventstream

import (
	"errors"

	"github.com/kubecast/kubecast/internal/auth"
)

// endRevoked ends the streams of those who were revoked.
func (h *Hub) endRevoked() {
	for _, ss := range h.open.all() {
		ss.checkRevoked()
	}
}

// checkRevoked has the session end if its caller was revoked. It may be called by anybody, at any time.
func (ss *session) checkRevoked() {
	if revocations := ss.hub.opts.Revocations; revocations != nil && errors.Is(revocations.Check(ss.id), auth.ErrRevoked) {
		ss.revoked.Store(true)
		ss.Wake()
	}
}
