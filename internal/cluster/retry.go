package cluster

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/kubecast/kubecast/internal/backoff"
)

// The wait before a failed request is repeated: at first firstWait, then twice that, up to longWait; of each a random
// part between a half and the whole. client-go by itself waits for up to a minute, and after several outages within
// two minutes it begins with that. Changes would come that late although the API server is back.
const (
	firstWait = time.Second
	longWait  = 8 * time.Second
)

// repeat makes attempts until one succeeds, one fails with an error that is not to be repeated, or the context ends.
// It returns the outcome of the last attempt.
func repeat[T any](ctx context.Context, repeated func(error) bool, attempt func() (T, error)) (T, error) {
	for retry := backoff.New(firstWait, longWait); ; {
		result, err := attempt()
		if err == nil || !repeated(err) {
			return result, err
		}
		if !retry.Wait(ctx) {
			return result, err
		}
	}
}

// mayListLater reports whether a list may succeed when it is asked for again. It may not if its version is at fault,
// since client-go then chooses another one. Nor if it was refused, or the API server does not have the kind: such a
// request should not be repeated often.
func mayListLater(err error) bool {
	return !apierrors.IsResourceExpired(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) &&
		!apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err)
}

// mayWatchLater reports whether a watch may succeed when it is asked for again. After any other failure, client-go
// decides: it may list anew. Of another gateway, which shows that its history is still the same, nothing is to be
// listed anew as long as it is away, or not ready yet. What it refuses otherwise it may refuse for ever.
func (lw *ListWatch) mayWatchLater(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) || lw.resumeGuard.knowsHistory() && isAway(err) && mayListLater(err)
}

// isAway reports whether an error is none of an answer, or one of a server that is not there: 502 to 504.
func isAway(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) || answer.Status().Code >= http.StatusBadGateway
}

// pause is the wait before the next watch of a server whose watch has ended at once, or with "try again later", though its history
// goes on. client-go would wait twice as long each time, for up to a minute: a gateway that lists anew ends the watches of its edges, and
// so does each of several that an edge asks at once (package shards).
type pause struct {
	mu    sync.Mutex
	due   bool
	waits *backoff.Backoff // nil: the next one is the first
}

// begin has the next watch wait.
func (p *pause) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due = true
}

// lasted takes how long a watch has lasted. One that did for longer than any wait has got somewhere.
func (p *pause) lasted(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d > longWait {
		p.waits = nil
	}
}

// wait waits if that is due, and returns at once if the context ends.
func (p *pause) wait(ctx context.Context) {
	p.mu.Lock()
	due, wait := p.due, time.Duration(0)
	if p.due = false; due {
		if p.waits == nil {
			p.waits = backoff.New(firstWait, longWait)
		}
		wait = p.waits.Next()
	}
	p.mu.Unlock()
	backoff.Pause(ctx, wait)
}
