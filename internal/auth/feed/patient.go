package feed

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubecast/kubecast/internal/cluster"
)

// patient lists for a feed, and asks again by itself when it is refused. Other failures the ListWatch repeats; refusals it
// leaves to client-go, which waits for a minute at last between two attempts, and that would be a minute more without
// permissions once the gateway may read them.
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

// pause waits for a half to all of a duration; it is false if the context ends before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d/2 + rand.N(d/2)):
		return true
	}
}
