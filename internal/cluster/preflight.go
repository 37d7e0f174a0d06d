package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/tidwall/gjson"
	authorizationapi "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServerVersion asks the API server for its version, such as v1.36.3. It is empty if the gateway may not ask.
func (c *Cluster) ServerVersion(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body, err := c.client.Get().AbsPath("/version").MaxRetries(0).Do(ctx).Raw()
	switch {
	case apierrors.IsForbidden(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("%w: cluster %s: %w", ErrUnavailable, c.name, err)
	}
	return gjson.GetBytes(body, "gitVersion").Str, nil
}

// Ahead is by how much the API server's clock is ahead of this one at least, as far as its answers
// tell; negative: behind.
func (c *Cluster) Ahead() time.Duration { return c.breaker.clock.ahead() }

// May asks the API server whether the gateway itself may do something.
func (c *Cluster) May(ctx context.Context, what authorizationapi.ResourceAttributes) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ctx, noted := noteAttempts(ctx)
	review, err := c.selfReviews.Create(ctx, &authorizationapi.SelfSubjectAccessReview{Spec: authorizationapi.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}, metav1.CreateOptions{})
	if err = noted.explain(err); err != nil {
		return false, fmt.Errorf("ask what the gateway may do in cluster %s: %w", c.name, err)
	}
	return review.Status.Allowed, nil
}
