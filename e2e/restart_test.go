package e2e

import (
	"testing"
	"time"

	"github.com/kubecast/kubecast/e2e/harness"
)

// A gateway that is killed and comes back loses nothing: a client that resumes is told each change, or a reset and
// the state that includes it.
func TestKillNineLosesNothing(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "kill-a", "kill-b")
	g := s.startGateway(t, gatewayOptions{listen: harness.Address(t)})
	g.waitReady(t)

	c := &churn{namespaces: []string{"kill-a", "kill-b"}, test: "kill", random: seed(t)}
	token := s.viewer(t)
	followers, witnesses := map[string]*follower{}, map[string]*witness{}
	for name, scope := range c.scopes() {
		connect := rawly
		if name != "everything" {
			connect = byLibrary
		}
		witnesses[name] = s.watchDirectly(t, scope)
		followers[name] = follow(t, &follower{
			name: name, token: token, path: scope.path(), watches: single(), address: always(g.url), connect: connect,
		})
	}
	for _, f := range followers {
		f.waitSynced(t)
	}
	finish := s.startChurn(t, c)
	for range 2 {
		followers["all namespaces"].waitEvents(t, 50)
		g.kill()
		time.Sleep(300 * time.Millisecond) // changes that no gateway sees
		g.restart(t)
	}
	finish()
	for name, scope := range c.scopes() {
		f := followers[name]
		c.waitTold(t, f, "", scope)
		checkNothingLost(t, f, "", witnesses[name])
		if connections := f.connectionCount(); connections < 3 {
			t.Errorf("%s connected only %d times", name, connections)
		}
		// The API server knows what happened while there was no gateway, so no client needs a snapshot.
		if resets := f.resets(t, ""); len(resets) > 0 {
			t.Errorf("%s was reset: %q", name, resets)
		}
	}
}
