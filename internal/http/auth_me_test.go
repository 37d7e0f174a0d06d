package http

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/rest"
	"github.com/kubecast/kubecast/internal/visibility"
)

func TestMeTellsWhoAndUntilWhenAndWhere(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.access.set(func(a *fakeAuth) {
			a.expires = time.Now().Add(time.Hour)
			a.decide = func(id auth.Identity, req auth.Request) (bool, error) {
				switch {
				case req.Verb != "watch" || req.Cluster != "default" || req.Name != "":
					return false, fmt.Errorf("asked for %+v", req)
				case req.Resource == "secrets":
					return false, auth.ErrUndecided
				}
				return req.Resource == "pods" || req.Group == "batch" && req.Namespace == "b", nil
			}
		})
		var got rest.Me
		read := func(path string) rest.Me {
			t.Helper()
			got = rest.Me{}
			a := g.get(path)
			if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.code != 200 || a.header.Get("Cache-Control") != "no-store" ||
				a.header.Get("Content-Type") != "application/json" || strings.Contains(a.body, apitest.SecretDetail) {
				t.Fatalf("%d %v %s", a.code, a.header, a.body)
			}
			return got
		}
		expires := time.Now().Add(time.Hour).UTC()
		want := rest.Me{Username: "alice", ExpiresAt: &expires, Clusters: []rest.MyCluster{{Name: "default", Default: true, Watch: []rest.MyKind{
			{Resource: "pods", All: true, Namespaces: []string{}},
			{Group: "batch", Resource: "jobs", Namespaces: []string{"b"}},
			{Group: "example.org", Resource: "widgets", Namespaces: []string{}},
			{Resource: "secrets", Namespaces: []string{}, Unknown: true},
		}}}}
		if diff := cmp.Diff(want, read("/auth/me?kinds=pods,jobs.batch,widgets.example.org,secrets")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		g.watches("pods", 1)
		want.Clusters[0].Watch = want.Clusters[0].Watch[:1]
		if diff := cmp.Diff(want, read("/auth/me")); diff != "" {
			t.Errorf("without kinds (-want +got):\n%s", diff)
		}
		g.access.set(func(a *fakeAuth) { a.expires = time.Time{} })
		if read("/auth/me").ExpiresAt != nil {
			t.Error("a token that does not end does")
		}
		for path, code := range map[string]int{
			"/auth/me?kinds=": 400, "/auth/me?kinds=pods,": 400, "/auth/me?kinds=.batch": 400, "/auth/me?cluster=x": 400, "/auth/me?kinds=%zz": 400,
			"/auth/me?kinds=" + strings.Repeat("pods,", rest.MaxMyKinds) + "pods": 400, "/auth/me?token=eyJ": 400,
			"/auth/me?kinds=" + strings.Repeat("x", 400): 400,
		} {
			if a := g.get(path); a.code != code || a.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
		if a := g.get("/auth/me", "Authorization: "); a.code != 401 || a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%d %s", a.code, a.body)
		}
	}, cached(streamOptions(), "pods"))
}

// At an API server a namespace is in itself, so that who has a role in it may be let see it.
func TestNamespaceIsAskedForInItself(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/namespaces/a": "a", "/api/v1/namespaces": "", "/api/v1/namespaces/a/pods": "a", "/api/v1/nodes/a": "",
		"/apis/example.org/v1/namespaces/a": "",
	} {
		target, ok := visibility.Parse(path)
		if got := target.Request("default", "get").Namespace; !ok || got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// Scope is what permit said, or what Authorize says of the whole, or of the namespaces a and b.
func (a *fakeAuth) Scope(ctx context.Context, id auth.Identity, req auth.Request) (auth.Scope, error) {
	if scope, ok := a.permitted(id.Username); ok {
		if req.Namespace != "" {
			scope = scope.In(req.Namespace)
		}
		return scope, nil
	}
	within := req.Namespace
	req.Namespace, req.Name = "", ""
	all, err := a.Authorize(ctx, id, req)
	if err != nil || all.Allowed {
		return auth.Scope{All: all.Allowed}, err
	}
	var scope auth.Scope
	if within != "" {
		return scope, nil
	}
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
