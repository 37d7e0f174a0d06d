package eventstream

import (
	"strconv"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/reply"
)

// Freshness is what a client was told of whether its data is fresh. The zero value is that of a client that was told
// nothing, and takes it for fresh.
type Freshness struct{ stale bool }

// IsStale reports whether the client was told that its data is not fresh.
func (f *Freshness) IsStale() bool { return f.stale }

// Tell tells the client whether its data is still fresh, if that has changed.
func (f *Freshness) Tell(to Sink, prefix string, upstream cache.Upstream) {
	if upstream.Live != f.stale {
		return
	}
	f.stale = !upstream.Live
	name := "live"
	if f.stale {
		name = "stale"
	}
	to.Emit(prefix, name, `{"since":`+strconv.Quote(upstream.Since.UTC().Format(time.RFC3339Nano))+
		`,"reason":`+strconv.Quote(reply.UpstreamReason(upstream))+`}`)
}
