package eventstream

import (
	"strconv"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/stream"
)

// Freshness is what a client was told of whether its data is fresh. The zero value is that of a client that was told
// nothing, and takes it for fresh.
type Freshness struct{ stale bool }

// IsStale reports whether the client was told that its data is not fresh.
func (f *Freshness) IsStale() bool { return f.stale }

// Live tells the client of a source that knows of no watch that its data is fresh, if it was told otherwise.
func (f *Freshness) Live(to Sink, prefix string, claim func() stream.Claim) {
	f.Tell(to, prefix, cache.Upstream{Live: true, Since: time.Now()}, claim)
}

// Tell tells the client whether its data is still fresh, if that has changed. The claim is the client's position, and is
// asked for only then.
func (f *Freshness) Tell(to Sink, prefix string, upstream cache.Upstream, claim func() stream.Claim) {
	if upstream.Live != f.stale {
		return
	}
	f.stale = !upstream.Live
	name := "live"
	if f.stale {
		name = "stale"
	}
	to.Emit(freshnessEvent(prefix, name, upstream.Since, reply.UpstreamReason(upstream)), claim())
}

func freshnessEvent(prefix, name string, since time.Time, reason string) Event {
	data := `{"since":` + strconv.Quote(since.UTC().Format(time.RFC3339Nano)) + `,"reason":` + strconv.Quote(reason) + `}`
	return Event{Prefix: prefix, Name: name, Data: data}
}
