package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/kubecast/kubecast/internal/auth"
)

// growing is a set of namespaces that come and go.
type growing struct{ names []string }

func (g *growing) Names(string) ([]string, bool) { return g.names, true }
func (g *growing) Changes(func()) (stop func())  { return func() {} }
func (g *growing) set(n int) {
	g.names = nil
	for i := range n {
		g.names = append(g.names, fmt.Sprintf("ns-%04d", i))
	}
}

// Policies are asked once about each of many namespaces, not for each watch, kind, user and change.
func TestPoliciesOverManyNamespacesAreAskedOnce(t *testing.T) {
	g := &growing{}
	g.set(5000)
	a, err := New([]string{`request.namespace in user.groups`, `user.groups.exists(g, request.namespace.startsWith(g + "-1"))`}, "p", g)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(user, resource string, groups ...string) (scope auth.Scope, evaluated int64) {
		t.Helper()
		before := a.evaluated.Load()
		scope, err := a.Scope(t.Context(), auth.Identity{Username: user, Groups: groups, Claims: map[string]any{"jti": user + resource}}, auth.Request{Cluster: "c", Verb: "watch", Resource: resource})
		if err != nil {
			t.Fatal(err)
		}
		return scope, a.evaluated.Load() - before
	}
	first, n := ask("ann", "pods", "ns")
	if len(first.Namespaces) != 1000 || n < 5000 {
		t.Errorf("%d namespaces, %d evaluations", len(first.Namespaces), n)
	}
	for _, resource := range []string{"pods", "jobs", "nodes"} { // no policy mentions these, nor names
		for _, user := range []string{"ann", "bob"} {
			if again, n := ask(user, resource, "ns"); n > 1 || !again.Equal(first) {
				t.Errorf("%s asks for %s: %d evaluations", user, resource, n)
			}
		}
	}
	if other, n := ask("ann", "pods", "ns-0007"); n < 5000 || !slices.Equal(other.Namespaces, []string{"ns-0007"}) {
		t.Errorf("other groups: %v after %d evaluations", other.Namespaces, n)
	}
	g.names = append(slices.Clone(g.names), "ns-1aaa", "zz")
	slices.Sort(g.names)
	if more, n := ask("ann", "pods", "ns"); n > 3 || len(more.Namespaces) != 1001 {
		t.Errorf("two more: %d namespaces, %d evaluations", len(more.Namespaces), n)
	}
	g.set(1500)
	if fewer, n := ask("ann", "pods", "ns"); n > 1 || len(fewer.Namespaces) != 500 {
		t.Errorf("fewer: %d namespaces, %d evaluations", len(fewer.Namespaces), n)
	}
	first.Namespaces[0] = "changed by a caller"
	g.set(5000)
	if again, _ := ask("ann", "pods", "ns"); slices.Contains(again.Namespaces, "changed by a caller") {
		t.Error("what is remembered can be changed by those who are told")
	}
}

// Users that differ in what a policy mentions get different answers.
func TestPoliciesTellThoseApartWhomTheyMention(t *testing.T) {
	g := &growing{}
	g.set(10)
	for policy, c := range map[string]struct {
		one, other auth.Identity
		a, b       auth.Request
	}{
		`user.username == "ann" && request.namespace != ""`:             {one: auth.Identity{Username: "ann"}, other: auth.Identity{Username: "bob"}},
		`user.claims.team == "a" && request.namespace != ""`:            {one: auth.Identity{Claims: map[string]any{"team": "a"}}, other: auth.Identity{Claims: map[string]any{"team": "b"}}},
		`"x" in user.groups && request.namespace != ""`:                 {one: auth.Identity{Groups: []string{"x"}}, other: auth.Identity{Groups: []string{"xx"}}},
		`request.resource == "pods" && request.namespace != ""`:         {a: auth.Request{Resource: "pods"}, b: auth.Request{Resource: "jobs"}},
		`request.verb == "list" && request.namespace != ""`:             {a: auth.Request{Verb: "list"}, b: auth.Request{Verb: "watch"}},
		`request.group == "batch" && request.namespace != ""`:           {a: auth.Request{Group: "batch"}, b: auth.Request{}},
		`request.cluster == "one" && request.namespace != ""`:           {a: auth.Request{Cluster: "one"}, b: auth.Request{Cluster: "two"}},
		`request.resource == "pods/log" && request.namespace != ""`:     {a: auth.Request{Resource: "pods", Subresource: "log"}, b: auth.Request{Resource: "pods"}},
		`["x"].exists(v, v in user.groups) && request.namespace != ""`:  {one: auth.Identity{Groups: []string{"x"}}, other: auth.Identity{}},
		`has(user.claims.admin) && request.namespace.startsWith("ns-")`: {one: auth.Identity{Claims: map[string]any{"admin": true}}, other: auth.Identity{}},
	} {
		a, err := New([]string{policy}, "p", g)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			yes, err1 := a.Scope(t.Context(), c.one, c.a)
			no, err2 := a.Scope(t.Context(), c.other, c.b)
			if err1 != nil || err2 != nil || len(yes.Namespaces)+len(no.Namespaces) != 10 || yes.Empty() {
				t.Errorf("%s: %v, %v; %v %v", policy, yes.Namespaces, no.Namespaces, err1, err2)
			}
		}
	}
}

// Nothing is computed for a caller that has left, and what was found until then is not lost.
func TestPoliciesAreNotAskedForThoseWhoHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where no turn ends by time
		g := &growing{}
		g.set(3000)
		a, err := New([]string{`request.namespace in user.groups`}, "p", g)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.Scope(ctx, auth.Identity{Username: "ann"}, auth.Request{}); !errors.Is(err, context.Canceled) || a.evaluated.Load() > 1 {
			t.Errorf("%v after %d evaluations", err, a.evaluated.Load())
		}
	})
}
