package http

import (
	"errors"

	"github.com/kubecast/kubecast/internal/cache"
)

// readiness is why a cluster cannot be served yet, or nil.
func (s *Server) readiness(kinds *cache.Kinds) error {
	var other error
	if s.opts.Ready != nil {
		other = s.opts.Ready(kinds.Cluster().Name())
	}
	return errors.Join(other, kinds.Ready())
}
