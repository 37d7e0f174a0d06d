package feed

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubecast/kubecast/internal/cluster"
)

// patient lists and watches for a feed, and repeats by itself what failed. client-go waits for a minute at last between two
// attempts, and that would be a minute more without permissions after each long outage of an API server.
type patient struct {
	*cluster.ListWatch
	listed func()
}

const (
	firstWait = time.Second
	longWait  = 8 * time.Second
)

// ListWithContext implements toolscache.ListerWatcherWithContext.
func (p *patient) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	for wait := firstWait; ; wait = min(2*wait, longWait) {
		list, err := p.ListWatch.ListWithContext(ctx, options)
		switch {
		case err == nil:
			p.listed()
			return list, nil
		case apierrors.IsResourceExpired(err), apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), !pause(ctx, wait):
			return nil, err // client-go asks for another version then
		}
	}
}

// WatchWithContext implements toolscache.ListerWatcherWithContext. After other failures than these client-go lists anew.
func (p *patient) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	for wait := firstWait; ; wait = min(2*wait, longWait) {
		w, err := p.ListWatch.WatchWithContext(ctx, options)
		if err == nil || !utilnet.IsConnectionRefused(err) && !apierrors.IsTooManyRequests(err) || !pause(ctx, wait) {
			return w, err
		}
	}
}

// pause waits for a half to all of a duration; it is false if the context ends before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d/2 + rand.N(d/2)):
		return true
	}
}
