package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/kubecast/kubecast/internal/budget"
)

const (
	serviceAccountPrefix = "system:serviceaccount:"

	// reviewedFor is how long an answer of the API server about a token counts, whether good or bad, as at an API
	// server that asks a webhook. Within this time, a token is refused whose ServiceAccount or pod is gone.
	reviewedFor = 10 * time.Second
	// reviewTimeout bounds one answer, including the wait for a turn.
	reviewTimeout = 5 * time.Second
	// reviewTurns bounds the reviews under way, since strangers can make tokens that look like a ServiceAccount's.
	// One network of strangers gets at most half of the turns, and a bounded number may wait. ServiceAccounts whose
	// tokens were good recently take turns by their namespace.
	reviewTurns     = 8
	reviewsWaiting  = 256
	reviewsRemember = 4096
	goodLately      = time.Hour
)

// TokenReviewer asks one cluster. client-go's AuthenticationV1().TokenReviews() implements it.
type TokenReviewer interface {
	Create(ctx context.Context, review *authenticationv1.TokenReview, opts metav1.CreateOptions) (*authenticationv1.TokenReview, error)
}

// ServiceAccounts accepts the tokens that one cluster gave its ServiceAccounts for one of the audiences. It asks the
// cluster's API server (TokenReview), but only about tokens that claim to be such, and accepts no other users.
type ServiceAccounts struct {
	audiences []string
	turns     *budget.Queue
	home      atomic.Pointer[home]
}

// home is the cluster of the ServiceAccounts, with its answers, which count for no other cluster.
type home struct {
	cluster  string
	reviewer TokenReviewer
	answers  *cache.LRUExpireCache // answers by the token's hash
	good     *cache.LRUExpireCache // by the token's hash: who pays for a token that was good within goodLately
	flight   singleflight.Group
}

// reviewed is an answer that is remembered.
type reviewed struct {
	id  Identity
	err error
}

// NewServiceAccounts returns a ServiceAccounts that accepts no token before SetHome.
func NewServiceAccounts(audiences []string) *ServiceAccounts {
	return &ServiceAccounts{audiences: audiences, turns: budget.NewQueue(reviewTurns, reviewTurns/2, reviewsWaiting)}
}

// SetHome accepts the ServiceAccounts of a cluster, given by the gateway's name for it, and from now on no others.
func (s *ServiceAccounts) SetHome(cluster string, reviewer TokenReviewer) {
	s.home.Store(&home{
		cluster: cluster, reviewer: reviewer, answers: cache.NewLRUExpireCache(reviewsRemember), good: cache.NewLRUExpireCache(reviewsRemember),
	})
}

// review returns the identity of a token. An error wraps ErrUnavailable, is ctx's, or says why the token is not good.
func (s *ServiceAccounts) review(ctx context.Context, token string) (Identity, error) {
	claims, expires, err := s.look(token, time.Now())
	if err != nil {
		return Identity{}, err
	}
	home := s.home.Load()
	if home == nil {
		return Identity{}, fmt.Errorf("%w: no cluster's ServiceAccounts are let in yet", ErrUnavailable)
	}
	hash := sha256.Sum256([]byte(token))
	if known, ok := home.answers.Get(hash); ok {
		answer := known.(reviewed)
		return answer.id, answer.err
	}
	// The request outlives the caller that began it, since others may wait for the same answer.
	asked := home.flight.DoChan(string(hash[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		turn := Stranger(ctx)
		if quotaOwner, ok := home.good.Get(hash); ok {
			turn = quotaOwner.(string)
		}
		username, groups, err := s.ask(ctx, home, turn, token)
		switch {
		case errors.Is(err, ErrUnavailable):
			return reviewed{err: err}, nil
		case err != nil:
			home.good.Remove(hash)
		default:
			home.good.Add(hash, Identity{Username: username, Cluster: home.cluster}.QuotaOwner(), goodLately)
		}
		answer := reviewed{err: err}
		if err == nil {
			answer.id = Identity{
				Username: username, Groups: groups, Claims: claims, ExpiresAt: expires, Begun: begunOf(claims), Cluster: home.cluster, Token: Secret(token),
			}
		}
		home.answers.Add(hash, answer, min(reviewedFor, time.Until(expires)))
		return answer, nil
	})
	select {
	case result := <-asked:
		answer := result.Val.(reviewed)
		return answer.id, answer.err
	case <-ctx.Done():
		return Identity{}, ctx.Err()
	}
}

// look reads the claims of a token, which are not verified yet.
func (s *ServiceAccounts) look(token string, now time.Time) (claims jwt.MapClaims, expires time.Time, err error) {
	claims = jwt.MapClaims{}
	if _, _, err = parser.ParseUnverified(token, claims); err != nil {
		return nil, time.Time{}, err
	}
	subject, _ := claims["sub"].(string)
	audiences, _ := claims.GetAudience()
	exp, ok := claims["exp"].(float64)
	switch {
	case !strings.HasPrefix(subject, serviceAccountPrefix):
		return nil, time.Time{}, errors.New("claim iss: not configured, and claim sub is no ServiceAccount's")
	case !slices.ContainsFunc(audiences, func(a string) bool { return slices.Contains(s.audiences, a) }):
		return nil, time.Time{}, errors.New("claim aud: a ServiceAccount's token for others")
	case !ok, exp > maxTime, exp <= 0:
		return nil, time.Time{}, errors.New("claim exp: a ServiceAccount's token that does not end is not accepted")
	}
	expires = time.Unix(int64(exp), 0)
	if !now.Before(expires) {
		return nil, time.Time{}, fmt.Errorf("%w: at %v", ErrTokenExpired, expires)
	}
	return claims, expires, nil
}

func (s *ServiceAccounts) ask(ctx context.Context, home *home, turn, token string) (username string, groups []string, err error) {
	release, err := s.turns.Take(ctx, turn)
	if err != nil {
		return "", nil, fmt.Errorf("%w: too many ServiceAccounts' tokens at once: %w", ErrUnavailable, err)
	}
	defer release()
	answer, err := home.reviewer.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: s.audiences},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("%w: cluster %s: TokenReview (its verb create is in the ClusterRole system:auth-delegator): %w", ErrUnavailable, home.cluster, err)
	case answer == nil:
		return "", nil, fmt.Errorf("%w: cluster %s: TokenReview: empty answer", ErrUnavailable, home.cluster)
	}
	status := answer.Status
	switch {
	case !status.Authenticated:
		return "", nil, fmt.Errorf("the API server of cluster %s does not know the token: %s", home.cluster, status.Error)
	// An API server that does not know audiences answers without any, and has not checked them.
	case !slices.ContainsFunc(status.Audiences, func(a string) bool { return slices.Contains(s.audiences, a) }):
		return "", nil, fmt.Errorf("the API server of cluster %s knows the token for other audiences", home.cluster)
	case !strings.HasPrefix(status.User.Username, serviceAccountPrefix):
		return "", nil, errors.New("the token is no ServiceAccount's")
	}
	return status.User.Username, slices.Sorted(slices.Values(status.User.Groups)), nil
}
