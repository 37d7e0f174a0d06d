package mirror

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/cluster"
)

// listWatch is a ListWatch that also repeats a list that was refused. A plain ListWatch leaves refusals to client-go,
// which in the end waits for a minute between two attempts. Once the gateway may read permissions again, that would
// be a minute more without them.
type listWatch struct {
	*cluster.ListWatch
	listed func()
}

const (
	firstWait = time.Second
	longWait  = 8 * time.Second
)

func (l *listWatch) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	for retry := backoff.New(firstWait, longWait); ; {
		list, err := l.ListWatch.ListWithContext(ctx, options)
		switch {
		case err == nil:
			l.listed()
			return list, nil
		case apierrors.IsResourceExpired(err), apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), !retry.Wait(ctx):
			return nil, err // client-go then asks for another version
		}
	}
}
