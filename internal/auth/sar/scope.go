package sar

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/internal/auth"
)

// maxReviewedNamespaces bounds the questions that one Scope may cost the API server. In a cluster with more
// namespaces, a user who may not see all of them must name one. Mode rbac has no such bound.
const maxReviewedNamespaces = 250

// Scope implements auth.Authorizer. It asks about the whole cluster, and if that is denied about each namespace. It
// never has single objects (resourceNames), since they cannot be found that way. Its errors are those of Authorize.
func (s *Authorizer) Scope(ctx context.Context, id auth.Identity, req auth.Request) (auth.Scope, error) {
	req.Name = ""
	whole, err := s.Authorize(ctx, id, req)
	switch {
	case err != nil || !whole.Allowed && req.Namespace != "":
		return auth.Scope{}, err
	case whole.Allowed && req.Namespace != "":
		return auth.Scope{Namespaces: []string{req.Namespace}}, nil
	case whole.Allowed:
		return auth.Scope{All: true}, nil
	}
	names, ok := s.namespaces.Names(req.Cluster)
	if !ok || len(names) > maxReviewedNamespaces {
		return auth.Scope{}, nil
	}
	allowed := make([]bool, len(names))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(reviewsPerUser) // no more of them would be under way anyway
	for i, name := range names {
		asking.Go(func() error {
			in := req
			in.Namespace = name
			decision, err := s.authorize(ctx, scopeLine, id, in)
			allowed[i] = decision.Allowed
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return auth.Scope{}, err
	}
	var scope auth.Scope
	for i, name := range names {
		if allowed[i] {
			scope.Namespaces = append(scope.Namespaces, name)
		}
	}
	return scope, nil
}

// Changes implements auth.Authorizer. It never calls changed, since the API server does not notify of changes: a
// caller that has to know asks again, as often as answers are forgotten.
func (s *Authorizer) Changes(auth.Identity, func()) (stop func()) { return func() {} }
