package http

import (
	"context"

	"github.com/kubecast/kubecast/internal/auth"
)

// Scope is what Authorize says of the whole, or of the namespaces a and b.
func (a *access) Scope(ctx context.Context, id auth.Identity, req auth.Request) (auth.Scope, error) {
	req.Namespace, req.Name = "", ""
	all, err := a.Authorize(ctx, id, req)
	if err != nil || all.Allowed {
		return auth.Scope{All: all.Allowed}, err
	}
	var scope auth.Scope
	for _, req.Namespace = range []string{"a", "b"} {
		decision, err := a.Authorize(ctx, id, req)
		if err != nil {
			return auth.Scope{}, err
		}
		if decision.Allowed {
			scope.Namespaces = append(scope.Namespaces, req.Namespace)
		}
	}
	return scope, nil
}

// Changes never tells.
func (a *access) Changes(auth.Identity) (<-chan struct{}, func()) { return nil, func() {} }
