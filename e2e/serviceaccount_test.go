package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A ServiceAccount signs in with a token that its cluster made for the gateway. It sees what the roles of its name
// and of its groups allow, and nothing once it is deleted.
func TestServiceAccountsComeWithTheirTokens(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	ctx := context.Background()
	s.namespaces(t, "robots", "robots-other")
	g := s.startGateway(t, gatewayOptions{auth: "  serviceAccounts: {audiences: [kubecast]}\n"})
	g.waitReady(t)
	for namespace, subject := range map[string]rbacv1.Subject{
		"robots":       {Kind: rbacv1.ServiceAccountKind, Name: "bot"},
		"robots-other": {APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:robots"},
	} {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bot"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "team-viewer"},
			Subjects:   []rbacv1.Subject{subject},
		}
		if _, err := s.kube.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.kubectl(t, "", "create", "serviceaccount", "bot", "-n", "robots")
	token := func(more ...string) string {
		return strings.TrimSpace(s.kubectl(t, "", append([]string{"create", "token", "bot", "-n", "robots"}, more...)...))
	}
	good := token("--audience", "kubecast")
	eventually(t, "the ServiceAccount is let in", func() error {
		for _, namespace := range []string{"robots", "robots-other"} {
			if a := g.get(t, good, "/api/v1/namespaces/"+namespace+"/pods"); a.code != http.StatusOK {
				return fmt.Errorf("%d %s", a.code, a.body)
			}
		}
		return nil
	})
	openAs(t, g, good, "/api/v1/namespaces/robots/pods", nil).find(t, "synced")
	if a := g.get(t, good, "/api/v1/pods?countBy=metadata.namespace"); a.code != http.StatusOK || !strings.Contains(a.body, `"counts":[]`) {
		t.Errorf("all pods that he may see: %d %s", a.code, a.body)
	}
	if a := g.get(t, good, "/api/v1/nodes"); a.code != http.StatusForbidden {
		t.Errorf("nodes: %d %s", a.code, a.body)
	}
	for name, bad := range map[string]string{"for the API server": token(), "for another": token("--audience", "other")} {
		if a := g.get(t, bad, "/api/v1/namespaces/robots/pods"); a.code != http.StatusUnauthorized {
			t.Errorf("a token %s: %d %s", name, a.code, a.body)
		}
	}
	s.kubectl(t, "", "delete", "serviceaccount", "bot", "-n", "robots")
	eventually(t, "the ServiceAccount's token counts no more", func() error {
		if a := g.get(t, good, "/api/v1/namespaces/robots/pods"); a.code != http.StatusUnauthorized {
			return fmt.Errorf("%d", a.code)
		}
		return nil
	})
	if strings.Contains(g.log(), strings.Split(good, ".")[1]) {
		t.Error("a token is in the log")
	}
}
