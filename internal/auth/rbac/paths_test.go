package rbac

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubecast/kubecast/internal/auth"
)

// URLs that are not resources are decided as in Kubernetes: by ClusterRoles that are bound for the whole cluster.
func TestPathsAreReadByThoseWhoMay(t *testing.T) {
	in(t, func(w *world) {
		path := func(urls ...string) rbacv1.PolicyRule {
			return rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: urls}
		}
		w.role("discovery", path("/api", "/api/*", "/apis", "/apis/*", "/version"), readPods())
		w.role("public", path("/version"))
		w.role("all", path("*"))
		w.role("head", rbacv1.PolicyRule{Verbs: []string{"head"}, NonResourceURLs: []string{"*"}})
		w.role("prefix", path("/openapi*"))
		w.bind("", "1", "discovery", group("system:authenticated"))
		w.bind("", "2", "public", group("system:unauthenticated"))
		w.bind("a", "1", "all", user("narrow")) // gives nothing for paths
		w.bind("", "3", "head", user("narrow"))
		w.bind("", "4", "all", user("admin"))
		w.bind("", "5", "prefix", user("prefix"))
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} { // enough for the roles to be merged
			w.role(name, readPods(name))
			w.bind("", name, name, user("many"))
		}
		w.bind("", "6", "public", user("many"))
		may := func(user string, groups []string, path string, want bool) {
			t.Helper()
			d, err := w.Authorize(w.t.Context(), auth.Identity{Username: user, Groups: groups}, auth.Request{Cluster: "test", Verb: "get", Path: path})
			if err != nil || d.Allowed != want {
				t.Errorf("%s: %s: %+v, %v", user, path, d, err)
			}
		}
		somebody, nobody := []string{"system:authenticated"}, []string{"system:unauthenticated"}
		for path, c := range map[string]struct{ somebody, nobody, narrow, admin, prefix, many bool }{
			"/api":                {somebody: true, admin: true},
			"/api/v1":             {somebody: true, admin: true},
			"/apis":               {somebody: true, admin: true},
			"/apis/batch/v1":      {somebody: true, admin: true},
			"/apisx":              {admin: true},
			"/version":            {somebody: true, nobody: true, admin: true, many: true},
			"/openapi/v2":         {admin: true, prefix: true},
			"/openapi/v3/apis/v1": {admin: true, prefix: true},
		} {
			may("jane", somebody, path, c.somebody)
			may("system:anonymous", nobody, path, c.nobody)
			may("narrow", nil, path, c.narrow)
			may("admin", nil, path, c.admin)
			may("prefix", nil, path, c.prefix)
			may("many", nil, path, c.many)
			may("root", []string{"system:masters"}, path, true)
		}
		w.bind("", "1", "public", group("system:authenticated"))
		may("jane", somebody, "/apis", false)
	})
}
