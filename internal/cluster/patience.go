package cluster

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// How long it is waited before a request that failed is repeated: a half to all of firstWait, then of twice that, at last
// of longWait. client-go waits for up to a minute, and after several outages within two minutes it begins with that: so
// long would each change come late, though the API server is back.
const (
	firstWait = time.Second
	longWait  = 8 * time.Second
)

// repeat makes attempts until one succeeds, or fails with what is not to be repeated, or the context ends.
func repeat[T any](ctx context.Context, repeated func(error) bool, attempt func() (T, error)) (T, error) {
	for wait := firstWait; ; wait = min(2*wait, longWait) {
		result, err := attempt()
		if err == nil || !repeated(err) {
			return result, err
		}
		select {
		case <-ctx.Done():
			return result, err
		case <-time.After(wait/2 + rand.N(wait/2)):
		}
	}
}

// mayListLater reports whether a list may be had by asking for it again: not if it is to be of another version, which
// client-go chooses, nor if it was refused, as by an API server that has no such kind, which nobody should ask often.
func mayListLater(err error) bool {
	return !apierrors.IsResourceExpired(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) &&
		!apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err)
}

// mayWatchLater: after other failures than these client-go lists anew.
func mayWatchLater(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}
