package signin

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/oidc"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
)

const (
	// maxFailures is how many bad tokens, sessions and tickets an address may send in a minute and be told that they
	// are bad.
	maxFailures    = 100
	failuresWindow = time.Minute
	// maxFailing bounds how many addresses are counted. Further ones may fail as often as they like.
	maxFailing = 100_000
)

// failures counts bad credentials, by the network of the address that sent them.
type failures struct {
	mu     sync.Mutex
	since  time.Time
	counts map[string]int
}

// add counts a failure of an address. It returns how long the address has to wait until it may fail again; 0 if it
// still may. First reports whether this failure is the first one too many.
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

// refused returns what a client is told that could not sign in, after holding it back if necessary (see
// ratelimit.Rates.Hold). Bad credentials are counted. An error that is not the client's fault is returned as it is.
func (h *Handler) refused(r *http.Request, err error) error {
	switch {
	case errors.Is(err, auth.ErrNoCredentials):
		return h.opts.Rates.Hold(r.Context(), network(r), reply.To(err))
	case errors.Is(err, auth.ErrBadToken), errors.Is(err, oidc.ErrRefused):
		return h.refusedAt(r, err)
	}
	return err
}

// refusedAt counts a failure to sign in, and returns what the client is told.
func (h *Handler) refusedAt(r *http.Request, err error) error {
	wait, first := h.failures.add(request.Address(r))
	if first {
		h.log.Warn("too many failures to sign in from an address", "address", request.Address(r), "within", failuresWindow)
	}
	refusal := reply.To(err)
	if wait > 0 && r.URL.Path != "/stream" && !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		refusal = &reply.Error{
			Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, RetryAfter: wait.Round(time.Second), Cause: err,
			Message: "too many requests from this address could not sign in; send good credentials, or wait",
		}
	}
	return h.opts.Rates.Hold(r.Context(), network(r), refusal)
}
