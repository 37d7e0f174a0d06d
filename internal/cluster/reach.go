package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// reach is the way to the API server. It knows whether the API server answers, whatever it answers, and can be replaced
// while it is used: by one with other credentials.
//
// Every request must not find out for itself that a cluster is away: a black hole takes seconds to show. So while it is,
// requests that somebody waits for fail at once, and one request a second (see Run) finds out when it is back. A
// connection that breaks is not enough for that: then Run tries another one first.
type reach struct {
	ways   atomic.Pointer[ways]
	failed chan struct{} // holds a token when a request has had no answer

	mu      sync.Mutex
	reached time.Time // when an answer came last
	err     error     // why the newest request had none; nil: it had one
	away    bool      // there can be no connection, or the probe had no answer either
	probed  bool      // Run runs
}

func newReach(ways ways) *reach {
	r := &reach{failed: make(chan struct{}, 1)}
	r.ways.Store(&ways)
	return r
}

// replace takes other ways from now on; what is under way stays on the old ones.
func (r *reach) replace(ways ways) {
	old := r.ways.Swap(&ways)
	utilnet.CloseIdleConnectionsFor(old.usual)
	utilnet.CloseIdleConnectionsFor(old.lists)
}

// RoundTrip implements http.RoundTripper.
func (r *reach) RoundTrip(request *http.Request) (*http.Response, error) {
	return r.roundTrip(r.ways.Load().usual, request)
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (r *reach) WrappedRoundTripper() http.RoundTripper { return r.ways.Load().usual }

// listReach is a reach for whole lists.
type listReach struct{ *reach }

// RoundTrip implements http.RoundTripper.
func (r listReach) RoundTrip(request *http.Request) (*http.Response, error) {
	return r.roundTrip(r.ways.Load().lists, request)
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (r listReach) WrappedRoundTripper() http.RoundTripper { return r.ways.Load().lists }

func (r *reach) roundTrip(way http.RoundTripper, request *http.Request) (*http.Response, error) {
	began := time.Now()
	response, err := way.RoundTrip(request)
	// Who gave up by himself has learned nothing.
	if !errors.Is(err, context.Canceled) && !errors.Is(request.Context().Err(), context.Canceled) {
		r.learn(began, err)
	}
	return response, err
}

func (r *reach) learn(began time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.reached, r.err, r.away = time.Now(), nil, false
	case r.reached.After(began):
		// Another one had an answer meanwhile: this one was only slow.
	default:
		r.err = err
		var dial *net.OpError
		r.away = r.away || errors.As(err, &dial) && dial.Op == "dial"
		select {
		case r.failed <- struct{}{}:
		default:
		}
	}
}

// lost is why the newest request had no answer, or nil.
func (r *reach) lost() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// closed says why a request that somebody waits for need not be tried. If Run does not run, it has to be tried: nobody
// else would find out when the cluster is back.
func (r *reach) closed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.probed && r.away {
		return r.err
	}
	return nil
}

// Away is nil while the cluster answers, or has not been asked yet. Otherwise it wraps ErrUnavailable and says why not.
func (c *Cluster) Away() error {
	if err := c.reach.closed(); err != nil {
		return fmt.Errorf("%w: cluster %s: %w", ErrUnavailable, c.name, err)
	}
	return nil
}

// probeEvery is how often a cluster that is away is tried.
const probeEvery = time.Second

// Run finds out whether a cluster is away that does not answer, and when it is back, until the context ends. While it
// runs, questions to a cluster that is away are answered with ErrUnavailable at once; when it ends, so do those under way.
func (c *Cluster) Run(ctx context.Context) error {
	running := func(yes bool) {
		c.reach.mu.Lock()
		defer c.reach.mu.Unlock()
		c.reach.probed = yes
	}
	c.mu.Lock()
	c.life = ctx
	c.mu.Unlock()
	running(true)
	defer running(false)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.reach.failed:
		}
		for c.reach.lost() != nil {
			c.probe(ctx)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(probeEvery):
			}
		}
	}
}

// probe sends a request whose answer does not matter, if there is one.
func (c *Cluster) probe(ctx context.Context) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	body, err := c.client.Get().AbsPath("/livez").MaxRetries(0).Stream(ctx)
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(body, 1<<10)) // so that the connection can be used again
		_ = body.Close()
	}
	c.reach.mu.Lock()
	defer c.reach.mu.Unlock()
	if c.reach.err != nil && !c.reach.reached.After(began) {
		c.reach.away = true
	}
}
