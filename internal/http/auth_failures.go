package http

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/http/trail"
)

const (
	// maxFailures is how many bad tokens, sessions and tickets an address may send in a minute and be told what they are.
	maxFailures    = 100
	failuresWindow = time.Minute
	// maxFailing bounds the addresses that are counted.
	maxFailing = 100_000
)

// failures counts what could not sign in, by address.
type failures struct {
	mu     sync.Mutex
	since  time.Time
	counts map[string]int
}

// add counts one more, and reports how long it takes until the address may fail again; 0: it may.
func (f *failures) add(address string) (wait time.Duration, first bool) {
	address = request.Network(address)
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Sub(f.since) >= failuresWindow {
		f.since, f.counts = now, map[string]int{}
	}
	if _, known := f.counts[address]; !known && len(f.counts) >= maxFailing {
		return 0, false
	}
	f.counts[address]++
	if f.counts[address] <= maxFailures {
		return 0, false
	}
	return max(f.since.Add(failuresWindow).Sub(now), time.Second), f.counts[address] == maxFailures+1
}

// from is a request's context for questions about who sends it, which are shared fairly between those who cause them.
func from(r *http.Request) context.Context {
	return auth.From(r.Context(), request.Network(request.Address(r)))
}

// caller is who sent a request, once it is time for another one of theirs. An address from which too much comes that is nobody's is told
// 429; whoever comes from there with a good token is let in, since what they send is looked at all the same. Event streams are told
// 401 nonetheless: that ends an EventSource for good, which is what is wanted, and so would 429.
func (s *Server) caller(r *http.Request) (auth.Identity, error) {
	id, err := s.identity(r)
	if id.Anonymous {
		id.From = request.Network(request.Address(r))
	}
	switch {
	case err == nil:
		trail.Of(r.Context()).Is(id, "")
		return id, s.pace(r.Context(), id)
	case errors.Is(err, auth.ErrNoCredentials):
		return id, s.hold(r.Context(), request.Network(request.Address(r)), reply.To(err))
	case errors.Is(err, auth.ErrBadToken):
		return id, s.refusedAt(r, err)
	}
	return id, err
}

// refusedAt counts a failure to sign in, and says what the caller is told of it.
func (s *Server) refusedAt(r *http.Request, err error) error {
	wait, first := s.failures.add(request.Address(r))
	if first {
		s.log.Warn("too many failures to sign in from an address", "address", request.Address(r), "within", failuresWindow)
	}
	refusal := reply.To(err)
	if wait > 0 && r.URL.Path != "/stream" && !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		refusal = &reply.Error{
			Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, RetryAfter: wait.Round(time.Second), Cause: err,
			Message: "too many requests from this address could not sign in; send good credentials, or wait",
		}
	}
	return s.hold(r.Context(), request.Network(request.Address(r)), refusal)
}
