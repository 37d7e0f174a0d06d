package faults

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/e2e/process"
	"github.com/kubecast/kubecast/internal/certtest"
)

// killed kills the only gateway, again and again.
func killed(t *testing.T, s *stage) *server {
	g := s.gateway(t, options{}).start().ready()
	p := scrapeGateways(t, g)
	p.sees("kubecast_ready == 1")
	p.isSilent("KubecastRestarts", "KubecastAbsent")
	for end := time.Now().Add(firesWithin); len(p.firing("KubecastRestarts")) == 0 && time.Now().Before(end); { // three times within 30 s, however long each takes
		before := p.sees("process_start_time_seconds")
		g.kill()
		g.start()
		p.sees(fmt.Sprintf("process_start_time_seconds > %.2f", before))
	}
	p.fires("KubecastRestarts", g.ops)
	g.kill()
	p.fires("KubecastAbsent", "No gateway is scraped")
	g.start()
	p.ends("KubecastAbsent")
	return p
}

// refused starts one of two replicas again and again, which ends each time before it listens; the other goes on.
func refused(t *testing.T, s *stage) *server {
	old, changed := s.gateway(t, options{}).start().ready(), s.gateway(t, options{}).start().ready()
	p := scrapeGateways(t, old, changed)
	p.sees("sum(kubecast_ready) == 2")
	p.isSilent("KubecastReplicaDown", "KubecastRestarts")
	changed.kill()
	good := changed.read()
	changed.write(good + "nonsense: 1\n")
	loops := eachOf(t, 1, func(<-chan struct{}) {
		crashed, err := process.Start(changed.run)
		if err != nil {
			t.Error(err)
			return
		}
		<-crashed.Done()
		time.Sleep(time.Second)
	})
	p.fires("KubecastReplicaDown", changed.ops)
	loops()
	p.isSilent("KubecastRestarts", "KubecastAbsent")
	changed.write(good)
	changed.start()
	p.ends("KubecastReplicaDown")
	return p
}

// memory gives a gateway less than it needs for itself, and less than what it keeps may become.
func memory(t *testing.T, s *stage) *server {
	s.largeMaps(t, 50)
	g := s.gateway(t, options{env: []string{"GOMEMLIMIT=24MiB"}}).start()
	g.mustGet(s.viewer(t, "memory"), "/api/v1/configmaps?limit=1", http.StatusOK) // from now on it keeps them
	p := scrapeGateways(t, g)
	p.fires("KubecastMemoryFull", g.ops)
	p.fires("KubecastMemorySmall", g.ops)
	g.run.Env = []string{"GOMEMLIMIT=1GiB"}
	g.restart()
	p.ends("KubecastMemoryFull")
	p.ends("KubecastMemorySmall")
	return p
}

// largeMaps makes so many ConfigMaps of 100 kB.
func (s *stage) largeMaps(t *testing.T, n int) {
	t.Helper()
	config, err := s.cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		large := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("large-%d", i)}, Data: map[string]string{"pad": strings.Repeat("x", 100_000)}}
		if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// descriptors opens more connections than a limit allows that container runtimes have set.
func descriptors(t *testing.T, s *stage) *server {
	g := s.gateway(t, options{files: 1024}).start().ready()
	p := scrapeGateways(t, g)
	p.sees("process_max_fds == 1024")
	p.isSilent("KubecastDescriptorsShort")
	stop := holdConnections(t, g.listen, 900)
	p.sees("increase(kubecast_connections_refused_total[5s]) > 0")
	p.fires("KubecastDescriptorsShort", g.ops)
	stop()
	p.ends("KubecastDescriptorsShort")
	return p
}

// holdConnections keeps connections open that ask nothing; those that are closed are opened again.
func holdConnections(t *testing.T, address string, n int) (stop func()) {
	t.Helper()
	return eachOf(t, n, func(ended <-chan struct{}) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			return
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = conn.Read(make([]byte, 1))
		}()
		select {
		case <-ended:
		case <-gone:
			time.Sleep(50 * time.Millisecond) // it is refused, perhaps
		}
		_ = conn.Close()
		<-gone
	})
}

// keys are those of an issuer.
const keys = `{"keys":[{"kty":"OKP","crv":"Ed25519","use":"sig","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`

// configuration changes files that a gateway was given.
func configuration(t *testing.T, s *stage) *server {
	dir := t.TempDir()
	soon := certtest.New(t, "gateway.test")
	certFile, keyFile := soon.Write(t, dir)
	issuer := harness.Address(t)
	g := s.gateway(t, options{
		auth:   fmt.Sprintf("  - {issuer: \"https://away.example.org\", audiences: [kubecast], jwksURL: \"http://%s/keys\", trusted: same}\n", issuer),
		config: fmt.Sprintf("tls: {certFile: %q, keyFile: %q}\n", certFile, keyFile),
	}).start().ready()
	p := scrapeGateways(t, g)
	p.sees("kubecast_ready == 1")
	p.isSilent("KubecastConfigurationNotUsed", "KubecastRestartNeeded")

	p.fires("KubecastCertificateEnds", "within a week")
	certtest.Between(t, "gateway.test", time.Now().Add(-time.Minute), time.Now().Add(30*24*time.Hour)).Write(t, dir)
	p.ends("KubecastCertificateEnds")
	if err := os.WriteFile(keyFile, soon.Key, 0o600); err != nil {
		t.Fatal(err)
	}
	p.fires("KubecastCertificateEnds", "a new one cannot be used")
	certtest.Between(t, "gateway.test", time.Now().Add(-time.Minute), time.Now().Add(30*24*time.Hour)).Write(t, dir)
	p.ends("KubecastCertificateEnds")

	p.fires("KubecastIssuerKeysOld", "https://away.example.org")
	back := listenAt(t, issuer, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(keys))
	})
	defer back()

	good := g.read()
	g.write(good + "nonsense: 1\n")
	p.fires("KubecastConfigurationNotUsed", g.ops)
	g.write(good + "ring: {events: 8192}\n")
	p.ends("KubecastConfigurationNotUsed")
	p.fires("KubecastRestartNeeded", "/debug/config")
	p.ends("KubecastIssuerKeysOld")
	g.restart()
	p.ends("KubecastRestartNeeded")
	return p
}

// listenAt serves at an address where nobody was.
func listenAt(t *testing.T, address string, handle http.HandlerFunc) (stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handle)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	return server.Close
}

// schema is changed by a later release, while this one is away.
func schema(t *testing.T, s *stage) *server {
	g := s.gateway(t, options{}).start()
	p := scrapeGateways(t, g)
	p.sees("kubecast_history_ready == 1")
	p.isSilent("KubecastHistorySchemaRefused")
	g.process.Terminate(20 * time.Second)
	file := filepath.Join(g.dir, "history.db")
	execute(t, "sqlite", file, "UPDATE history_schema SET version = version + 1, readable_from = version + 1, changed_by = 'v9.9.9'")
	g.start()
	p.fires("KubecastHistorySchemaRefused", "another release")
	if _, said, err := g.get("http://"+g.ops, "", "/readyz"); err != nil || !strings.Contains(said, "v9.9.9") {
		t.Errorf("/readyz does not say which release is needed: %s %v", said, err)
	}
	execute(t, "sqlite", file, "UPDATE history_schema SET version = version - 1, readable_from = 15") // as the later release takes it back
	p.ends("KubecastHistorySchemaRefused")
	return p
}
