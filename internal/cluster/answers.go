package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const answersWithin = 5 * time.Second

// Answers asks the cluster for a small object. It returns nil if the API server answers at all, be it only that the
// gateway may not see the object. Answers that a proxy gives for an API server that is away do not count, nor do
// those of an API server whose etcd is away: the error then wraps ErrUnavailable.
func (c *Cluster) Answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	err := c.client.Get().AbsPath("/api/v1/namespaces/kube-system").MaxRetries(0).Do(ctx).Error()
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if code := status.Status().Code; code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("%w: cluster %s: %w", ErrUnavailable, c.name, err)
	}
	return nil
}
