package http

import (
	"errors"

	"github.com/kubecast/kubecast/internal/cache"
)

// readiness says why a cluster cannot be served yet; nil if it can.
func (s *Server) readiness(kinds *cache.Kinds) error {
	var other error
	if s.opts.Ready != nil {
		other = s.opts.Ready(kinds.Cluster().Name())
	}
	return errors.Join(other, kinds.Ready())
}
