package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	authenticationapi "k8s.io/api/authentication/v1"
	authorizationapi "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// Reviews asks the API server by SubjectAccessReview whether a user may do something. Its methods may be called
// concurrently.
//
// An API server that has just started answers before it has read the roles, and denies everything to everyone. So a
// denial counts only if the API server had said, within stillReady before it was asked, that it is ready. Otherwise
// it is asked whether it is ready, and then once more for its answer.
type Reviews struct {
	reviews authorizationv1.SubjectAccessReviewInterface
	client  rest.Interface
	breaker *breaker

	mu    sync.Mutex
	ready time.Time // when the API server last said that it is ready
}

// stillReady is how long an API server counts as ready after it said so. It is less than a new one needs to start.
const stillReady = time.Second

// Create sends the review. An error means neither yes nor no; it wraps ErrUnavailable if the cluster is known to be
// away.
func (r *Reviews) Create(ctx context.Context, review *authorizationapi.SubjectAccessReview, opts metav1.CreateOptions) (*authorizationapi.SubjectAccessReview, error) {
	if err := r.breaker.open(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	asked := time.Now()
	answer, err := r.ask(ctx, review, opts)
	if err != nil || answer.Status.Allowed || r.wasReady(asked) {
		return answer, err
	}
	if err := r.checkReady(ctx); err != nil {
		return nil, err
	}
	return r.ask(ctx, review, opts)
}

// ask sends one request. What is noted of it is not told of the next one.
func (r *Reviews) ask(ctx context.Context, review *authorizationapi.SubjectAccessReview, opts metav1.CreateOptions) (*authorizationapi.SubjectAccessReview, error) {
	ctx, noted := noteAttempts(ctx)
	answer, err := r.reviews.Create(ctx, review, opts)
	return answer, noted.explain(err)
}

func (r *Reviews) wasReady(asked time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !asked.Before(r.ready) && asked.Sub(r.ready) < stillReady
}

func (r *Reviews) checkReady(ctx context.Context) error {
	asked := time.Now()
	noting, noted := noteAttempts(ctx)
	err := noted.explain(r.client.Get().AbsPath("/readyz").MaxRetries(0).Do(noting).Error())
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err):
		// The gateway may not ask whether it is ready, so its answer has to be believed.
	case err != nil:
		return fmt.Errorf("access was denied by an API server that is not ready: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready = asked
	return nil
}

// TokenReviews asks the API server whom a token belongs to. Its methods may be called concurrently.
type TokenReviews struct {
	reviews authenticationv1.TokenReviewInterface
	breaker *breaker
}

// Create sends the review. A cluster that is away is not asked: the error then wraps ErrUnavailable.
func (r *TokenReviews) Create(ctx context.Context, review *authenticationapi.TokenReview, opts metav1.CreateOptions) (*authenticationapi.TokenReview, error) {
	if err := r.breaker.open(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	ctx, noted := noteAttempts(ctx)
	answer, err := r.reviews.Create(ctx, review, opts)
	return answer, noted.explain(err)
}
