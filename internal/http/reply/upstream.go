package reply

import "github.com/kubecast/kubecast/internal/cache"

// UpstreamReason says publicly why a store's watch is lost: the class of the error, and nothing of the inside.
func UpstreamReason(u cache.Upstream) string {
	switch {
	case u.Live:
		return "live"
	case u.Refused():
		return "refused"
	case u.Err == nil:
		return "starting"
	}
	return "unreachable"
}
