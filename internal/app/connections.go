package app

import (
	"github.com/kubecast/kubecast/internal/config"
	kubecasthttp "github.com/kubecast/kubecast/internal/http"
)

const (
	// spareDescriptors is how many descriptors the gateway needs for itself: connections to API servers and issuers,
	// files.
	spareDescriptors = 256
	// connectionsPerStream is how many connections a client may have for each stream that it may have: a browser
	// opens six to a host.
	connectionsPerStream = 8
)

// limits are those of clients.
func limits(cfg config.Config) kubecasthttp.Limits {
	return kubecasthttp.Limits{
		PerUser: cfg.Stream.PerUser, PerAddress: cfg.Stream.PerAddress, Total: cfg.Stream.Total,
		WatchesPerUser: cfg.Stream.WatchesPerUser, RequestsPerUser: cfg.Requests.PerUser, RequestsPerSecond: cfg.Requests.PerSecond,
		Connections: connectionLimits(cfg.Stream),
		Logs:        kubecasthttp.LogLimits{Total: cfg.Logs.Upstreams, PerUser: cfg.Logs.PerUser},
		Gateways:    cfg.Gateways,
	}
}

// connectionLimits leaves the gateway the descriptors that it needs, however many clients come. The limit of one
// address follows that of its streams: if that is off, so is this.
func connectionLimits(cfg config.Stream) kubecasthttp.ConnectionLimits {
	limits := kubecasthttp.ConnectionLimits{PerPeer: connectionsPerStream * cfg.PerAddress}
	if all := descriptors(); all > 0 {
		limits.Total = max(all-spareDescriptors, all/2)
	}
	return limits
}
