package auth

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Namespaces knows the namespaces of clusters. Those who cannot enumerate permissions ask about each of them.
type Namespaces interface {
	// Names are a cluster's, sorted; ok is false if they are not known. Callers must not change them.
	Names(cluster string) (names []string, ok bool)
	// Changes has changed called when a namespace has come or gone, as Authorizer's Changes does.
	Changes(changed func()) (stop func())
}

// maxReviewedNamespaces bounds the questions that one Scope may cost the API server. Where there are more namespaces, who may
// not see all of them must name the one that they want; or the mode must be rbac.
const maxReviewedNamespaces = 250

// Scope implements Authorizer. It asks about the cluster, and if that is denied about each namespace; single objects
// (resourceNames) cannot be found that way, so there are none in it. Errors are as those of Authorize.
func (s *SAR) Scope(ctx context.Context, id Identity, req Request) (Scope, error) {
	req.Name = ""
	whole, err := s.Authorize(ctx, id, req)
	switch {
	case err != nil || !whole.Allowed && req.Namespace != "":
		return Scope{}, err
	case whole.Allowed && req.Namespace != "":
		return Scope{Namespaces: []string{req.Namespace}}, nil
	case whole.Allowed:
		return Scope{All: true}, nil
	}
	names, ok := s.namespaces.Names(req.Cluster)
	if !ok || len(names) > maxReviewedNamespaces {
		return Scope{}, nil
	}
	allowed := make([]bool, len(names))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(reviewsPerUser) // of which no more are under way anyway
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

// Changes implements Authorizer. The API server tells nobody: who has to know must ask again, as often as answers are
// forgotten.
func (s *SAR) Changes(Identity, func()) (stop func()) { return func() {} }
