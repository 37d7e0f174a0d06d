package app

import (
	"github.com/kubecast/kubecast/internal/config"
	kubecasthttp "github.com/kubecast/kubecast/internal/http"
)

const (
	// spareDescriptors is what the gateway needs for itself: connections to API servers and issuers, files.
	spareDescriptors = 256
	// connectionsPerStream is how many more connections than streams a client may have: a browser opens six to a host.
	connectionsPerStream = 8
)

// connectionLimits leaves the gateway what it needs, however many clients come. That of one address follows the limit of its
// streams, and is off with it.
func connectionLimits(cfg config.Stream) kubecasthttp.ConnectionLimits {
	limits := kubecasthttp.ConnectionLimits{PerPeer: connectionsPerStream * cfg.PerAddress}
	if all := descriptors(); all > 0 {
		limits.Total = max(all-spareDescriptors, all/2)
	}
	return limits
}
