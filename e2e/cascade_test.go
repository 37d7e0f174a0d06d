package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/internal/certtest"
)

// behind runs a gateway whose API server is another gateway, over TLS with HTTP/2. It uses the token as its
// credentials.
func (s *stage) behind(t *testing.T, core *gateway, token string, opts gatewayOptions) *gateway {
	t.Helper()
	caPEM, err := os.ReadFile(core.caFile)
	if err != nil {
		t.Fatal(err)
	}
	opts.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := s.cluster.KubeconfigTo(opts.kubeconfig, core.url, caPEM, token); err != nil {
		t.Fatal(err)
	}
	return s.startGateway(t, opts)
}

// overTLS makes a gateway speak TLS, on an address that it keeps when it is started again.
func overTLS(t *testing.T) gatewayOptions {
	t.Helper()
	certFile, keyFile := certtest.New(t, "gateway.test").Write(t, t.TempDir())
	return gatewayOptions{certFile: certFile, keyFile: keyFile, listen: harness.Address(t)}
}

// A gateway whose API server is another gateway becomes ready, and decides by the roles and bindings that the other
// one serves, also where what it holds would be too much for a user. Its clients lose nothing when either is killed, not even a version that is over when the other one is back.
func TestGatewayBehindAGatewayLosesNothing(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "cascade-a", "cascade-b")
	admin := s.admin(t)
	opts := overTLS(t)
	opts.config = "stream: {perUser: 3, watchesPerUser: 3}\nrequests: {perSecond: 5}\ngateways: [" + strings.ToLower(t.Name()) + "]\n"
	core := s.startGateway(t, opts)
	core.waitReady(t)
	mustKnow(t, admin, "/api/v1/nodes", core)
	middle := s.behind(t, core, admin, overTLS(t))
	edge := s.behind(t, middle, admin, gatewayOptions{listen: harness.Address(t)})
	middle.waitReady(t)
	edge.waitReady(t)
	mustKnow(t, s.viewer(t), "/api/v1/pods", edge)
	if a := edge.get(t, s.stranger(t), "/api/v1/pods"); a.code != 403 {
		t.Errorf("a stranger is answered with %d %s", a.code, a.body)
	}

	c := &churn{namespaces: []string{"cascade-a", "cascade-b"}, test: "cascade", random: seed(t)}
	followers, witnesses := map[string]*follower{}, map[string]*witness{}
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
	for _, g := range []*gateway{core, middle, edge, core} {
		followers["all namespaces"].waitEvents(t, 40)
		g.kill()
		time.Sleep(300 * time.Millisecond) // changes that it does not see
		g.restart(t)
	}
	followers["all namespaces"].waitEvents(t, 40)
	finish()
	for _, g := range []*gateway{middle, edge} {
		if relists := g.relists(t, podsKind.Resource); len(relists) > 0 {
			t.Errorf("%s listed anew: %v", g.url, relists)
		}
	}
	never := func(uint64) bool { return false }
	for name, scope := range c.scopes() {
		f, w := followers[name], witnesses[name]
		c.waitTold(t, f, "", scope)
		w.waitFor(t, f, "")
		seen, err := w.sequence()
		if err != nil {
			t.Fatal(err)
		}
		if err := f.look("", func(v *view) error { return v.lost(seen, never) }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := f.look("", func(v *view) error { return v.invented(seen, w.from, never) }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, reason := range f.resets(t, "") {
			if reason != "expired" { // the reset of a position within a relist
				t.Errorf("%s was reset: %s", name, reason)
			}
		}
	}
}

// stranger is the token of a user who may see nothing.
func (s *stage) stranger(t *testing.T) string {
	t.Helper()
	token, err := s.token("stranger-of-" + t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return token
}
