package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/e2e/harness"
)

// An edge of two cores goes on at the other one when one is killed or drains: its clients are told every version, and
// it lists nothing anew, since both tell of the same history.
func TestAnEdgeGoesOnAtAnotherCore(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "cores-a", "cores-b")
	admin := s.admin(t)
	var cores []*gateway
	for range 2 {
		opts := overTLS(t)
		opts.config = "drain: 1s\ngateways: [" + strings.ToLower(t.Name()) + "]\n"
		cores = append(cores, s.startGateway(t, opts))
	}
	for _, core := range cores {
		core.waitReady(t)
		mustKnow(t, admin, "/api/v1/nodes", core)
	}
	edge := s.edgeOf(t, admin, gatewayOptions{listen: harness.Address(t)}, cores...)
	edge.waitReady(t)
	mustKnow(t, s.viewer(t), "/api/v1/pods", edge)

	c := &churn{namespaces: []string{"cores-a", "cores-b"}, test: "cores", random: seed(t)}
	witnesses, followers := map[string]*witness{}, map[string]*follower{}
	for name, scope := range c.scopes() {
		witnesses[name] = s.watchDirectly(t, scope)
		followers[name] = follow(t, &follower{
			name: name, token: s.viewer(t), path: scope.path(), watches: single(), address: always(edge.url), connect: rawly, relists: true,
		})
	}
	for _, f := range followers {
		f.waitSynced(t)
	}
	finish := s.startChurn(t, c)
	for i, end := range []func(*gateway){
		func(g *gateway) { g.kill() },
		func(g *gateway) { g.kill() },
		func(g *gateway) { g.process.Signal(syscall.SIGTERM); g.process.Terminate(20 * time.Second) },
		func(g *gateway) { g.process.Signal(syscall.SIGTERM); g.process.Terminate(20 * time.Second) },
	} {
		followers["all namespaces"].waitEvents(t, 40)
		core := cores[i%2]
		end(core)
		followers["all namespaces"].waitEvents(t, 40) // by the other one
		core.restart(t)
		core.waitReady(t)
		mustKnow(t, admin, "/api/v1/nodes", core)
	}
	finish()
	if relists := edge.relists(t, podsKind.Resource); len(relists) > 0 {
		t.Errorf("the edge listed anew: %v", relists)
	}
	c.wereToldAll(t, followers, witnesses)
	for name, f := range followers {
		if resets := f.resets(t, ""); len(resets) > 0 {
			t.Errorf("%s was reset: %q", name, resets)
		}
	}
}

// At an edge ServiceAccounts sign in, and the API server decides what they may see: its core asks it on the edge's behalf.
func TestAnEdgeAsksItsCoreWhoCallsAndWhatTheyMaySee(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "edge-robots")
	admin := s.admin(t)
	opts := overTLS(t)
	opts.config = "gateways: [" + strings.ToLower(t.Name()) + "]\n"
	core := s.startGateway(t, opts)
	core.waitReady(t)
	mustKnow(t, admin, "/api/v1/nodes", core)
	edge := s.edgeOf(t, admin, gatewayOptions{auth: "  serviceAccounts: {audiences: [kubecast]}\n", config: "authorizer: {mode: sar}\n"}, core)
	edge.waitReady(t)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "edge-robots", Name: "bot"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "team-viewer"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "bot"}},
	}
	if _, err := s.kube.RbacV1().RoleBindings("edge-robots").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "", "create", "serviceaccount", "bot", "-n", "edge-robots")
	token := func(more ...string) string {
		return strings.TrimSpace(s.kubectl(t, "", append([]string{"create", "token", "bot", "-n", "edge-robots"}, more...)...))
	}
	good := token("--audience", "kubecast")
	eventually(t, "the ServiceAccount is let in", func() error {
		if a := edge.get(t, good, "/api/v1/namespaces/edge-robots/pods"); a.code != http.StatusOK {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		return nil
	})
	if a := edge.get(t, good, "/api/v1/nodes"); a.code != http.StatusForbidden {
		t.Errorf("nodes: %d %s", a.code, a.body)
	}
	if a := edge.get(t, token("--audience", "other"), "/api/v1/namespaces/edge-robots/pods"); a.code != http.StatusUnauthorized {
		t.Errorf("a token for another: %d %s", a.code, a.body)
	}
	if a := core.get(t, good, "/api/v1/namespaces/edge-robots/pods"); a.code != http.StatusUnauthorized {
		t.Errorf("at the core, which takes no such tokens: %d %s", a.code, a.body)
	}
}

// What was revoked in the core's cluster is refused at an edge, which reads the list through its core.
func TestAnEdgeRefusesWhatWasRevoked(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "edge-revoked")
	s.kubectl(t, "", "create", "configmap", "revoked", "-n", "edge-revoked")
	admin := s.admin(t)
	opts := overTLS(t)
	opts.auth = "  revocations: {configMap: edge-revoked/revoked}\n"
	opts.config = "gateways: [" + strings.ToLower(t.Name()) + "]\n"
	core := s.startGateway(t, opts)
	core.waitReady(t)
	mustKnow(t, admin, "/api/v1/nodes", core)
	edge := s.edgeOf(t, admin, gatewayOptions{auth: opts.auth}, core)
	edge.waitReady(t)
	token, err := s.token("jane-at-the-edge", "platform")
	if err != nil {
		t.Fatal(err)
	}
	mustKnow(t, token, "/api/v1/pods", core, edge)
	s.kubectl(t, "", "patch", "configmap", "revoked", "-n", "edge-revoked", "--type", "merge", "-p", `{"data":{"jane-1":"{\"username\":\"jane-at-the-edge\"}"}}`)
	for _, g := range []*gateway{core, edge} {
		eventually(t, "jane is refused", func() error {
			if a := g.get(t, token, "/api/v1/pods"); a.code != http.StatusUnauthorized {
				return fmt.Errorf("%d", a.code)
			}
			return nil
		})
	}
}
