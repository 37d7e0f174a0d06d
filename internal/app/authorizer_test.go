package app

import (
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/config"
)

// The default mode reads the cluster's roles and bindings, and says so if it may not read them.
func TestRolesAndBindingsDecide(t *testing.T) {
	api, url := apitest.Start(t)
	api.Put("pods", "team-a/web")
	api.Put("pods", "team-b/db")
	api.Put("clusterroles", "reader", `rules:=[{"verbs":["list"],"apiGroups":[""],"resources":["pods"]}]`)
	api.Fail("rolebindings", 403)
	cfg, token := configuration(t, url)
	cfg.Authorizer.Mode = config.Default().Authorizer.Mode
	g := start(t, cfg, token)
	g.until("it says what it may not read", func() bool {
		code, body := g.get(g.ops, "/readyz")
		return code == 503 && strings.Contains(body, "does not let the gateway get, list and watch rolebindings.rbac.authorization.k8s.io")
	})
	if code, body := g.get(g.addr, "/api/v1/namespaces/team-a/pods"); code != 503 || strings.Contains(body, "rolebindings") {
		t.Errorf("%d %s", code, body)
	}
	api.Fail("rolebindings", 0)
	g.until("it is ready", func() bool { code, _ := g.get(g.ops, "/readyz"); return code == 200 })
	if code, _ := g.get(g.addr, "/api/v1/namespaces/team-a/pods"); code != 403 {
		t.Errorf("without a binding: %d", code)
	}
	api.Put("rolebindings", "team-a/readers", `roleRef:={"kind":"ClusterRole","name":"reader"}`, `subjects:=[{"kind":"User","name":"jane"}]`)
	g.until("the binding counts", func() bool { code, _ := g.get(g.addr, "/api/v1/namespaces/team-a/pods"); return code == 200 })
	if code, body := g.get(g.addr, "/api/v1/pods"); code != 200 || !strings.Contains(body, "team-a") || strings.Contains(body, "team-b") {
		t.Errorf("all namespaces: %d %s", code, body)
	}
	if code, _ := g.get(g.addr, "/api/v1/namespaces/team-b/pods"); code != 403 {
		t.Errorf("another namespace: %d", code)
	}
	if n := api.Served("reviews"); n != 0 {
		t.Errorf("%d SubjectAccessReviews", n)
	}
}

// Mode policy decides by expressions, and does not ask the cluster about permissions.
func TestPoliciesDecide(t *testing.T) {
	api, url := apitest.Start(t)
	api.Put("namespaces", "team-a")
	api.Put("pods", "team-a/web")
	api.Put("pods", "team-b/db")
	cfg, token := configuration(t, url)
	cfg.Authorizer.Mode = config.AuthorizerPolicy
	cfg.Authorizer.Policies = []string{`request.namespace == "team-a" && user.username == "jane"`}
	g := start(t, cfg, token)
	g.until("it is ready", func() bool { code, _ := g.get(g.ops, "/readyz"); return code == 200 })
	for path, want := range map[string]int{"/api/v1/namespaces/team-a/pods": 200, "/api/v1/namespaces/team-b/pods": 403, "/api/v1/pods": 200} {
		if code, body := g.get(g.addr, path); code != want || strings.Contains(body, "team-b/") || strings.Contains(body, `"db"`) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if n := api.Served("reviews") + api.Served("roles"); n != 0 {
		t.Errorf("%d questions about permissions", n)
	}
}
