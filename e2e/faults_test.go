package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/e2e/harness"
)

// hurt lets clients follow a churn during a fault of the control plane, and checks what they were told.
type hurt struct {
	stage     *stage
	gateway   *gateway
	churn     *churn
	followers map[string]*follower
	before    map[string][]told // what happened well before the fault, by follower
	after     map[string]*witness
	finish    func()
}

func (s *stage) beginHurt(t *testing.T, name string) *hurt {
	t.Helper()
	s.namespaces(t, name+"-a", name+"-b")
	h := &hurt{stage: s, gateway: s.startGateway(t, gatewayOptions{}), followers: map[string]*follower{},
		before: map[string][]told{}, after: map[string]*witness{}}
	h.gateway.waitReady(t)
	h.churn = &churn{namespaces: []string{name + "-a", name + "-b"}, test: name, random: seed(t), forgiving: true}
	witnesses := map[string]*witness{}
	for name, scope := range h.churn.scopes() {
		witnesses[name] = s.watchDirectly(t, scope)
		h.followers[name] = follow(t, &follower{
			name: name, token: s.viewer(t), path: scope.path(), watches: single(),
			address: always(h.gateway.url), connect: rawly, relists: true,
		})
	}
	for _, f := range h.followers {
		f.waitSynced(t)
	}
	h.finish = s.startChurn(t, h.churn)
	h.followers["all namespaces"].waitEvents(t, 40)
	for name, w := range witnesses {
		var err error
		if h.before[name], err = w.sequence(); err != nil {
			t.Fatal(err)
		}
	}
	// Later events show that the gateway had all of that before the fault.
	h.followers["all namespaces"].waitEvents(t, 20)
	return h
}

// fault does faults, and checks that the gateway stays ready in the meantime: it can still serve what it has.
func (h *hurt) fault(t *testing.T, names ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			if code, body := h.gateway.readyz(); code != http.StatusOK {
				t.Errorf("the gateway is not ready: %d %s", code, body)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	h.do(t, names...)
	h.recover(t)
	cancel()
	watching.Wait()
}

func (h *hurt) do(t *testing.T, faults ...string) {
	t.Helper()
	for _, name := range faults {
		if err := h.stage.cluster.Fault(context.Background(), name); err != nil {
			t.Error(err)
		}
	}
}

// recover waits until the followers are told that the fault is over, and begins to watch what happens from then on.
func (h *hurt) recover(t *testing.T) {
	t.Helper()
	for name, f := range h.followers {
		// A watch that was lost is proved to be back by its next bookmark at the latest, which comes within a minute.
		harness.Eventually(t, name+" is told stale and live", time.Minute+eventuallyWithin, func() error { return f.look("", (*view).live) })
	}
	for name, scope := range h.churn.scopes() {
		h.after[name] = h.stage.watchDirectly(t, scope)
	}
	h.followers["all namespaces"].waitEvents(t, 40)
}

// live returns nil if the watch was lost and is back: each stale is followed by a live.
func (v *view) live() error {
	for i, event := range v.freshness {
		if want := []string{"stale", "live"}[i%2]; event != want {
			return fmt.Errorf("the freshness was told as %q", v.freshness)
		}
	}
	if len(v.freshness) == 0 || len(v.freshness)%2 != 0 {
		return fmt.Errorf("the freshness was told as %q", v.freshness)
	}
	return nil
}

// check ends the churn, and checks what the followers have. Changes while the gateway's watch was away may have been
// told as a difference. Of what happened well before and after that, each change must have been told. A fault may
// interrupt the watch once more after it was live again: then the gateway has listed again.
func (h *hurt) check(t *testing.T) {
	t.Helper()
	h.finish()
	for name, scope := range h.churn.scopes() {
		f := h.followers[name]
		h.churn.waitTold(t, f, "", scope)
		h.after[name].waitFor(t, f, "")
		after, err := h.after[name].sequence()
		if err != nil {
			t.Fatal(err)
		}
		relists := h.gateway.relists(t, podsKind.Resource)
		err = f.look("", func(v *view) error {
			return errors.Join(v.live(), v.lost(h.before[name], none), v.lost(after, relists.contain),
				v.invented(after, h.after[name].from, relists.contain))
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if connections := f.connectionCount(); connections != 1 {
			t.Errorf("%s had to connect %d times", name, connections)
		}
	}
}

// The API server is restarted in good order, and later killed and started after a while. Clients are told that what
// they see is stale, and then live again, and they lose nothing.
func TestAPIServerRestartIsToldAndLosesNothing(t *testing.T) {
	t.Parallel()
	h := onFaultStage(t).beginHurt(t, "restart")
	h.fault(t, "apiserver-restart")
	h.check(t)
}

func TestAPIServerAwayIsToldAndLosesNothing(t *testing.T) {
	t.Parallel()
	h := onFaultStage(t).beginHurt(t, "away")
	h.fault(t, "apiserver-kill", "apiserver-start")
	h.check(t)
}

// After a compaction the API server has no history, so the gateway lists again and tells the difference.
func TestRelistAfterCompactionLosesNothing(t *testing.T) {
	t.Parallel()
	h := onFaultStage(t).beginHurt(t, "compact")
	for tries := 0; tries < 5 && len(h.gateway.relists(t, podsKind.Resource)) == 0; tries++ {
		h.compact(t)
	}
	h.check(t)
	if len(h.gateway.relists(t, podsKind.Resource)) == 0 {
		t.Error("the gateway did not list again")
	}
}

// compact compacts the history while the gateway is stopped. A running gateway might have seen the newest version,
// and not need any history. The kernel may still hold events for the stopped gateway, so it may not have to list
// again even then.
func (h *hurt) compact(t *testing.T) {
	t.Helper()
	h.gateway.process.Signal(syscall.SIGSTOP)
	defer h.gateway.process.Signal(syscall.SIGCONT)
	h.do(t, "etcd-compact")
	w := h.stage.watchDirectly(t, h.churn.scopes()["all namespaces"])
	eventually(t, "the churn goes on", func() error {
		if seen, err := w.sequence(); len(seen) < 20 {
			return errors.Join(fmt.Errorf("%d changes", len(seen)), err)
		}
		return nil
	})
	h.gateway.process.Signal(syscall.SIGCONT)
	h.recover(t)
}

// While the API server is away, new streams are accepted by known permissions, or told to come again, but never
// refused. If the API server itself decides (mode sar), nothing is known. If its roles and bindings were read (mode
// rbac), lists go on.
func TestStreamsBegunWhileTheClusterIsAwayComeAgain(t *testing.T) {
	t.Parallel()
	s := onFaultStage(t)
	g := s.startGateway(t, gatewayOptions{config: "authorizer: {mode: sar}\n"})
	g.waitReady(t)
	knowing := s.startGateway(t, gatewayOptions{})
	knowing.waitReady(t)
	if err := s.cluster.Fault(context.Background(), "apiserver-kill"); err != nil {
		t.Fatal(err)
	}
	began := sync.OnceValue(func() error { return s.cluster.Fault(context.Background(), "apiserver-start") })
	t.Cleanup(func() { _ = began() })
	f := follow(t, &follower{
		name: "late", token: s.viewer(t), path: "/api/v1/pods", watches: single(), address: always(g.url), connect: rawly, relists: true,
	})
	eventually(t, "the stream is told that it cannot be served", func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !slices.Contains(f.goodbyes, "unavailable") {
			return errors.Join(errors.New("no goodbye"), f.failure)
		}
		return nil
	})
	if a := g.get(t, s.viewer(t), "/api/v1/pods"); a.code != http.StatusServiceUnavailable || !strings.Contains(a.body, `"kind":"Status"`) {
		t.Errorf("a list is answered with %d %s", a.code, a.body)
	}
	if a := knowing.get(t, s.viewer(t), "/api/v1/pods"); a.code != http.StatusOK {
		t.Errorf("a list of what is known, by whom is known: %d %s", a.code, a.body)
	}
	if err := began(); err != nil {
		t.Fatal(err)
	}
	f.waitSynced(t)
	s.waitEqual(t, f, "", scope{kind: podsKind})
}

// A cluster that was restored to an older state has another history. Clients are told so, and begin anew.
func TestRestoredClusterResetsItsClients(t *testing.T) {
	t.Parallel()
	s := onFaultStage(t)
	g := s.startGateway(t, gatewayOptions{})
	g.waitReady(t)
	scope := scope{kind: podsKind, labelSelector: "test=restore"}
	f := follow(t, &follower{
		name: "restored", token: s.viewer(t), path: scope.path(), watches: single(), address: always(g.url), connect: byLibrary, relists: true,
	})
	f.waitSynced(t)
	make := func(name string) {
		s.namespaces(t, name)
		if _, err := s.kube.CoreV1().Pods(name).Create(context.Background(), pod(name, "one", map[string]string{"test": "restore"}), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	make("restore-before")
	s.waitEqual(t, f, "", scope)
	if err := s.cluster.Fault(context.Background(), "etcd-restore"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the client is told of the other history", func() error {
		return f.look("", func(v *view) error {
			if !slices.Contains(v.resets, "epoch") {
				return fmt.Errorf("resets: %q", v.resets)
			}
			return nil
		})
	})
	make("restore-after")
	s.waitEqual(t, f, "", scope)
	err := f.look("", func(v *view) error {
		if _, ok := v.objects["restore-after/one"]; !ok || len(v.objects) != 1 {
			return fmt.Errorf("%d pods are there", len(v.objects))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
