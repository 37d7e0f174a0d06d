package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/kubecast/kubecast/internal/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixedNamespaces are the namespaces of every cluster; nil: not known.
type fixedNamespaces []string

func (n fixedNamespaces) Names(string) ([]string, bool) { return n, n != nil }

func (n fixedNamespaces) Changes(func()) func() { return func() {} }

var known = fixedNamespaces{"kube-system", "team-a", "team-b"}

func mustCompile(t testing.TB, namespaces auth.Namespaces, policies ...string) *Authorizer {
	t.Helper()
	a, err := New(policies, "authorizer.policies", namespaces)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var (
	jane = auth.Identity{Username: "jane", Groups: []string{"team-a", "dev"}, Claims: map[string]any{
		"email": "jane@example.org", "level": float64(3), "teams": []any{"team-a", "team-b"}, "org": map[string]any{"unit": "ml"},
	}}
	anonymous = auth.Identity{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}, Anonymous: true}
	listPods  = auth.Request{Cluster: "default", Verb: "list", Version: "v1", Resource: "pods"}
)

func in(namespace, name string) auth.Request {
	req := listPods
	req.Namespace, req.Name = namespace, name
	return req
}

func TestPoliciesSeeTheUserAndTheRequest(t *testing.T) {
	for policy, want := range map[string]bool{
		`true`:                             true,
		`false`:                            false,
		`user.username == "jane"`:          true,
		`user.username == "joe"`:           false,
		`"dev" in user.groups`:             true,
		`request.namespace in user.groups`: true,
		`user.claims.email.endsWith("@example.org")`:             true,
		`user.claims.level >= 3`:                                 true,
		`user.claims.level > 3.5`:                                false,
		`request.namespace in user.claims.teams`:                 true,
		`user.claims.org.unit == "ml"`:                           true,
		`has(user.claims.admin) && user.claims.admin`:            false,
		`user.claims.absent == "x"`:                              false,
		`user.claims.absent == "x" || user.username == "jane"`:   true,
		`request.cluster == "default" && request.verb == "list"`: true,
		`request.group == "" && request.resource == "pods"`:      true,
		`request.name == "web"`:                                  true,
		`user.username.matches("^j.*e$")`:                        true,
		`sets.intersects(user.groups, ["x", "dev"])`:             true,
		`user.groups.exists(g, request.namespace.startsWith(g))`: true,
	} {
		d, err := mustCompile(t, known, policy).Authorize(t.Context(), jane, in("team-a", "web"))
		if err != nil || d.Allowed != want {
			t.Errorf("%s: %+v, %v", policy, d, err)
		}
	}
	if d, _ := mustCompile(t, known, `user.claims.level > 0`, `user.claims.size() == 0 && "system:unauthenticated" in user.groups`).
		Authorize(t.Context(), anonymous, in("team-a", "web")); !d.Allowed || d.Reason != "authorizer.policies[1]" {
		t.Errorf("without claims: %+v", d)
	}
}

// A policy that forbids one namespace or name must not let a user see it by asking for all of them.
func TestWhatIsNotNamedIsAllOfIt(t *testing.T) {
	for policy, c := range map[string]struct {
		all, team, object, system bool
		scope                     auth.Scope
	}{
		`request.namespace != "kube-system"`: {
			team: true, object: true, scope: auth.Scope{Namespaces: []string{"team-a", "team-b"}}},
		`request.namespace == ""`: {},
		`request.name != "secret"`: {
			object: true},
		`request.name == ""`: {},
		`request.resource == "pods" || request.namespace == "team-a"`: {
			all: true, team: true, object: true, system: true, scope: auth.Scope{All: true}},
		`"admin" in user.groups || request.namespace in user.groups`: {
			team: true, object: true, scope: auth.Scope{Namespaces: []string{"team-a"}}},
		`!request.namespace.startsWith("kube-") && request.name != "secret"`: {
			object: true},
		`user.groups.exists(g, g == request.namespace)`: {
			team: true, object: true, scope: auth.Scope{Namespaces: []string{"team-a"}}},
		`user.groups.all(g, g != request.namespace)`: {
			system: true, scope: auth.Scope{Namespaces: []string{"kube-system", "team-b"}}},
		`true`: {all: true, team: true, object: true, system: true, scope: auth.Scope{All: true}},
	} {
		a := mustCompile(t, known, policy)
		for _, q := range []struct {
			req  auth.Request
			want bool
		}{{in("", ""), c.all}, {in("team-a", ""), c.team}, {in("team-a", "web"), c.object}, {in("kube-system", ""), c.system}} {
			if d, err := a.Authorize(t.Context(), jane, q.req); err != nil || d.Allowed != q.want {
				t.Errorf("%s: %s/%s: %+v, %v", policy, q.req.Namespace, q.req.Name, d, err)
			}
		}
		if s, err := a.Scope(t.Context(), jane, in("", "ignored")); err != nil || !s.Equal(c.scope) {
			t.Errorf("%s: %+v, %v", policy, s, err)
		}
		if s, err := a.Scope(t.Context(), jane, in("team-a", "")); err != nil || !s.Equal(c.scope.In("team-a")) {
			t.Errorf("%s in team-a: %+v, %v", policy, s, err)
		}
		if d, _ := a.Authorize(t.Context(), jane, in("", "")); d.Allowed && !c.all {
			t.Errorf("%s: all is allowed", policy)
		}
	}
}

func TestScopeAgreesWithAuthorize(t *testing.T) {
	a := mustCompile(t, known, `request.namespace in user.groups`, `user.username == request.namespace.substring(5)`, `user.claims.absent == 1`)
	for _, user := range []string{"a", "b", "jane"} {
		id := auth.Identity{Username: user, Groups: []string{"kube-system", "elsewhere"}}
		s, err := a.Scope(t.Context(), id, listPods)
		if err != nil {
			t.Fatal(err)
		}
		for _, namespace := range append(slices.Clone(known), "") {
			if d, _ := a.Authorize(t.Context(), id, in(namespace, "")); d.Allowed != s.SeesNamespace(namespace) {
				t.Errorf("%s in %q: %t, scope %+v", user, namespace, d.Allowed, s)
			}
		}
	}
}

func TestScopeWithoutKnownNamespaces(t *testing.T) {
	a := mustCompile(t, fixedNamespaces(nil), `request.namespace in user.groups || user.username == "admin"`)
	if s, err := a.Scope(t.Context(), jane, listPods); !errors.Is(err, auth.ErrUndecided) || !s.Empty() {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := a.Scope(t.Context(), auth.Identity{Username: "admin"}, listPods); err != nil || !s.All {
		t.Errorf("%+v, %v", s, err)
	}
}

// A policy that takes too long or fails allows nothing, and does not keep the others from being evaluated.
func TestPolicyThatFailsAllowsNothing(t *testing.T) {
	many := make([]any, 2000)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	id := auth.Identity{Username: "jane", Groups: []string{"a"}, Claims: map[string]any{"many": many, "text": "x"}}
	for name, policy := range map[string]string{
		"too long":        `user.claims.many.all(a, user.claims.many.exists(b, a == b))`,
		"no such key":     `user.claims.absent`,
		"division by 0":   `1 / (user.groups.size() - 1) == 1 || true == user.claims.text`,
		"a wrong pattern": `user.username.matches(user.claims.text + "(")`,
	} {
		a := mustCompile(t, known, policy+` == true`)
		d, err := a.Authorize(t.Context(), id, in("team-a", "web"))
		if err != nil || d.Allowed || !strings.Contains(d.Reason, "authorizer.policies[0]: ") {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		if d, _ := mustCompile(t, known, policy+` == true`, `true`).Authorize(t.Context(), id, in("team-a", "web")); !d.Allowed {
			t.Errorf("%s: the other policy does not count: %+v", name, d)
		}
	}
}

func TestPoliciesThatAreWrongAreNamed(t *testing.T) {
	for policy, want := range map[string]string{
		`user.nmae == "x"`:        "undeclared reference",
		`request.subject == ""`:   "undeclared reference",
		`user`:                    "undeclared reference",
		`user.username == 3`:      "no matching overload",
		`user.groups == "a"`:      "no matching overload",
		`user.username`:           "it gives a string; allowed: a bool",
		`user.claims.admin`:       "it gives a dyn; allowed: a bool",
		`user.username = "x"`:     "Syntax error",
		``:                        "Syntax error",
		`now() > timestamp("x")`:  "undeclared reference",
		`user.groups.exists("g")`: "",
	} {
		_, err := New([]string{"true", policy}, "authorizer.policies", known)
		if err == nil || !strings.Contains(err.Error(), "authorizer.policies[1]: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", policy, err)
		}
	}
	_, err := New([]string{"1", "true", "2"}, "p", known)
	if err == nil || !strings.Contains(err.Error(), "p[0]: ") || !strings.Contains(err.Error(), "p[2]: ") || strings.Contains(err.Error(), "p[1]") {
		t.Errorf("two that are wrong: %v", err)
	}
	if _, err := New(nil, "authorizer.policies", known); err == nil {
		t.Error("no policy at all is no error")
	}
}

func BenchmarkAuthorize(b *testing.B) {
	a := mustCompile(b, known, `"admin" in user.groups`, `request.resource in ["pods", "jobs"] && request.namespace in user.groups`)
	for name, req := range map[string]auth.Request{"one namespace": in("team-a", ""), "all namespaces": in("", "")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d, err := a.Authorize(b.Context(), jane, req); err != nil || d.Allowed != (req.Namespace != "") {
					b.Fatal(d, err)
				}
			}
		})
	}
}

// No expression may crash the gateway, or take it more than a moment, whatever the user's claims are.
func FuzzPolicies(f *testing.F) {
	for _, seed := range []string{`true`, `user.claims.a.b[0] == request.name`, `user.groups.exists(g, g in user.claims)`, `sets.contains(user.groups, ["a"])`, `"%s".format([user.claims])== ""`} {
		f.Add(seed, "a")
	}
	f.Fuzz(func(t *testing.T, text, claim string) {
		a, err := New([]string{text}, "p", known)
		if err != nil {
			return
		}
		id := auth.Identity{Username: claim, Groups: []string{claim}, Claims: map[string]any{"a": claim, claim: []any{claim, 1.5, nil}}}
		all, _ := a.Authorize(t.Context(), id, in("", ""))
		one, _ := a.Authorize(t.Context(), id, in("team-a", "web"))
		if all.Allowed && !one.Allowed {
			t.Errorf("%s: all, but not one of them", text)
		}
	})
}
