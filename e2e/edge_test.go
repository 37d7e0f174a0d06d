package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

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
		if resets := f.resets(t, ""); len(resets) > 0 {
			t.Errorf("%s was reset: %q", name, resets)
		}
	}
}
