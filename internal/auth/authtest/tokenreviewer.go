package authtest

import (
	"context"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TokenReviewer answers as it is told, after a while, and counts.
type TokenReviewer struct {
	mu     sync.Mutex
	Asked  []authenticationv1.TokenReviewSpec
	atOnce int
	Most   int           // the most that were under way at once
	Takes  time.Duration // how long an answer takes
	Status authenticationv1.TokenReviewStatus
	Err    error
}

func (f *TokenReviewer) Create(ctx context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	f.mu.Lock()
	f.Asked = append(f.Asked, review.Spec)
	f.atOnce++
	f.Most = max(f.Most, f.atOnce)
	takes := f.Takes
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.atOnce--
	}()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return &authenticationv1.TokenReview{Status: f.Status}, f.Err
}

// Count returns how often it was asked.
func (f *TokenReviewer) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.Asked)
}

// Set changes what it answers.
func (f *TokenReviewer) Set(change func(*TokenReviewer)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}
