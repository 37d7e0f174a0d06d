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

// refused holds what is told to those who could not sign in, and counts what they sent if it was bad. Other errors are not theirs.
func (h *Handler) refused(r *http.Request, err error) error {
	switch {
	case errors.Is(err, auth.ErrNoCredentials):
		return h.opts.Rates.Hold(r.Context(), network(r), reply.To(err))
	case errors.Is(err, auth.ErrBadToken), errors.Is(err, oidc.ErrRefused):
		return h.refusedAt(r, err)
	}
	return err
}

// refusedAt counts a failure to sign in, and says what the caller is told of it.
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
