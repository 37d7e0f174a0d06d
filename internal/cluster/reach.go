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

// reach is the transport to the API server, with a circuit breaker. It knows whether the API server answers, whatever
// the answer is. Its transports can be replaced while they are in use, by ones with other credentials.
//
// Not every request should find out by itself that a cluster is away: a network that swallows packets takes seconds
// to show. So while the cluster is away, requests that a client waits for fail at once, and one probe a second (see
// Run) finds out when the cluster is back. A broken connection alone does not mean that the cluster is away: Run
// first tries another one.
type reach struct {
	ways   atomic.Pointer[ways]
	failed chan struct{} // holds a token after a request without an answer

	mu      sync.Mutex
	reached time.Time // when the last answer came
	err     error     // why the newest request had no answer; nil if it had one
	away    bool      // no connection can be made, or the probe had no answer either
	probed  bool      // whether Run is running
}

func newReach(ways ways) *reach {
	r := &reach{failed: make(chan struct{}, 1)}
	r.ways.Store(&ways)
	return r
}

// replace uses other transports from now on. Requests under way stay on the old ones.
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

// listReach is a reach whose requests use the transport for whole lists.
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
	// A request that its caller cancelled says nothing about the API server.
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
		// Another request had an answer in the meantime, so this one was only slow.
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

// closed says why a request that a client waits for is not to be tried; nil if it is to be tried. While Run does not
// run it always is, since nothing else would find out that the cluster is back.
func (r *reach) closed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.probed && r.away {
		return r.err
	}
	return nil
}

// Away is nil while the cluster answers, or has not been asked yet. Otherwise it wraps ErrUnavailable and says why
// the cluster cannot be reached.
func (c *Cluster) Away() error {
	if err := c.reach.closed(); err != nil {
		return fmt.Errorf("%w: cluster %s: %w", ErrUnavailable, c.name, err)
	}
	return nil
}

// probeEvery is the interval at which a cluster that is away is probed.
const probeEvery = time.Second

// Run probes a cluster that does not answer: it finds out whether the cluster is away, and when it is back. While it
// runs, requests to a cluster that is away fail with ErrUnavailable at once. It ends with the context, and so do the
// shared requests that are under way then (see once).
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

// probe sends a request. Any answer will do, whatever it is.
func (c *Cluster) probe(ctx context.Context) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	body, err := c.client.Get().AbsPath("/livez").MaxRetries(0).Stream(ctx)
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(body, 1<<10)) // lets the connection be used again
		_ = body.Close()
	}
	c.reach.mu.Lock()
	defer c.reach.mu.Unlock()
	if c.reach.err != nil && !c.reach.reached.After(began) {
		c.reach.away = true
	}
}
