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

// Live tells the client of a source that knows of no watch that its data is fresh, if it was told otherwise.
func (f *Freshness) Live(to Sink, prefix string) {
	f.Tell(to, prefix, cache.Upstream{Live: true, Since: time.Now()})
}

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
	emitFreshness(to, prefix, name, upstream.Since, reply.UpstreamReason(upstream))
}

func emitFreshness(to Sink, prefix, name string, since time.Time, reason string) {
	to.Emit(prefix, name, `{"since":`+strconv.Quote(since.UTC().Format(time.RFC3339Nano))+`,"reason":`+strconv.Quote(reason)+`}`)
}
