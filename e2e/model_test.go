package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The model is simple: whatever is done to clients, gateways and the control plane, in the end each client's map is
// the cluster's state behind its filter; and on the way no connection tells anything twice, or claims a position that
// it has not reached (the followers check that). What is done comes from a seed. $KUBECAST_SOAK makes it last, as
// `make soak` does; without it, it is a sample.
func TestRandomFaultsLeaveEveryClientRight(t *testing.T) {
	t.Parallel()
	lasting, clients := 15*time.Second, 20
	if text := os.Getenv("KUBECAST_SOAK"); text != "" {
		var err error
		if lasting, err = time.ParseDuration(text); err != nil {
			t.Fatal("KUBECAST_SOAK: ", err)
		}
		clients = 50
	}
	s := onFaultStage(t)
	s.namespaces(t, "model-a", "model-b", "model-c")
	random := seed(t)
	m := &model{
		stage:    s,
		random:   random,
		gateways: []*gateway{s.startGateway(t, gatewayOptions{listen: fixedAddress(t)}), s.startGateway(t, gatewayOptions{listen: fixedAddress(t)})},
		churn: &churn{namespaces: []string{"model-a", "model-b", "model-c"}, test: "model", forgiving: true,
			random: rand.New(rand.NewPCG(random.Uint64(), 2))},
	}
	for _, g := range m.gateways {
		g.waitReady(t)
		m.urls = append(m.urls, g.url)
	}
	for i := range clients {
		m.follow(t, i)
	}
	for _, f := range m.followers {
		f.waitSynced(t)
	}
	finish := s.startChurn(t, m.churn)
	for until := time.Now().Add(lasting); time.Now().Before(until); {
		m.hurt(t)
		time.Sleep(time.Duration(500+m.random.IntN(2000)) * time.Millisecond) // the churn goes on meanwhile
	}
	finish()
	for i, f := range m.followers {
		m.churn.waitTold(t, f, "", m.scopes[i])
	}
}

type model struct {
	stage     *stage
	random    *rand.Rand
	gateways  []*gateway
	urls      []string // of the gateways, which keep them when they are started again
	churn     *churn
	followers []*follower
	scopes    []scope
}

// follow adds a client with a random filter, which is cut at random moments and comes back to either gateway.
func (m *model) follow(t *testing.T, i int) {
	t.Helper()
	random := rand.New(rand.NewPCG(m.random.Uint64(), 3))
	scope := scope{kind: podsKind, labelSelector: "test=model"}
	if namespaces := m.churn.namespaces; random.IntN(2) == 0 {
		scope.namespace = namespaces[random.IntN(len(namespaces))]
	}
	scope.labelSelector += []string{"", ",app=a", ",app in (a,c)", ",app!=b"}[random.IntN(4)]
	scope.fieldSelector = []string{"", "", "status.phase=" + string(corev1.PodRunning), "status.phase!=" + string(corev1.PodPending)}[random.IntN(4)]
	f := follow(t, &follower{
		name: fmt.Sprintf("client %d (%s)", i, scope.path()), token: m.stage.viewer(t), path: scope.path(), watches: single(),
		connect: rawly, relists: true, lasts: cutter(random),
		address: func(int) string { return m.urls[random.IntN(len(m.urls))] },
	})
	m.followers, m.scopes = append(m.followers, f), append(m.scopes, scope)
}

// hurt does one random thing to the gateways or the control plane.
func (m *model) hurt(t *testing.T) {
	t.Helper()
	fault := func(names ...string) {
		for _, name := range names {
			if err := m.stage.cluster.Fault(context.Background(), name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	g := m.gateways[m.random.IntN(len(m.gateways))]
	switch n := m.random.IntN(10); {
	case n < 5:
		t.Log("a gateway is killed")
		g.kill()
		g.restart(t)
	case n < 7:
		t.Log("the API server is killed")
		fault("apiserver-kill", "apiserver-start")
	case n < 9:
		t.Log("history is compacted")
		fault("etcd-compact")
	default:
		m.restore(t, fault)
	}
}

// restore lets versions go back. A gateway that is started after that cannot know (docs/decisions.md), so all clients
// are told by the two that were there before the next thing happens.
func (m *model) restore(t *testing.T, fault func(...string)) {
	t.Helper()
	t.Log("the cluster is restored")
	fault("etcd-compact", "etcd-restore")
	for i, f := range m.followers {
		eventually(t, f.name+" has what the restored cluster has", func() error {
			want, err := m.stage.list(m.scopes[i])
			if err != nil {
				return err
			}
			return f.look("", func(v *view) error { return v.mostly(want) })
		})
	}
}

// mostly is nil if the view has about the objects that are wanted, while a churn goes on.
func (v *view) mostly(want map[string]object) error {
	if v.snapshot != nil {
		return fmt.Errorf("a snapshot is under way")
	}
	wrong := 0
	for key, o := range want {
		if v.objects[key].uid != o.uid {
			wrong++
		}
	}
	for key := range v.objects {
		if _, ok := want[key]; !ok {
			wrong++
		}
	}
	if wrong > 3 {
		return fmt.Errorf("%d objects differ", wrong)
	}
	return nil
}
