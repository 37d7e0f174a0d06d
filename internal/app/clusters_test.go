package app

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/config"
)

// file is a configuration file that a test writes.
type file struct {
	mu  sync.Mutex
	cfg config.Config
	err error
}

func (f *file) write(change func(*config.Config)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cfg.Clusters = slices.Clone(f.cfg.Clusters)
	f.err = nil
	change(&f.cfg)
}

func (f *file) spoil(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = errors.New(text)
}

func (f *file) read() (config.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cfg, f.err
}

// startOn starts a gateway that follows a configuration file.
func startOn(t *testing.T, cfg config.Config, token string) (*gateway, *file) {
	t.Helper()
	f := &file{cfg: cfg}
	g := startWith(t, Options{Config: cfg, Reload: f.read, Poll: 20 * time.Millisecond}, token)
	return g, f
}

// clusters returns the states that /clusters reports, the default cluster with a star.
func (g *gateway) clusters() string {
	g.t.Helper()
	code, body := g.get(g.addr, "/clusters")
	var answer struct {
		Clusters []struct {
			Name    string
			Default bool
			State   string
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || code != 200 {
		g.t.Fatalf("/clusters: %d %s", code, body)
	}
	var all []string
	for _, c := range answer.Clusters {
		star := ""
		if c.Default {
			star = "*"
		}
		all = append(all, c.Name+star+":"+c.State)
	}
	return strings.Join(all, " ")
}

func (g *gateway) untilClusters(want string) {
	g.t.Helper()
	g.until("/clusters tells "+want, func() bool { return g.clusters() == want })
}

// Clusters come and go with the configuration file. The streams of one that goes are told so; the others do not
// notice.
func TestClustersComeAndGoWithTheFile(t *testing.T) {
	for _, mode := range []string{config.AuthorizerSAR, config.AuthorizerRBAC} {
		t.Run(mode, func(t *testing.T) {
			first, firstURL := apitest.Start(t)
			second, secondURL := apitest.Start(t)
			first.Put("pods", "team-a/here")
			second.Put("pods", "team-a/there")
			for _, api := range []*apitest.API{first, second} {
				api.Put("clusterroles", "reader", `rules:=[{"verbs":["get","list","watch"],"apiGroups":["*"],"resources":["*"]},{"verbs":["get"],"nonResourceURLs":["*"]}]`)
				api.Put("clusterrolebindings", "readers", `roleRef:={"kind":"ClusterRole","name":"reader"}`, `subjects:=[{"kind":"User","name":"jane"}]`)
			}
			cfg, token := configuration(t, firstURL)
			cfg.Authorizer.Mode = mode
			g, f := startOn(t, cfg, token)
			g.untilClusters("default*:live")
			stay := bufio.NewReader(g.open(g.addr, "/api/v1/pods", "text/event-stream").Body)
			readUntil(t, stay, "event: synced")

			for range 2 {
				if code, _ := g.get(g.addr, "/clusters/other/api/v1/pods"); code != 404 {
					t.Errorf("before it is there: %d", code)
				}
				f.write(func(c *config.Config) {
					c.Clusters = append(c.Clusters, config.Cluster{Name: "other", Kubeconfig: apitest.Kubeconfig(t, secondURL)})
				})
				g.untilClusters("default*:live other:live")
				if code, body := g.get(g.addr, "/clusters/other/api/v1/pods"); code != 200 || !strings.Contains(body, `"name":"there"`) {
					t.Errorf("%d %s", code, body)
				}
				if code, body := g.get(g.ops, "/metrics"); code != 200 || !strings.Contains(body, `kubecast_cache_objects{cluster="other",kind="pods"} 1`) {
					t.Errorf("%d, no metrics of it", code)
				}
				stream := bufio.NewReader(g.open(g.addr, "/clusters/other/api/v1/pods", "text/event-stream").Body)
				readUntil(t, stream, "event: synced")
				f.write(func(c *config.Config) { c.Clusters = c.Clusters[:1] })
				g.untilClusters("default*:live")
				readUntil(t, stream, `data: {"reason":"gone"}`)
				if code, _ := g.get(g.addr, "/clusters/other/api/v1/pods"); code != 404 {
					t.Errorf("after it was removed: %d", code)
				}
				done := make(chan struct{})
				time.AfterFunc(patience, func() { close(done) })
				if !second.AwaitWatches("pods", 0, done) {
					t.Error("it is still watched")
				}
			}
			first.Put("pods", "team-a/after")
			readUntil(t, stay, `"name":"after"`)

			// Another cluster becomes the default.
			f.write(func(c *config.Config) {
				c.Clusters = append([]config.Cluster{{Name: "other", Kubeconfig: apitest.Kubeconfig(t, secondURL)}}, c.Clusters...)
			})
			g.untilClusters("other*:live default:live")
			if code, body := g.get(g.addr, "/api/v1/pods"); code != 200 || !strings.Contains(body, `"name":"there"`) {
				t.Errorf("%d %s", code, body)
			}
		})
	}
}

// A file that cannot be used changes nothing, and is logged once. So are changes that need a restart.
func TestUnusableFileChangesNothing(t *testing.T) {
	_, url := apitest.Start(t)
	cfg, token := configuration(t, url)
	g, f := startOn(t, cfg, token)
	g.untilClusters("default*:live")
	for _, spoil := range []func(){
		func() { f.spoil("gateway.yaml:7: clusters[0].nmae: unknown key") },
		func() {
			f.write(func(c *config.Config) {
				c.Clusters = append(c.Clusters, config.Cluster{Name: "odd", Kubeconfig: "/none/kubeconfig"})
			})
		},
	} {
		before := strings.Count(g.log.String(), "configuration cannot be used")
		spoil()
		g.until("it is told", func() bool { return strings.Count(g.log.String(), "configuration cannot be used") > before })
		time.Sleep(100 * time.Millisecond) // a few more looks at it
		if n := strings.Count(g.log.String(), "configuration cannot be used"); n != before+1 || g.clusters() != "default*:live" {
			t.Errorf("told %d times, %s", n-before, g.clusters())
		}
		f.write(func(c *config.Config) { c.Clusters = cfg.Clusters })
		g.until("all is well", func() bool { return strings.Count(g.log.String(), "configuration can be used again") > before })
	}
	for _, part := range []string{"clusters[0].nmae", "cluster odd", "/none/kubeconfig"} {
		if !strings.Contains(g.log.String(), part) {
			t.Errorf("the log does not say %q", part)
		}
	}
	f.write(func(c *config.Config) { c.Listen, c.Ring.Events = "127.0.0.1:1", 7 })
	g.until("it says what needs a restart", func() bool { return strings.Contains(g.log.String(), "keys=listen,ring") })
}

// guarded starts an API server that accepts one token.
func guarded(t *testing.T, api http.Handler) (url string, expect func(token string)) {
	t.Helper()
	var token atomic.Value
	token.Store("")
	// TLS, since client-go sends no credentials over plain HTTP.
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token.Load().(string) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL, func(now string) { token.Store(now) }
}

func writeKubeconfig(t *testing.T, name, url, token string) {
	t.Helper()
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: %q, insecure-skip-tls-verify: true}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
users: [{name: test, user: {token: %q}}]
`, url, token)
	if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// New credentials in a kubeconfig are used at once, and no stream ends. A new address makes it another cluster.
func TestKubeconfigIsReadAgain(t *testing.T) {
	api := apitest.New(apitest.Usual...)
	t.Cleanup(api.Close)
	url, expect := guarded(t, api)
	api.Put("pods", "team-a/web")
	cfg, token := configuration(t, url)
	cfg.Clusters[0].Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	expect("one")
	writeKubeconfig(t, cfg.Clusters[0].Kubeconfig, url, "one")
	g, _ := startOn(t, cfg, token)
	g.untilClusters("default*:live")
	stream := bufio.NewReader(g.open(g.addr, "/api/v1/pods", "text/event-stream").Body)
	readUntil(t, stream, "event: synced")

	expect("two")
	api.CutWatches("pods")
	readUntil(t, stream, "event: stale")
	if err := os.WriteFile(cfg.Clusters[0].Kubeconfig, []byte("half of a kubec"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.until("it says that it is broken", func() bool { return strings.Contains(g.log.String(), "cannot be used: the cluster stays as it is") })
	writeKubeconfig(t, cfg.Clusters[0].Kubeconfig, url, "two")
	readUntil(t, stream, "event: live")
	api.Put("pods", "team-a/new")
	readUntil(t, stream, `"name":"new"`)

	elsewhere, elsewhereURL := apitest.Start(t)
	elsewhere.Put("pods", "team-a/elsewhere")
	writeKubeconfig(t, cfg.Clusters[0].Kubeconfig, elsewhereURL, "two")
	readUntil(t, stream, `data: {"reason":"gone"}`)
	g.untilClusters("default*:live")
	g.until("the other one is served", func() bool {
		code, body := g.get(g.addr, "/api/v1/pods")
		return code == 200 && strings.Contains(body, `"name":"elsewhere"`)
	})
}

// blackHole starts an API server that never answers.
func blackHole(t *testing.T) (url string, asked func() int64) {
	t.Helper()
	var n atomic.Int64
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n.Add(1)
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	t.Cleanup(func() {
		close(ended)
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL, n.Load
}

// A cluster that does not answer delays neither readiness nor the users of other clusters. Once it is known to be
// away, its own users do not wait either.
func TestClusterThatIsAwayHoldsNobodyUp(t *testing.T) {
	for _, mode := range []string{config.AuthorizerSAR, config.AuthorizerRBAC} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			api, url := apitest.Start(t)
			api.Put("pods", "team-a/web")
			api.Put("clusterroles", "reader", `rules:=[{"verbs":["get","list","watch"],"apiGroups":["*"],"resources":["*"]},{"verbs":["get"],"nonResourceURLs":["*"]}]`)
			api.Put("clusterrolebindings", "readers", `roleRef:={"kind":"ClusterRole","name":"reader"}`, `subjects:=[{"kind":"User","name":"jane"}]`)
			hole, asked := blackHole(t)
			cfg, token := configuration(t, url)
			cfg.Authorizer.Mode = mode
			cfg.Clusters = append(cfg.Clusters, config.Cluster{Name: "away", Kubeconfig: apitest.Kubeconfig(t, hole)})
			g, _ := startOn(t, cfg, token)
			// A request to the other cluster does not wait until this one is known to be away.
			g.until("the other one serves", func() bool { code, _ := g.get(g.addr, "/api/v1/pods"); return code == 200 })
			g.until("it is ready", func() bool {
				code, body := g.get(g.ops, "/readyz")
				return code == 200 && strings.Contains(body, "away: cluster away: ")
			})
			g.untilClusters("default*:live away:stale")
			stay := bufio.NewReader(g.open(g.addr, "/api/v1/pods", "text/event-stream").Body)
			readUntil(t, stay, "event: synced")

			before := asked()
			const questions = 100
			for range questions {
				if code, body := g.get(g.addr, "/clusters/away/api/v1/pods"); code != 503 {
					t.Fatalf("%d %s", code, body)
				}
			}
			if n := asked() - before; n > questions/2 {
				t.Errorf("%d questions made %d of the cluster", questions, n)
			}
			stream := bufio.NewReader(g.open(g.addr, "/clusters/away/api/v1/pods", "text/event-stream").Body)
			readUntil(t, stream, `data: {"reason":"unavailable"}`)
			api.Put("pods", "team-a/new")
			readUntil(t, stay, `"name":"new"`)
		})
	}
}

// One cluster under two names is watched, shown and recorded twice.
func TestOneClusterUnderTwoNamesIsAWarning(t *testing.T) {
	_, url := apitest.Start(t)
	cfg, token := configuration(t, url)
	other := apitest.Kubeconfig(t, strings.Replace(url, "127.0.0.1", "localhost", 1))
	cfg.Clusters = append(cfg.Clusters, config.Cluster{Name: "again", Kubeconfig: other})
	g := start(t, cfg, token)
	const warning = "one cluster is configured under two names"
	g.until("it is told", func() bool { return strings.Contains(g.log.String(), warning) })
	if n := strings.Count(g.log.String(), warning); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}
