package http

import (
	"errors"

	"github.com/kubecast/kubecast/internal/auth"
)

// endRevoked ends the streams of those who were revoked.
func (s *Server) endRevoked() {
	for _, ss := range s.open.all() {
		ss.checkRevoked()
	}
}

// checkRevoked has the session end if its caller was revoked. It may be called by anybody, at any time.
func (ss *session) checkRevoked() {
	if revocations := ss.server.opts.Revocations; revocations != nil && errors.Is(revocations.Check(ss.id), auth.ErrRevoked) {
		ss.revoked.Store(true)
		ss.Wake()
	}
}
