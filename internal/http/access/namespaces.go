package access

import (
	"context"
	"maps"
	"slices"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/visibility"
)

// This file is about permissions on Namespaces. At the API server each counts as being within
// itself, so that a role in a namespace may allow to get it. To list or watch Namespaces is a
// request to the whole cluster there, which no role in a namespace allows. Here a list is narrowed
// to what its caller may see. So what a role in a namespace says of list and watch counts only if
// the caller may also get the Namespace: nobody is shown one that the API server would not show
// them.

// allowed asks whether a request is allowed as a whole.
func (a *Access) allowed(ctx context.Context, id auth.Identity, request auth.Request) (bool, error) {
	decision, err := a.opts.Authorizer.Authorize(ctx, id, request)
	if err != nil || !decision.Allowed || !visibility.AreNamespaces(request.Group, request.Resource) || request.Name == "" || request.Verb == "get" {
		return decision.Allowed, err
	}
	cluster, get := request, request
	cluster.Namespace, get.Verb = "", "get"
	if decision, err = a.opts.Authorizer.Authorize(ctx, id, cluster); err == nil && !decision.Allowed {
		decision, err = a.opts.Authorizer.Authorize(ctx, id, get)
	}
	return decision.Allowed, err
}

// scope asks where a request is allowed.
func (a *Access) scope(ctx context.Context, id auth.Identity, request auth.Request) (auth.Scope, error) {
	scope, err := a.opts.Authorizer.Scope(ctx, id, request)
	if err != nil || scope.All || scope.Empty() || !visibility.AreNamespaces(request.Group, request.Resource) || request.Verb == "get" {
		return scope, err
	}
	request.Verb = "get"
	get, err := a.opts.Authorizer.Scope(ctx, id, request)
	if err != nil || get.All {
		return scope, err
	}
	scope.Namespaces = slices.DeleteFunc(slices.Clone(scope.Namespaces), func(name string) bool { return !get.Sees(name, name) })
	scope.Names = maps.Clone(scope.Names)
	maps.DeleteFunc(scope.Names, func(name string, _ []string) bool { return name != "" && !get.Sees(name, name) })
	return scope, nil
}
