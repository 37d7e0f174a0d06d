package http

import (
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/auth"
)

// A backend that signs in as itself and names its user in Impersonate-User must not be shown what the backend itself
// may see.
func TestImpersonationIsRefusedAndNotPassedOver(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "a/web", "spec.image=ONLY-ALICE")
		g.access.permit("alice", auth.Scope{All: true})
		for _, header := range []string{
			"Impersonate-User: nobody", "impersonate-user: nobody", "Impersonate-Group: team", "Impersonate-Uid: 1", "Impersonate-Extra-scopes: a", "Impersonate-Extra-acme.com%2Fproject: a",
		} {
			for path, accept := range map[string]string{
				"/api/v1/namespaces/a/pods":            "application/json",
				"/api/v1/namespaces/a/pods/web":        "application/json",
				"/api/v1/namespaces/a/pods?limit=1":    "application/json;as=Table;g=meta.k8s.io;v=v1",
				"/api/v1/namespaces/a/pods?watch=true": "application/json",
				"/clusters/default/api/v1/pods":        eventStream,
				"/stream?a=/api/v1/pods":               eventStream,
				"/apis":                                "application/json",
				"/version":                             "application/json",
				"/clusters":                            "application/json",
				"/auth/me":                             "application/json",
			} {
				if a := g.get(path, header, "Accept: "+accept); a.code != 400 || !strings.Contains(a.body, "impersonates nobody") || strings.Contains(a.body, "ONLY-ALICE") {
					t.Errorf("%s with %s: %d %s", path, header, a.code, a.body)
				}
			}
			for _, path := range []string{"/auth/session", "/auth/ticket", "/auth/logout"} {
				if a := g.request("POST", path, header); a.code != 400 {
					t.Errorf("%s with %s: %d %s", path, header, a.code, a.body)
				}
			}
		}
		if n := g.access.questions(); n != 0 {
			t.Errorf("%d permissions were asked for", n)
		}
	})
}
