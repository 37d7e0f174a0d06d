package http

import (
	"context"

	"github.com/kubecast/kubecast/internal/auth"
)

// confirm asks whether what the caller signed in with still counts: it is told when somebody is revoked, but not when a
// ServiceAccount is deleted.
func (s *Server) confirm(ctx context.Context, id auth.Identity) error {
	now, err := s.opts.Authenticator.Confirm(ctx, id)
	if err == nil && (now.Username != id.Username || now.Cluster != id.Cluster) {
		return auth.ErrBadToken
	}
	return err
}
