// Package eventstream owns the event streams. It knows which are open, serves them, and bounds how many there may be.
// What each of them tells comes from its sources, of which it knows nothing else.
//
// What it promises: a client is told every event after its position that its caller may see, in order, or is told that
// it has missed something. No client waits for another. An idle stream has no goroutine, where its connection needs
// none. A stream ends soon after the caller's token, session or permissions have ended.
//
// What it refuses: to keep a queue for a client. One that falls behind the ring is reset, and one
// that takes nothing is cut.
package eventstream

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/http/coding"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/http/scheduler"
)

// Options configure a Hub; all are required unless they say otherwise.
type Options struct {
	Permissions *permission.Permissions // end streams before their time
	Alarm       *scheduler.Alarm        // the one of Permissions
	Processors  *budget.Queue           // turns for long work
	Memory      *budget.Memory          // memory for what is made of objects
	Parsers     Parsers                 // of what can be streamed
	Codings     *coding.Codings         // in which event streams are sent; nil: none
	Limits      Limits
	Times       Times
	SyncTimeout time.Duration // how long a stream waits for its kinds' first lists
	Drain       time.Duration // within which streams end once Hub.Drain was called
	Registerer  prometheus.Registerer
	Log         *slog.Logger
}

// Times are what all event streams have in common.
type Times struct {
	Heartbeat    time.Duration // silence after which a comment is sent, unless the client asks for another
	MaxAge       time.Duration // a stream ends after 80 to 100 % of it
	WriteTimeout time.Duration // a client that takes no byte for so long is cut
	Retry        time.Duration // clients are told one to two times this
}

// Hub owns the event streams, and Kubernetes' watches among them. It knows which are open, serves them, and bounds how
// many there may be.
type Hub struct {
	opts     Options
	quota    *quota
	metrics  *metrics
	open     *openStreams
	moved    moved
	draining context.Context // done: no new streams, and the running ones end
	drain    func()

	// What serves the streams; see serve.go.
	serving     context.Context // done: none is served any more
	stop        context.CancelFunc
	unlisten    func() // to revocations
	workers     *scheduler.Workers
	alarm       *scheduler.Alarm
	groupIndex  groupIndex
	goroutines  sync.WaitGroup
	mu          sync.Mutex
	ended       bool                              // guarded by mu: Run waits for the goroutines, and there may be no further one of a request's
	disconnects func() (*conn.Disconnects, error) // begun with the first connection that needs them
}

// New returns a Hub without streams.
func New(opts Options) *Hub {
	h := &Hub{
		opts:    opts,
		quota:   newQuota(opts.Limits),
		open:    newOpenStreams(),
		workers: scheduler.NewWorkers(),
		alarm:   opts.Alarm,
	}
	h.metrics = newMetrics(opts.Registerer, h.groupIndex.together.Load)
	opts.Processors.Share(h.workers.Shared)
	var drain context.CancelFunc
	h.draining, drain = context.WithCancel(context.Background())
	h.drain = func() {
		drain()
		h.open.wake()
	}
	h.unlisten = opts.Permissions.Revocations(h.endRevoked)
	h.serving, h.stop = context.WithCancel(context.Background())
	h.disconnects = sync.OnceValues(h.watchDisconnects)
	return h
}

// Run serves the streams until the context ends, and cuts those that are left then.
func (h *Hub) Run(ctx context.Context) {
	var working sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		working.Go(h.workers.Run)
	}
	<-ctx.Done()
	h.unlisten()
	h.open.cut()
	h.stop()
	h.open.wait(context.Background())
	h.workers.Close()
	working.Wait()
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.goroutines.Wait()
}

// spawn runs a function for a stream that may not be open yet. It must end soon after serving.
func (h *Hub) spawn(f func()) {
	h.mu.Lock()
	ended := h.ended
	if !ended {
		h.goroutines.Go(f)
	}
	h.mu.Unlock()
	if ended {
		f()
	}
}

// Drain lets no new streams in, and ends the running ones at random moments within Options.Drain. It returns when
// all have ended, or the context has.
func (h *Hub) Drain(ctx context.Context) {
	h.drain()
	h.open.wait(ctx)
}

// Draining reports whether Drain was called.
func (h *Hub) Draining() bool { return h.draining.Err() != nil }

// Open is how many streams there are, watches in Kubernetes' form included.
func (h *Hub) Open() int {
	h.open.mu.Lock()
	defer h.open.mu.Unlock()
	return len(h.open.sessions)
}

// Connections is how many connections streams have for themselves. Those over HTTP/2 share theirs,
// which net/http still has.
func (h *Hub) Connections() int {
	h.open.mu.Lock()
	defer h.open.mu.Unlock()
	return h.open.taken
}

// Stats is what a Hub has at a moment.
type Stats struct {
	Open        int // streams, those that are refused or ending included
	Idle        int // streams that nobody serves at the moment
	Together    int // streams that are told together with others: see group
	Watches     int // watches that count against the limits
	Permissions int // permissions that are asked for again; streams may share one
}

// SetLimits changes Options.Limits.
func (h *Hub) SetLimits(limits Limits) { h.quota.set(limits) }

// Stats returns what there is now. It looks at each stream.
func (h *Hub) Stats() Stats {
	all := h.open.all()
	stats := Stats{Open: len(all), Watches: h.quota.watching()}
	for _, ss := range all {
		if ss.IsIdle() {
			stats.Idle++
		}
	}
	stats.Together = int(h.groupIndex.together.Load())
	stats.Permissions = h.opts.Permissions.Questions()
	return stats
}
