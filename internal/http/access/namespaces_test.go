package access

import (
	"context"
	"slices"
	"testing"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/visibility"
)

// roles is an authorizer that knows what is allowed by verb.
type roles map[string]auth.Scope

func (r roles) Authorize(_ context.Context, _ auth.Identity, req auth.Request) (auth.Decision, error) {
	scope := r[req.Verb]
	return auth.Decision{Allowed: scope.SeesNamespace(req.Namespace) || req.Name != "" && scope.Sees(req.Namespace, req.Name)}, nil
}

func (r roles) Scope(_ context.Context, _ auth.Identity, req auth.Request) (auth.Scope, error) {
	return r[req.Verb], nil
}

func (r roles) Changes(auth.Identity, func()) (stop func()) { return func() {} }

// At the API server a role in a namespace grants to get the Namespace, and never to list or watch Namespaces.
func TestRolesInANamespaceDoNotListIt(t *testing.T) {
	in := func(namespaces ...string) auth.Scope { return auth.Scope{Namespaces: namespaces} }
	named := func(namespace string, names ...string) auth.Scope {
		return auth.Scope{Names: map[string][]string{namespace: names}}
	}
	everything := auth.Scope{All: true}
	for name, c := range map[string]struct {
		roles roles
		one   bool     // whether the Namespace one may be watched by its name
		list  []string // which are listed
	}{
		"list and watch":           {roles: roles{"list": in("one"), "watch": in("one")}},
		"list, watch, and get":     {roles: roles{"list": in("one", "two"), "watch": in("one", "two"), "get": in("one")}, one: true, list: []string{"one"}},
		"get of another":           {roles: roles{"list": in("one"), "watch": in("one"), "get": named("one", "two")}},
		"get by name":              {roles: roles{"list": named("one", "one"), "watch": named("one", "one"), "get": named("one", "one")}, one: true, list: []string{"one"}},
		"list by name, without":    {roles: roles{"list": named("one", "one"), "watch": named("one", "one")}},
		"get of all":               {roles: roles{"list": in("one"), "watch": in("one"), "get": everything}, one: true, list: []string{"one"}},
		"cluster's role, by name":  {roles: roles{"list": named("", "one"), "watch": named("", "one")}, one: true, list: []string{"one"}},
		"cluster's role":           {roles: roles{"list": everything, "watch": everything}, one: true, list: []string{"one", "two", "three"}},
		"get alone":                {roles: roles{"get": in("one")}},
		"get and watch of another": {roles: roles{"get": in("one"), "watch": in("two")}},
	} {
		a := &Access{opts: Options{Authorizer: c.roles}}
		for _, verb := range []string{"list", "watch"} {
			scope, err := a.scope(t.Context(), auth.Identity{}, visibility.Target{Version: "v1", Resource: "namespaces"}.Request("", verb))
			if err != nil {
				t.Fatal(err)
			}
			var listed []string
			for _, namespace := range []string{"one", "two", "three"} {
				if scope.Sees(namespace, namespace) {
					listed = append(listed, namespace)
				}
			}
			if !slices.Equal(listed, c.list) && c.roles[verb].Sees("one", "one") {
				t.Errorf("%s: %s shows %v", name, verb, listed)
			}
		}
		one, err := a.allowed(t.Context(), auth.Identity{}, visibility.Target{Version: "v1", Resource: "namespaces", Name: "one"}.Request("", "watch"))
		if err != nil || one != c.one {
			t.Errorf("%s: watch by name: %t, %v", name, one, err)
		}
	}
}
