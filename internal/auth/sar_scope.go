package auth

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Namespaces knows the namespaces of clusters. Those who cannot enumerate permissions ask about each of them.
type Namespaces interface {
	// Names are a cluster's, sorted; ok is false if they are not known.
	Names(cluster string) (names []string, ok bool)
	// Changes tells when a namespace has come or gone, as Authorizer's Changes does.
	Changes() (changed <-chan struct{}, stop func())
}

const (
	// maxReviewedNamespaces bounds the questions that one Scope may cost the API server. Where there are more
	// namespaces, who may not see all of them must name the one that he wants; or the mode must be rbac.
	maxReviewedNamespaces = 250
	// reviewsAtOnce bounds those of one Scope that are under way.
	reviewsAtOnce = 8
)

// Scope implements Authorizer. It asks about the cluster, and if that is denied about each namespace; single objects
// (resourceNames) cannot be found that way, so there are none in it. Errors are as those of Authorize.
func (s *SAR) Scope(ctx context.Context, id Identity, req Request) (Scope, error) {
	req.Namespace, req.Name = "", ""
	all, err := s.Authorize(ctx, id, req)
	if err != nil || all.Allowed {
		return Scope{All: all.Allowed}, err
	}
	names, ok := s.namespaces.Names(req.Cluster)
	if !ok || len(names) > maxReviewedNamespaces {
		return Scope{}, nil
	}
	allowed := make([]bool, len(names))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(reviewsAtOnce)
	for i, name := range names {
		asking.Go(func() error {
			in := req
			in.Namespace = name
			decision, err := s.Authorize(ctx, id, in)
			allowed[i] = decision.Allowed
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return Scope{}, err
	}
	var scope Scope
	for i, name := range names {
		if allowed[i] {
			scope.Namespaces = append(scope.Namespaces, name)
		}
	}
	return scope, nil
}

// Changes implements Authorizer. The API server does not tell of changes, so the answer may have become another each
// time that a remembered one ends.
func (s *SAR) Changes(Identity) (changed <-chan struct{}, stop func()) {
	return pulse(max(s.opts.CacheAllow, time.Second))
}

// pulse sends at intervals of 80 to 100 % of the period, without a goroutine of its own.
func pulse(period time.Duration) (_ <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	next := func() time.Duration { return period - rand.N(period/5) }
	var mu sync.Mutex
	var timer *time.Timer
	stopped := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(next(), func() {
		select {
		case c <- struct{}{}:
		default:
		}
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			timer.Reset(next())
		}
	})
	return c, func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}
