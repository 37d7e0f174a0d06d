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

	"github.com/kubecast/kubecast/internal/backoff"
)

// breaker is the transport to the API server, and a circuit breaker. It knows whether the API server answers, whatever
// the answer is. Its transports can be replaced while they are in use, by ones with other credentials.
//
// Not every request should find out by itself that a cluster is away: a network that swallows packets takes seconds
// to show. So while the cluster is away, the breaker is open: requests that a client waits for fail at once, and one
// probe a second (see Run) finds out when the cluster is back. A broken connection alone does not mean that the cluster
// is away: Run first tries another one.
type breaker struct {
	transports atomic.Pointer[transports]
	failed     chan struct{} // holds a token after a request without an answer
	clock      clock
	requests   *requests

	mu      sync.Mutex
	reached time.Time // when the last answer came
	err     error     // why the newest request had no answer; nil if it had one
	away    bool      // no connection can be made, or the probe had no answer either
	probed  bool      // whether Run is running
}

func newBreaker(transports transports) *breaker {
	b := &breaker{failed: make(chan struct{}, 1), requests: newRequests()}
	b.transports.Store(&transports)
	return b
}

// replace uses other transports from now on. Requests under way stay on the old ones.
func (b *breaker) replace(transports transports) {
	old := b.transports.Swap(&transports)
	utilnet.CloseIdleConnectionsFor(old.usual)
	utilnet.CloseIdleConnectionsFor(old.lists)
}

func (b *breaker) RoundTrip(request *http.Request) (*http.Response, error) {
	return b.roundTrip(b.transports.Load().usual, request)
}

func (b *breaker) WrappedRoundTripper() http.RoundTripper { return b.transports.Load().usual }

// listBreaker is a breaker whose requests use the transport for whole lists.
type listBreaker struct{ *breaker }

func (b listBreaker) RoundTrip(request *http.Request) (*http.Response, error) {
	return b.roundTrip(b.transports.Load().lists, request)
}

func (b listBreaker) WrappedRoundTripper() http.RoundTripper { return b.transports.Load().lists }

func (b *breaker) roundTrip(transport http.RoundTripper, request *http.Request) (*http.Response, error) {
	began, noted := time.Now(), attemptsOf(request.Context())
	noted.begin()
	response, err := transport.RoundTrip(request)
	noted.end(request.Context(), response, err)
	// A request that its caller cancelled says nothing about the API server.
	if !errors.Is(err, context.Canceled) && !errors.Is(request.Context().Err(), context.Canceled) {
		b.learn(began, err)
		b.requests.count(request, response, err)
	}
	if err == nil {
		b.clock.learn(began, time.Now(), response.Header)
	}
	return response, err
}

func (b *breaker) learn(began time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		b.reached, b.err, b.away = time.Now(), nil, false
	case b.reached.After(began):
		// Another request had an answer in the meantime, so this one was only slow.
	default:
		b.err = err
		var dial *net.OpError
		b.away = b.away || errors.As(err, &dial) && dial.Op == "dial"
		select {
		case b.failed <- struct{}{}:
		default:
		}
	}
}

// lost is why the newest request had no answer, or nil.
func (b *breaker) lost() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// open says why a request that a client waits for is not to be tried; nil while the breaker is closed. It is always
// closed while Run does not run, since nothing else would find out that the cluster is back.
func (b *breaker) open() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.probed && b.away {
		return b.err
	}
	return nil
}

// Away is nil while the cluster answers, or has not been asked yet. Otherwise it wraps ErrUnavailable and says why
// the cluster cannot be reached.
func (c *Cluster) Away() error {
	if err := c.breaker.open(); err != nil {
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
		c.breaker.mu.Lock()
		defer c.breaker.mu.Unlock()
		c.breaker.probed = yes
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
		case <-c.breaker.failed:
		}
		for c.breaker.lost() != nil {
			c.probe(ctx)
			if !backoff.Pause(ctx, probeEvery) {
				return nil
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
	c.breaker.mu.Lock()
	defer c.breaker.mu.Unlock()
	if c.breaker.err != nil && !c.breaker.reached.After(began) {
		c.breaker.away = true
	}
}
