package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/e2e/faultproxy"
	"github.com/kubecast/kubecast/e2e/harness"
)

// The model is simple, whatever happens to clients, gateways and the control plane. Each change that the test's own
// watch saw is told to each client whose filter it concerns, or is covered by a reset, or by a list of the client's
// gateway. In the end each client's map is the cluster's state behind its filter. On the way, no connection tells
// anything twice or claims a position that it has not reached; the followers check that. While there are no faults,
// each change is told within a second.
//
// Clients ask for fields, patches, or conflated modifications, and some may see only a part. They come over plain
// HTTP, and over TLS with HTTP/2, to either of two gateways. One gateway reaches the API server through a proxy that
// makes chosen requests fail. The permissions of further clients change.
//
// All random choices come from a seed. $KUBECAST_SOAK says how long the test lasts, as in `make soak`; the clock of one
// gateway jumps then. Without it, the test is a short sample.
func TestRandomFaultsLeaveEveryClientRight(t *testing.T) {
	t.Parallel()
	runModel(t, func(m *model, secure gatewayOptions) {
		proxied := gatewayOptions{listen: harness.Address(t), kubeconfig: m.proxy.Kubeconfig(t, m.stage.cluster)}
		m.gateways = []*gateway{m.stage.startGateway(t, proxied), m.stage.startGateway(t, secure)}
	})
}

// The same holds of clients that go from one edge to another, while their two cores are killed, drain, stand still and cannot be
// reached, too. The first edge reaches the first core through another such proxy, and that core reaches the API server through the
// one of before.
func TestRandomFaultsWithEdgesBetweenLeaveEveryClientRight(t *testing.T) {
	t.Parallel()
	runModel(t, func(m *model, secure gatewayOptions) {
		s, admin := m.stage, m.stage.admin(t)
		for i := range 2 {
			opts := overTLS(t)
			opts.config = "drain: 1s\ngateways: [" + strings.ToLower(t.Name()) + "]\n"
			if i == 0 {
				opts.kubeconfig = m.proxy.Kubeconfig(t, s.cluster)
			}
			m.cores = append(m.cores, s.startGateway(t, opts))
		}
		for _, core := range m.cores {
			core.waitReady(t)
			mustKnow(t, admin, "/api/v1/nodes", core)
		}
		m.toCore = faultproxy.Before(t, m.cores[0].url, m.cores[0].client.Transport)
		proxied := &gateway{url: m.toCore.URL, caFile: m.toCore.CAFile(t)}
		m.gateways = []*gateway{
			s.edgeOf(t, admin, gatewayOptions{listen: harness.Address(t)}, proxied, m.cores[1]),
			s.edgeOf(t, admin, secure, m.cores...),
		}
	})
}

// runModel lets random faults happen to what is built, and checks all clients.
func runModel(t *testing.T, build func(m *model, secure gatewayOptions)) {
	t.Helper()
	lasting, clients := 15*time.Second, 20
	secure := overTLS(t)
	if text := os.Getenv("KUBECAST_SOAK"); text != "" {
		var err error
		if lasting, err = time.ParseDuration(text); err != nil {
			t.Fatal("KUBECAST_SOAK: ", err)
		}
		clients = 50
		if secure.program, err = jumpingProgram(); err != nil {
			t.Fatal(err)
		}
	}
	s := onFaultStage(t)
	s.namespaces(t, "model-a", "model-b", "model-c")
	for _, namespace := range narrowed {
		s.allowTeam(t, namespace)
	}
	random := seed(t)
	m := &model{
		stage:  s,
		random: random,
		proxy:  faultproxy.Start(t, s.cluster),
		churn: &churn{namespaces: []string{"model-a", "model-b", "model-c"}, test: "model", forgiving: true,
			random: rand.New(rand.NewPCG(random.Uint64(), 2))},
		void: map[string]int{},
	}
	build(m, secure)
	for _, g := range m.gateways {
		g.waitReady(t)
		m.urls = append(m.urls, g.url)
	}
	t.Log("gateways for clients: ", m.urls)
	for i := range 5 { // since what one user asks for waits for what else that user asks for
		token, err := s.token(fmt.Sprintf("%s-%d", strings.ToLower(t.Name()), i), "platform")
		if err != nil {
			t.Fatal(err)
		}
		m.viewers = append(m.viewers, token)
	}
	for i := range clients {
		m.follow(t, i)
	}
	for _, w := range m.watched {
		w.waitSynced(t)
	}
	m.roamers = m.startRoamers(t)
	m.beginChronicle(t)
	finish := s.startChurn(t, m.churn)
	until := time.Now().Add(lasting)
	for n := 1; time.Now().Before(until); n++ {
		if n%4 == 1 {
			m.beQuiet(t)
		}
		m.hurt(t)
		time.Sleep(time.Duration(500+m.random.IntN(2000)) * time.Millisecond) // the churn goes on meanwhile
		if n%3 == 0 {
			m.beCalm(t)
		}
	}
	finish()
	for _, w := range m.watched {
		m.churn.waitTold(t, w.follower, w.name, w.scope)
	}
	m.check(t)
	t.Logf("of %d changes that concerned watches, %d were told, the others covered by a reset or a list", m.concerned, m.told)
	if m.told == 0 {
		t.Error("nothing was told")
	}
}

// watched is one watch of a client, with its name on the stream and its filter.
type watched struct {
	*follower
	name  string
	scope scope
}

func (w watched) look(at func(*view) error) error { return w.follower.look(w.name, at) }

func (w watched) String() string { return w.follower.name + " " + w.name }

type model struct {
	stage    *stage
	random   *rand.Rand
	proxy    *faultproxy.Proxy // between the API server and the first gateway, or the first core
	gateways []*gateway
	cores    []*gateway        // of the gateways, which are edges then; none: they are not
	toCore   *faultproxy.Proxy // between the first core and the first edge
	urls     []string          // of the gateways, which keep them when they are started again
	viewers  []string          // tokens
	churn    *churn
	watched  []watched
	roamers  *roamers

	chronicle       *chronicle
	checked         uint64         // the version up to which check has compared
	restores        int            // so far
	vanished, marks int            // likewise
	calms           []calm         // since the last check
	quiets, touches int            // so far
	void            map[string]int // by address: how many of a gateway's relists are of a history that was undone
	concerned, told int
}

// follow adds a client with random filters, which is cut off at random moments and comes back to either gateway. One
// client in four has two watches.
func (m *model) follow(t *testing.T, i int) {
	t.Helper()
	random := rand.New(rand.NewPCG(m.random.Uint64(), 3))
	f := &follower{
		token: m.viewers[i%len(m.viewers)], watches: single(), connect: rawlyBy(m.clientFor), relists: true, lean: true,
		address: func(int) string { return m.urls[random.IntN(len(m.urls))] },
	}
	if i%3 > 0 { // the others stay until they are cut off from outside
		f.lasts = cutter(random)
	}
	var only []string
	if i%4 == 0 {
		only, f.token = narrowed, m.stage.narrowedToken(t)
	}
	one, other := m.randomScope(random, only), m.randomScope(random, only)
	if random.IntN(4) > 0 {
		f.path = one.path()
		m.watched = append(m.watched, watched{f, "", one})
	} else {
		f.watches, f.path = several("one", "other"), "/stream"+query("one", one.path(), "other", other.path())
		m.watched = append(m.watched, watched{f, "one", one}, watched{f, "other", other})
	}
	f.conflated = map[string]bool{"": one.conflate > 0, "one": one.conflate > 0, "other": other.conflate > 0}
	f.name = fmt.Sprintf("client %d (%s)", i, f.path)
	follow(t, f)
}

// narrowed are the only namespaces that some of the clients may see.
var narrowed = []string{"model-a", "model-b"}

func (s *stage) narrowedToken(t *testing.T) string {
	t.Helper()
	token, err := s.token(strings.ToLower(t.Name())+"-narrowed", narrowed...)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// clientFor returns the HTTP client that trusts the gateway of an address.
func (m *model) clientFor(url string) *http.Client {
	for i, gateway := range m.urls {
		if strings.HasPrefix(url, gateway) {
			return m.gateways[i].client
		}
	}
	return http.DefaultClient
}

func (m *model) randomScope(random *rand.Rand, only []string) scope {
	scope := scope{kind: podsKind, labelSelector: "test=model", only: only}
	namespaces := m.churn.namespaces
	if only != nil {
		namespaces = only
	}
	if random.IntN(2) == 0 {
		scope.namespace = namespaces[random.IntN(len(namespaces))]
	}
	scope.fields = []string{"", "", "status.phase,metadata.labels", "metadata.labels,status"}[random.IntN(4)]
	scope.deltas = random.IntN(2) == 0
	scope.conflate = []time.Duration{0, 0, 50 * time.Millisecond, 400 * time.Millisecond}[random.IntN(4)]
	scope.labelSelector += []string{"", ",app=a", ",app in (a,c)", ",app!=b"}[random.IntN(4)]
	scope.fieldSelector = []string{"", "", "status.phase=" + string(corev1.PodRunning), "status.phase!=" + string(corev1.PodPending)}[random.IntN(4)]
	return scope
}

// hurt does one random fault of the gateways or the control plane.
func (m *model) hurt(t *testing.T) {
	t.Helper()
	if m.random.IntN(3) == 0 {
		m.roamers.roam(t)
	}
	if len(m.cores) > 0 && m.random.IntN(2) == 0 {
		m.hurtCore(t)
		return
	}
	g := m.gateways[m.random.IntN(len(m.gateways))]
	switch n := m.random.IntN(18); {
	case n < 4:
		t.Log("a gateway is killed")
		g.kill()
		g.restart(t)
	case n < 5:
		t.Log("both gateways are killed")
		m.restartGateways(t)
	case n < 6:
		t.Log("a gateway stands still")
		g.process.Signal(syscall.SIGSTOP)
		time.Sleep(time.Duration(m.random.IntN(2000)) * time.Millisecond)
		g.process.Signal(syscall.SIGCONT)
	case n < 8:
		t.Log("the API server is killed")
		m.fault(t, "apiserver-kill", "apiserver-start")
	case n < 9:
		t.Log("the API server is restarted in good order")
		m.fault(t, "apiserver-restart")
	case n < 11:
		t.Log("history is compacted")
		m.fault(t, "etcd-compact")
	case n < 14:
		m.failRequests(t, m.proxy)
	case n < 17 || len(m.cores) > 0: // which of several gateways in line know of a restore is another test's matter
		m.vanish(t)
	default:
		m.restore(t)
	}
}

// hurtCore does one random fault of a core, or of the way to it.
func (m *model) hurtCore(t *testing.T) {
	t.Helper()
	core := m.cores[m.random.IntN(len(m.cores))]
	switch m.random.IntN(5) {
	case 0:
		t.Log("a core is killed")
		core.kill()
		core.restart(t)
	case 1:
		t.Log("a core drains")
		core.process.Signal(syscall.SIGTERM)
		core.process.Terminate(20 * time.Second)
		core.logs = append(core.logs, core.process.Stderr.String())
		core.restart(t)
	case 2:
		t.Log("a core stands still")
		core.process.Signal(syscall.SIGSTOP)
		time.Sleep(time.Duration(m.random.IntN(2000)) * time.Millisecond)
		core.process.Signal(syscall.SIGCONT)
	case 3:
		t.Log("both cores are killed")
		for _, core := range m.cores {
			core.kill()
		}
		for _, core := range m.cores {
			core.restart(t)
		}
	default:
		m.failRequests(t, m.toCore)
	}
}

// failRequests makes some requests that go through a proxy fail for a time.
func (m *model) failRequests(t *testing.T, proxy *faultproxy.Proxy) {
	t.Helper()
	what := []struct{ verb, path string }{
		{"", "/apis/rbac.authorization.k8s.io/"}, {"watch", "/api/v1/pods"}, {"list", "/api/v1/pods"}, {"", "/"},
	}[m.random.IntN(4)]
	how := []faultproxy.Failing{500, 429, faultproxy.Hangs, faultproxy.IsCut, faultproxy.IsHeld}[m.random.IntN(5)]
	lasting := time.Duration(m.random.IntN(3000)) * time.Millisecond
	t.Logf("requests fail for %v: %s %s: %d", lasting, what.verb, what.path, how)
	path := what.path
	if proxy == m.toCore {
		path = "/clusters/default" + path
	}
	_, mend := proxy.Fail(t, what.verb, path, how)
	time.Sleep(lasting)
	mend()
}

// vanish deletes some pods in one revision.
func (m *model) vanish(t *testing.T) {
	t.Helper()
	t.Log("pods vanish together")
	m.vanished++
	for i := range 6 {
		namespace := m.churn.namespaces[i%len(m.churn.namespaces)]
		p := pod(namespace, fmt.Sprintf("vanish-%d-%d", m.vanished, i), map[string]string{"test": m.churn.test, "app": "a"})
		if _, err := m.stage.kube.CoreV1().Pods(namespace).Create(context.Background(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	m.fault(t, "pods-vanish")
	if m.random.IntN(2) == 0 { // cut off clients that may have been told a part of them
		m.restartGateways(t)
	}
}

// beCalm lets the churn go on without faults. First it waits until both gateways are back, which wait between their
// attempts to watch again, and until all clients have been told what happened before.
func (m *model) beCalm(t *testing.T) {
	t.Helper()
	m.marks++
	mark := fmt.Sprintf("zz-calm-%d", m.marks)
	m.churn.mark(t, mark)
	m.waitHave(t, mark)
	m.check(t)
	m.calms = append(m.calms, keepCalm(1500*time.Millisecond))
	m.check(t)
}

func (m *model) fault(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := m.stage.cluster.Fault(context.Background(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func (m *model) restartGateways(t *testing.T) {
	t.Helper()
	for _, g := range m.gateways {
		g.kill()
	}
	for _, g := range m.gateways {
		g.restart(t)
	}
}

// restore makes versions go back. A gateway that saw nothing of what is undone, or that is started later, cannot know
// (docs/decisions.md). So both gateways have seen it, and both have told all clients before anything else happens.
func (m *model) restore(t *testing.T) {
	t.Helper()
	t.Log("the cluster is restored")
	m.restores++
	before, after := fmt.Sprintf("zz-before-%d", m.restores), fmt.Sprintf("zz-after-%d", m.restores)
	m.fault(t, "etcd-compact")
	m.churn.mark(t, before)
	m.waitHave(t, before)
	m.check(t)
	m.chronicle.stop()
	m.fault(t, "etcd-restore")
	m.churn.mark(t, after)
	m.waitHave(t, after)
	for _, w := range m.watched {
		m.churn.waitMark(t, w.follower, w.name, w.scope, after)
	}
	m.roamers.waitTold(t, m.churn.namespaces[0]+"/"+after)
	// Each gateway has an epoch of its own now. With the same epoch again, clients are told more than resets.
	m.restartGateways(t)
	for _, g := range m.gateways {
		m.void[g.url] = len(g.relists(t, podsKind.Resource))
	}
	m.beginChronicle(t)
}

// waitHave waits until both gateways have the pods of a mark.
func (m *model) waitHave(t *testing.T, mark string) {
	t.Helper()
	for _, g := range m.gateways {
		for _, namespace := range m.churn.namespaces {
			path := "/api/v1/namespaces/" + namespace + "/pods/" + mark
			eventually(t, "a gateway has "+path, func() error {
				a, err := fetchBy(g.client, http.MethodGet, g.url+path, bearer(m.stage.viewer(t)))
				if err == nil && a.code != http.StatusOK {
					err = fmt.Errorf("%d %s", a.code, a.body)
				}
				return err
			})
		}
	}
}

// beginChronicle begins to record what should be told, and forgets what was told before.
func (m *model) beginChronicle(t *testing.T) {
	t.Helper()
	for _, w := range m.watched {
		err := w.look(func(v *view) error {
			v.told, v.covered = nil, nil
			v.walks = []walk{{v.walks[len(v.walks)-1].address, interval{v.position, v.position}}}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	m.chronicle = m.stage.beginChronicle(t, m.churn.test)
	m.checked = m.chronicle.from
}

// check waits until each client has been told of all that has happened so far, or has it covered, and then forgets
// that.
func (m *model) check(t *testing.T) {
	t.Helper()
	happened := m.chronicle.untilNow(t)
	if len(happened.changes) == 0 {
		return
	}
	newest := happened.changes[len(happened.changes)-1].version
	relists := m.relists(t)
	for _, w := range m.watched {
		should := happened.told(t, w.scope)
		eventually(t, w.String()+" has been told what happened", func() error {
			err := w.look(func(v *view) error {
				if w.scope.conflate > 0 {
					return v.lost(v.superseded(should), func(version uint64) bool { return v.relisted(version, relists) })
				}
				return v.lost(should, func(version uint64) bool { return v.relisted(version, relists) })
			})
			if err != nil {
				relists = m.relists(t)
			}
			return err
		})
	}
	relists = m.relists(t)
	for _, w := range m.watched {
		should := happened.told(t, w.scope)
		err := w.look(func(v *view) error {
			late := slices.Clone(v.told)
			late = slices.DeleteFunc(late, func(e told) bool { return e.version > newest || happened.gaps.contain(e.version) })
			if err := (&view{told: late}).invented(should, m.checked, func(version uint64) bool {
				return slices.ContainsFunc(m.urls, func(url string) bool { return relists[url].contain(version) })
			}); err != nil {
				return err
			}
			for _, c := range m.calms {
				if err := v.late(should, c, w.scope.conflate); err != nil {
					return err
				}
			}
			has := map[occurrence]bool{}
			for _, e := range v.told {
				has[e.occurrence] = true
			}
			for _, e := range should {
				m.concerned++
				if has[e.occurrence] {
					m.told++
				}
			}
			v.forget(newest)
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", w, err)
		}
	}
	m.chronicle.forget(happened)
	m.checked, m.calms = newest, nil
}

// relists returns the relists of both gateways in the present history, by address. What a core did not see, its edges did not either.
func (m *model) relists(t *testing.T) map[string]stretches {
	t.Helper()
	found := map[string]stretches{}
	for _, g := range m.gateways {
		found[g.url] = g.relists(t, podsKind.Resource)[m.void[g.url]:]
		for _, core := range m.cores {
			found[g.url] = append(found[g.url], core.relists(t, podsKind.Resource)...)
		}
	}
	return found
}

// relisted reports whether the client went past a version while it was connected to a gateway that had passed it by a
// relist.
func (v *view) relisted(version uint64, relists map[string]stretches) bool {
	return slices.ContainsFunc(v.walks, func(w walk) bool { return w.contains(version) && relists[w.address].contain(version) })
}

// forget forgets what was told up to a version.
func (v *view) forget(version uint64) {
	v.told = slices.DeleteFunc(v.told, func(e told) bool { return e.version <= version })
	v.covered = slices.DeleteFunc(v.covered, func(i interval) bool { return i.to <= version })
	v.walks = slices.Concat(slices.DeleteFunc(v.walks[:len(v.walks)-1:len(v.walks)-1], func(w walk) bool { return w.to <= version }),
		v.walks[len(v.walks)-1:])
}
