package app

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/config"
)

// explained is what Explain prints, without its first line.
func explained(t *testing.T, cfg config.Config, q Question) string {
	t.Helper()
	var out bytes.Buffer
	if err := Explain(t.Context(), Options{Config: cfg, Version: "test"}, q, &out); err != nil {
		t.Errorf("%+v: %v", q, err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	_, text, _ := strings.Cut(out.String(), "\n")
	return text
}

// Why does Jane see nothing? Each answer names the binding, the role and the rule that permit something, or what is
// missing, and says the same as the gateway.
func TestExplainNamesTheBindingOrWhatIsMissing(t *testing.T) {
	api, url := apitest.Start(t)
	subjects := func(names ...string) (all []rbacv1.Subject) {
		for _, name := range names {
			kind, name, _ := strings.Cut(name, ":")
			all = append(all, rbacv1.Subject{Kind: kind, Name: name})
		}
		return all
	}
	role := func(resource, name string, rules ...rbacv1.PolicyRule) {
		api.Put(resource, name, apitest.Set("rules", rules))
	}
	bind := func(resource, name, kind, role string, to ...string) {
		api.Put(resource, name, apitest.Set("roleRef", rbacv1.RoleRef{Kind: kind, Name: role}), apitest.Set("subjects", subjects(to...)))
	}
	read := []string{"get", "list", "watch"}
	role("clusterroles", "jobs", rbacv1.PolicyRule{Verbs: read, APIGroups: []string{"batch"}, Resources: []string{"jobs"}})
	role("clusterroles", "logs", rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods/log"}})
	role("roles", "team-b/one", rbacv1.PolicyRule{Verbs: read, APIGroups: []string{"batch"}, Resources: []string{"jobs"}, ResourceNames: []string{"train"}})
	role("clusterroles", "discovery", rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/apis", "/apis/*"}})
	bind("rolebindings", "team-a/devs", "ClusterRole", "jobs", "Group:a")
	bind("rolebindings", "team-a/logs", "ClusterRole", "logs", "User:jane")
	bind("rolebindings", "team-b/one", "Role", "one", "User:jane")
	bind("rolebindings", "team-c/lost", "ClusterRole", "deleted", "Group:b")
	bind("clusterrolebindings", "discovery", "ClusterRole", "discovery", "Group:system:authenticated")
	cfg, _ := configuration(t, url)
	cfg.Authorizer.Mode = config.AuthorizerRBAC
	jane := Question{User: "jane", Groups: []string{"a", "b"}}
	const (
		devs = "RoleBinding team-a/devs of group a → ClusterRole jobs: get, list, watch jobs.batch"
		one  = "RoleBinding team-b/one of user jane → Role team-b/one: "
	)
	for path, want := range map[string]string{
		"/apis/batch/v1/namespaces/team-a/jobs": "list of jobs.batch in namespace team-a in cluster default: permitted\n  by " + devs + "\n" +
			"watch of jobs.batch in namespace team-a in cluster default: permitted\n  by " + devs + "\n",
		"/history/apis/batch/v1/namespaces/team-a/jobs": "list of jobs.batch in namespace team-a in cluster default: permitted\n  by " + devs + "\n",
		"/apis/batch/v1/namespaces/team-c/jobs": "list of jobs.batch in namespace team-c in cluster default: nothing permits it\n" +
			"  but RoleBinding team-c/lost of group b names ClusterRole deleted, which does not exist\n" +
			"watch of jobs.batch in namespace team-c in cluster default: nothing permits it\n" +
			"  but RoleBinding team-c/lost of group b names ClusterRole deleted, which does not exist\n",
		"/stream?jobs=/apis/batch/v1/jobs": "watch of jobs.batch in cluster default: permitted in part: namespaces team-a; objects train of namespace team-b\n" +
			"  by " + devs + " (only in namespace team-a)\n  by " + one + "watch jobs.batch (only train in namespace team-b)\n",
		"/apis/batch/v1/namespaces/team-b/jobs/train": "get of jobs.batch train in namespace team-b in cluster default: permitted\n" +
			"  by " + one + "get, list, watch jobs.batch named \"train\"\n" +
			"watch of jobs.batch train in namespace team-b in cluster default: permitted\n  by " + one + "get, list, watch jobs.batch named \"train\"\n",
		"/logs/apis/batch/v1/namespaces/team-a/jobs/train": "get of pods/log in namespace team-a in cluster default: permitted\n" +
			"  by RoleBinding team-a/logs of user jane → ClusterRole logs: get pods/log\n" +
			"list of pods in namespace team-a in cluster default: nothing permits it\n" +
			"  but RoleBinding team-a/devs of group a → ClusterRole jobs permits other things only\n" +
			"  but RoleBinding team-a/logs of user jane → ClusterRole logs permits other things only\n" +
			"get of jobs.batch train in namespace team-a in cluster default: permitted\n  by " + devs + "\n",
		"/apis/example.org/v1/nothings": "list of nothings.example.org in cluster default: nothing permits it\n",
		"/apis":                         "get of /apis in cluster default: permitted\n  by ClusterRoleBinding discovery of group system:authenticated → ClusterRole discovery: get /apis, /apis/*\n",
		"/clusters/default/metrics":     "get of /metrics in cluster default: nothing permits it\n",
	} {
		q := jane
		q.Path = path
		if got := explained(t, cfg, q); got != want && (path != "/apis/example.org/v1/nothings" && path != "/clusters/default/metrics" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s:\n%s\nnot\n%s", path, got, want)
		}
	}

	admin := Question{User: "root", Groups: []string{"system:masters"}, Path: "/apis/batch/v1/jobs"}
	if got := explained(t, cfg, admin); !strings.HasPrefix(got, "list of jobs.batch in cluster default: permitted\n  by the group system:masters") {
		t.Error(got)
	}
	admin.Path = "/apis/example.org/v1/nothings"
	if got := explained(t, cfg, admin); !strings.Contains(got, "the cluster has no such kind") {
		t.Error(got)
	}
	// What the gateway itself may not read, nobody sees.
	api.AllowSelf = func(r authorizationv1.ResourceAttributes) bool { return r.Verb != "watch" }
	admin.Path = "/apis/batch/v1/jobs"
	if got := explained(t, cfg, admin); !strings.Contains(got, "\n  but the gateway itself may not watch it, so nobody sees it\n") {
		t.Error(got)
	}
	if err := Explain(t.Context(), Options{Config: cfg}, Question{User: "jane", Cluster: "elsewhere", Path: "/apis"}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), `no cluster "elsewhere"`) {
		t.Error(err)
	}
}

// Modes policy and sar explain, too: by the policies, and by the reasons of the API server.
func TestExplainNamesPoliciesAndReasons(t *testing.T) {
	api, url := apitest.Start(t)
	for _, name := range []string{"team-a", "team-b"} {
		api.Put("namespaces", name)
	}
	cfg, _ := configuration(t, url)
	cfg.Authorizer = config.Authorizer{Mode: config.AuthorizerPolicy, Policies: []string{`user.username == "joe"`, `request.namespace in user.groups`, `user.claims.level > 3`}}
	q := Question{User: "jane", Groups: []string{"team-a"}, Path: "/stream?pods=/api/v1/pods"}
	got := explained(t, cfg, q)
	for _, want := range []string{
		"watch of pods in cluster default: permitted in part: namespaces team-a\n", "  but authorizer.policies[0] does not permit it\n",
		"  but authorizer.policies[1] depends on the namespace or the name\n", "  but authorizer.policies[2] fails: ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %q", got, want)
		}
	}
	q.Claims = map[string]any{"level": 4}
	if got := explained(t, cfg, q); got != "watch of pods in cluster default: permitted\n  by authorizer.policies[2]\n" {
		t.Error(got)
	}

	cfg, _ = configuration(t, url)
	api.Allow = func(spec authorizationv1.SubjectAccessReviewSpec) bool {
		return spec.ResourceAttributes != nil && spec.ResourceAttributes.Namespace == "team-b"
	}
	if got := explained(t, cfg, q); !strings.HasPrefix(got, "watch of pods in cluster default: permitted in part: namespaces team-b\n  by ") {
		t.Error(got)
	}
	q.Path = "/api/v1/namespaces/team-a/pods/p/log"
	if got := explained(t, cfg, q); got != "get of pods/log p in namespace team-a in cluster default: nothing permits it\n" {
		t.Error(got)
	}
}

// Names of bindings may have any character: who makes one in their own namespace does not speak to the operator with it.
func TestExplainPrintsNoControlCharacters(t *testing.T) {
	api, url := apitest.Start(t)
	api.Put("clusterroles", "jobs", apitest.Set("rules", []rbacv1.PolicyRule{{Verbs: []string{"list", "watch"}, APIGroups: []string{"batch"}, Resources: []string{"jobs"}}}))
	api.Put("rolebindings", "evil/x\n  by ClusterRoleBinding admins\x1b[2J", apitest.Set("roleRef", rbacv1.RoleRef{Kind: "ClusterRole", Name: "jobs"}), apitest.Set("subjects", []rbacv1.Subject{{Kind: "User", Name: "jane"}}))
	cfg, _ := configuration(t, url)
	cfg.Authorizer.Mode = config.AuthorizerRBAC
	text := explained(t, cfg, Question{User: "jane", Path: "/history/apis/batch/v1/namespaces/evil/jobs"})
	if strings.Contains(text, "\x1b") || strings.Count(text, "\n") != 2 || !strings.Contains(text, `RoleBinding evil/x\n  by`) {
		t.Errorf("%q", text)
	}
}
