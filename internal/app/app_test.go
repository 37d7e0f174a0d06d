package app

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"go.uber.org/goleak"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds everything that is waited for.
const patience = 20 * time.Second

// gateway is one that runs.
type gateway struct {
	t          *testing.T
	addr, ops  string
	token      string
	log        *lockedBuffer
	drain, end context.CancelFunc
	result     chan error
}

// configuration is what is needed to run on a cluster, with an issuer whose tokens are signed here.
func configuration(t *testing.T, clusterURL string) (cfg config.Config, token string) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	token, err := SignToken(Token{KeyFile: key, User: "jane", Issuer: "https://test", Audience: "kubecast", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	cfg = config.Default()
	cfg.Listen, cfg.OpsListen = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Clusters[0].Kubeconfig = apitest.Kubeconfig(t, clusterURL)
	cfg.Auth.JWT = []config.JWT{{Issuer: "https://test", Audiences: []string{"kubecast"}, PublicKeyFile: key + ".pub", Claims: config.DefaultClaims()}}
	cfg.Drain = config.Duration(2 * time.Second)
	return cfg, token
}

// start runs a gateway until the test ends; by then it must have ended itself when it was told to.
func start(t *testing.T, cfg config.Config, token string) *gateway {
	t.Helper()
	g := &gateway{t: t, token: token, log: &lockedBuffer{changed: make(chan struct{}, 1)}, result: make(chan error, 1)}
	ctx, end := context.WithCancel(context.Background())
	drainContext, drain := context.WithCancel(ctx)
	g.drain, g.end = drain, end
	go func() {
		g.result <- Run(ctx, Options{Config: cfg, Version: "test", Log: slog.New(slog.NewTextHandler(g.log, nil)), Drain: drainContext})
	}()
	t.Cleanup(func() {
		end()
		if err := g.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	line := g.log.await(t, regexp.MustCompile(`msg=listening addr=(\S+) ops=(\S+)`))
	g.addr, g.ops = line[1], line[2]
	return g
}

// wait waits for the end of Run, and may be called again.
func (g *gateway) wait() error {
	g.t.Helper()
	select {
	case err := <-g.result:
		g.result <- err
		return err
	case <-time.After(patience):
		g.t.Fatal("Run does not return")
		return nil
	}
}

func (g *gateway) open(addr, path, accept string) *http.Response {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	g.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+g.token)
	r.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { response.Body.Close() })
	return response
}

func (g *gateway) get(addr, path string) (code int, body string) {
	g.t.Helper()
	response := g.open(addr, path, "application/json")
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// until polls what tells nobody when it changes.
func (g *gateway) until(what string, is func() bool) {
	g.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			g.t.Fatalf("never: %s; log: %s", what, g.log)
		}
	}
}

// events reads an event stream up to a line, and returns all that it read.
func readUntil(t *testing.T, r *bufio.Reader, part string) string {
	t.Helper()
	var read strings.Builder
	for {
		line, err := r.ReadString('\n')
		read.WriteString(line)
		if strings.Contains(line, part) {
			return read.String()
		}
		if err != nil {
			t.Fatalf("%v before %q: %s", err, part, read.String())
		}
	}
}

func TestRunServesAndDrains(t *testing.T) {
	api, url := apitest.Start(t)
	api.Allow = func(spec authorizationv1.SubjectAccessReviewSpec) bool {
		return spec.User == "jane" && spec.ResourceAttributes.Namespace == "team-a"
	}
	api.Put("pods", "team-a/web")
	cfg, token := configuration(t, url)
	g := start(t, cfg, token)
	g.until("it is ready", func() bool { code, _ := g.get(g.ops, "/readyz"); return code == 200 })
	if code, body := g.get(g.addr, "/api/v1/namespaces/team-a/pods"); code != 200 || !strings.Contains(body, `"name":"web"`) {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := g.get(g.addr, "/api/v1/pods"); code != 403 {
		t.Errorf("all namespaces: %d", code)
	}
	g.token = "forged"
	if code, _ := g.get(g.addr, "/api/v1/namespaces/team-a/pods"); code != 401 {
		t.Errorf("a forged token: %d", code)
	}
	g.token = token
	if code, body := g.get(g.ops, "/metrics"); code != 200 || !strings.Contains(body, `kubecast_cache_objects{cluster="default",kind="pods"} 1`) {
		t.Errorf("%d %s", code, body)
	}
	stream := bufio.NewReader(g.open(g.addr, "/api/v1/namespaces/team-a/pods", "text/event-stream").Body)
	readUntil(t, stream, "event: synced")
	began := time.Now()
	g.drain()
	end := readUntil(t, stream, `data: {"reason":"drain"}`)
	if !strings.Contains(end, "event: bookmark") || !strings.Contains(end, "retry: ") {
		t.Errorf("the end is %s", end)
	}
	if rest, err := io.ReadAll(stream); err != nil || string(rest) != "\n" {
		t.Errorf("the stream does not end at a frame: %q %v", rest, err)
	}
	if err := g.wait(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > cfg.Drain.Std()+time.Second {
		t.Errorf("it took %v", took)
	}
	if conn, err := net.Dial("tcp", g.addr); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
	if log := g.log.String(); !strings.Contains(log, "msg=draining") || strings.Contains(log, token) {
		t.Error(log)
	}
}

// TestEndsThoughAClientTakesNothing: neither draining nor a second signal may wait for who does not read.
func TestEndsThoughAClientTakesNothing(t *testing.T) {
	for name, end := range map[string]func(*gateway){"drain": func(g *gateway) { g.drain() }, "at once": func(g *gateway) { g.end() }} {
		t.Run(name, func(t *testing.T) {
			api, url := apitest.Start(t)
			cfg, token := configuration(t, url)
			cfg.Drain = config.Duration(200 * time.Millisecond)
			cfg.Stream.WriteTimeout = config.Duration(5 * time.Minute)
			g := start(t, cfg, token)
			stalled := bufio.NewReader(g.open(g.addr, "/api/v1/pods", "text/event-stream").Body)
			readUntil(t, stalled, "event: synced")
			witness := bufio.NewReader(g.open(g.addr, "/api/v1/pods", "text/event-stream").Body)
			readUntil(t, witness, "event: synced")
			pad := strings.Repeat("x", 1<<20)
			for range 14 { // more than the kernel's buffers hold
				api.Put("pods", "team-a/big", "spec.pad="+pad)
				readUntil(t, witness, `"name":"big"`)
			}
			began := time.Now()
			end(g)
			if err := g.wait(); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestUnreachableClusterIsNotFatal: it is retried, and what is asked of it is answered with 503 meanwhile.
func TestUnreachableClusterIsNotFatal(t *testing.T) {
	api, url := apitest.Start(t)
	api.Fail(apitest.Everything, 503)
	cfg, token := configuration(t, url)
	cfg.Cache.SyncTimeout = config.Duration(time.Second)
	g := start(t, cfg, token)
	if code, body := g.get(g.ops, "/readyz"); code != 503 || !strings.Contains(body, "waiting: cluster default: pods") {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := g.get(g.ops, "/livez"); code != 200 {
		t.Errorf("%d", code)
	}
	if code, body := g.get(g.addr, "/api/v1/pods"); code != 503 || strings.Contains(body, apitest.SecretDetail) {
		t.Errorf("%d %s", code, body)
	}
	stream := bufio.NewReader(g.open(g.addr, "/api/v1/pods", "text/event-stream").Body)
	readUntil(t, stream, `data: {"reason":"unavailable"}`)
	api.Fail(apitest.Everything, 0)
	g.until("it is ready", func() bool { code, _ := g.get(g.ops, "/readyz"); return code == 200 })
	g.end()
	if err := g.wait(); err != nil {
		t.Error(err)
	}
}

// TestStartUpErrorsNameWhatToChange
func TestStartUpErrorsNameWhatToChange(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	empty := filepath.Join(t.TempDir(), "empty.pub")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*config.Config)
		want   []string
	}{
		"listen":       {func(c *config.Config) { c.Listen = taken.Addr().String() }, []string{"listen: ", "address already in use"}},
		"opsListen":    {func(c *config.Config) { c.OpsListen = taken.Addr().String() }, []string{"opsListen: ", "address already in use"}},
		"kubeconfig":   {func(c *config.Config) { c.Clusters[0].Kubeconfig = "/none/kubeconfig" }, []string{"cluster default", "/none/kubeconfig"}},
		"context":      {func(c *config.Config) { c.Clusters[0].Context = "elsewhere" }, []string{"cluster default", "elsewhere"}},
		"key file":     {func(c *config.Config) { c.Auth.JWT[0].PublicKeyFile = "/none/key.pub" }, []string{"PublicKeyFile", "/none/key.pub"}},
		"empty key":    {func(c *config.Config) { c.Auth.JWT[0].PublicKeyFile = empty }, []string{"PublicKeyFile", "empty.pub"}},
		"index of all": {func(c *config.Config) { c.Cache.Indexes = map[config.Kind][]string{{Resource: "pods"}: {"a..b"}} }, []string{"cache.indexes.pods"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, _ := configuration(t, "http://127.0.0.1:1")
			test.change(&cfg)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			err := Run(ctx, Options{Config: cfg, Log: slog.New(slog.DiscardHandler), Drain: ctx})
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("it runs: %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, without %q", err, want)
				}
			}
		})
	}
	if other, err := net.Listen("tcp", taken.Addr().String()); err == nil {
		other.Close()
		t.Error("the address was given away")
	}
}

func TestNobodyCanSignInIsAWarning(t *testing.T) {
	_, url := apitest.Start(t)
	cfg, _ := configuration(t, url)
	cfg.Auth.JWT = nil
	g := start(t, cfg, "")
	g.until("it is ready", func() bool { code, _ := g.get(g.ops, "/readyz"); return code == 200 })
	if !strings.Contains(g.log.String(), "level=WARN") || !strings.Contains(g.log.String(), "nobody can sign in") {
		t.Error(g.log)
	}
}

// lockedBuffer is a log that can be waited for.
type lockedBuffer struct {
	changed chan struct{}
	mu      sync.Mutex
	buf     bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *lockedBuffer) await(t *testing.T, what *regexp.Regexp) []string {
	t.Helper()
	deadline := time.After(patience)
	for {
		if m := what.FindStringSubmatch(b.String()); m != nil {
			return m
		}
		select {
		case <-b.changed:
		case <-deadline:
			t.Fatalf("never in the log: %v", what)
		}
	}
}
