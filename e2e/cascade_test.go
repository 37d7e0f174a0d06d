package e2e

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/internal/certtest"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
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

// edgeOf runs a gateway that is an edge of others, and makes the token its credentials.
func (s *stage) edgeOf(t *testing.T, token string, opts gatewayOptions, cores ...*gateway) *gateway {
	t.Helper()
	tokenFile, caFile := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "ca.crt")
	var addresses []string
	var trusted []byte
	for _, core := range cores {
		caPEM, err := os.ReadFile(core.caFile)
		if err != nil {
			t.Fatal(err)
		}
		addresses, trusted = append(addresses, core.url), append(trusted, caPEM...)
	}
	if err := errors.Join(os.WriteFile(tokenFile, []byte(token+"\n"), 0o600), os.WriteFile(caFile, trusted, 0o600)); err != nil {
		t.Fatal(err)
	}
	opts.isEdge = true
	opts.config += fmt.Sprintf("edge: {core: [%s], tokenFile: %q, caFile: %q}\n", strings.Join(addresses, ", "), tokenFile, caFile)
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
	edge := s.edgeOf(t, admin, gatewayOptions{listen: harness.Address(t)}, middle)
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
	c.wereToldAll(t, followers, witnesses)
	for name, f := range followers {
		for _, reason := range f.resets(t, "") {
			if reason != "expired" { // the reset of a position within a relist
				t.Errorf("%s was reset: %s", name, reason)
			}
		}
	}
}

// wereToldAll checks that each follower was told what the witness of its scope has seen, and nothing else.
func (c *churn) wereToldAll(t *testing.T, followers map[string]*follower, witnesses map[string]*witness) {
	t.Helper()
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
	}
}

// An edge is a gateway whose API server is another gateway, its core, with the same database of the history. It answers as the core does, to each
// caller by their own rights, also while the core is away; and each transition is recorded once, whichever of them records.
func TestAnEdgeAnswersAsItsCore(t *testing.T) {
	t.Parallel()
	database := dbtest.Postgres()
	if database.Missing() {
		t.Skip("PostgreSQL is not installed")
	}
	if err := database.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(database.Stop)
	address := database.Database(t)
	s := onStage(t)
	s.namespaces(t, "at-the-edge")
	admin := s.admin(t)
	viewer, err := s.token("viewer-at-the-edge", "platform")
	if err != nil {
		t.Fatal(err)
	}
	opts := overTLS(t)
	opts.config = fmt.Sprintf("history: {database: %q}\ngateways: [%s]\n", address, strings.ToLower(t.Name()))
	core := s.startGateway(t, opts)
	core.waitReady(t)
	mustKnow(t, admin, "/api/v1/nodes", core)
	edge := s.edgeOf(t, admin, gatewayOptions{listen: harness.Address(t), config: fmt.Sprintf("history: {database: %q}\n", address)}, core)
	edge.waitReady(t)
	mustKnow(t, viewer, "/api/v1/pods", core, edge)

	const jobs = "/history/apis/batch/v1/namespaces/at-the-edge/jobs"
	run := func(name string) {
		t.Helper()
		if _, err := s.kube.BatchV1().Jobs("at-the-edge").Create(t.Context(), shortJob(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	told := func(g *gateway, name string) error {
		if a := g.get(t, viewer, jobs+"/"+name); a.code != 200 || !strings.Contains(a.body, `"state":"Succeeded"`) {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		return nil
	}
	run("first")
	for _, g := range []*gateway{core, edge} {
		eventually(t, "the job's end is told", func() error { return told(g, "first") })
	}
	alike := func(token string, want int) {
		t.Helper()
		for _, path := range []string{jobs, jobs + "?view=transitions", jobs + "?view=runs", "/api/v1/namespaces/at-the-edge/pods?fields=metadata.uid,status.phase", "/apis/batch/v1/namespaces/at-the-edge/jobs/first"} {
			eventually(t, "the edge answers as the core", func() error {
				at, behind := core.get(t, token, path), edge.get(t, token, path)
				if at.code != want || behind.code != want || at.body != behind.body && want == 200 && !strings.Contains(path, "/pods?") {
					return fmt.Errorf("%s: the core %d %s, the edge %d %s", path, at.code, at.body, behind.code, behind.body)
				}
				return nil
			})
		}
	}
	alike(viewer, 200)
	alike(s.stranger(t), 403)

	core.kill()
	eventually(t, "the job's end is told while the core is away", func() error { return told(edge, "first") })
	eventually(t, "strangers are refused while the core is away", func() error {
		if a := edge.get(t, s.stranger(t), jobs); a.code != 403 {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		return nil
	})
	run("second")
	core.restart(t)
	for _, g := range []*gateway{core, edge} {
		eventually(t, "what happened meanwhile is told", func() error { return told(g, "second") })
	}
	alike(viewer, 200)
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all, once int
	if err := db.QueryRow("SELECT COUNT(*), COUNT(DISTINCT (uid, version, to_state)) FROM transitions WHERE namespace = 'at-the-edge'").Scan(&all, &once); err != nil || all == 0 || all != once {
		t.Errorf("%d transitions, of which %d differ: %v", all, once, err)
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
