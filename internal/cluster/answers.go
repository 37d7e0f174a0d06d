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

// Answers asks the cluster for a small object, and is nil if it says something to that: the object, or that the gateway may not
// see it. A proxy before an API server that is away says something, too, and an API server whose etcd is away; these are no answers.
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
