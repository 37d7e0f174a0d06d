package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// What roles allow of kinds that are in no namespace, and of Namespaces, is what the API server
// lets the same user read.
func TestRightsOutsideOfNamespacesAreTheAPIServers(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "rights-one", "rights-two")
	read := []string{"get", "list", "watch"}
	rule := func(verbs []string, group, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}
	}
	volumes := rule(read, "", "persistentvolumes")
	roles := map[string]struct {
		rules []rbacv1.PolicyRule
		whole bool // bound in the whole cluster, else in rights-one
	}{
		"rights-list":       {rules: []rbacv1.PolicyRule{rule([]string{"list", "watch"}, "", "namespaces")}},
		"rights-get":        {rules: []rbacv1.PolicyRule{rule([]string{"get"}, "", "namespaces")}},
		"rights-other":      {rules: []rbacv1.PolicyRule{rule(read, "", "namespaces", "rights-two")}},
		"rights-named":      {rules: []rbacv1.PolicyRule{rule([]string{"get"}, "", "namespaces", "rights-one")}},
		"rights-star":       {rules: []rbacv1.PolicyRule{rule([]string{"list"}, "*", "*")}},
		"rights-status":     {rules: []rbacv1.PolicyRule{rule(read, "", "namespaces/status"), rule(read, "", "nodes/status"), rule(read, "", "*/status")}},
		"rights-nodes":      {rules: []rbacv1.PolicyRule{rule(read, "", "nodes"), volumes, rule(read, "storage.k8s.io", "storageclasses")}},
		"rights-nodes-all":  {rules: []rbacv1.PolicyRule{rule(read, "", "nodes"), volumes, rule([]string{"get"}, "", "namespaces")}, whole: true},
		"rights-list-all":   {rules: []rbacv1.PolicyRule{rule([]string{"list"}, "", "namespaces"), rule([]string{"list"}, "", "nodes")}, whole: true},
		"rights-named-all":  {rules: []rbacv1.PolicyRule{rule([]string{"get"}, "", "namespaces", "rights-two"), rule([]string{"get"}, "", "nodes", "absent")}, whole: true},
		"rights-nothing":    {},
		"rights-pods-alone": {rules: []rbacv1.PolicyRule{rule(read, "", "pods")}},
	}
	for user, r := range roles {
		s.grant(t, user, r.rules, r.whole)
	}
	config, err := s.cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := s.kube.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{
		"/api/v1/namespaces", "/api/v1/namespaces/rights-one", "/api/v1/namespaces/rights-two", "/api/v1/namespaces/absent", "/api/v1/nodes",
		"/api/v1/nodes/" + nodes.Items[0].Name, "/api/v1/nodes/absent", "/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1/storageclasses",
		"/api/v1/namespaces/rights-one/nodes", "/api/v1/namespaces/rights-one/namespaces",
	}
	for _, mode := range []string{"rbac", "sar"} {
		t.Run(mode, func(t *testing.T) {
			g := s.sharedGateway(t)
			if mode == "sar" {
				g = s.startGateway(t, gatewayOptions{config: "authorizer: {mode: sar, cacheDeny: 0s}\n"})
				g.waitReady(t)
			}
			for user := range roles {
				token, err := s.token(user, "nobody")
				if err != nil {
					t.Fatal(err)
				}
				as := rest.CopyConfig(config)
				as.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"nobody", "system:authenticated"}}
				client, err := rest.HTTPClientFor(as)
				if err != nil {
					t.Fatal(err)
				}
				for _, path := range paths {
					eventually(t, fmt.Sprintf("%s of %s is answered as by the API server", path, user), func() error {
						want := ask(t, client, config.Host+path, http.Header{}).code
						got := g.asker(token)(t, path, asJSON)
						if got.code != want {
							return fmt.Errorf("%d, at the API server %d: %s", got.code, want, got.body)
						}
						return nil
					})
				}
			}
			// What the gateway adds: a list is narrowed to what its caller may list and get.
			s.grant(t, "rights-both", []rbacv1.PolicyRule{rule(read, "", "namespaces")}, false)
			token, err := s.token("rights-both", "nobody")
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "who may get and list their own Namespace is shown it", func() error {
				if a := g.asker(token)(t, "/api/v1/namespaces?fields=metadata.name", asJSON); strings.Count(a.body, `"name":`) != 1 || !strings.Contains(a.body, "rights-one") {
					return fmt.Errorf("%d %s", a.code, a.body)
				}
				return nil
			})
		})
	}
}

// grant binds a user to rules, in the whole cluster or in the namespace rights-one. What is there already is left.
func (s *stage) grant(t *testing.T, user string, rules []rbacv1.PolicyRule, whole bool) {
	t.Helper()
	ctx, meta := context.Background(), metav1.ObjectMeta{Name: user}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}
	rbac := s.kube.RbacV1()
	_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	if err == nil && whole {
		_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	} else if err == nil {
		_, err = rbac.RoleBindings("rights-one").Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	}
	if err != nil && !strings.Contains(err.Error(), "already exists") {
		t.Fatal(err)
	}
}
