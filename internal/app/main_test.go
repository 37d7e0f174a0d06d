package app

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/devtoken"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds each wait of the tests.
const patience = time.Minute

// gateway is a running gateway.
type gateway struct {
	t          *testing.T
	addr, ops  string
	token      string
	log        *lockedBuffer
	drain, end context.CancelFunc
	result     chan error
}

// configuration returns what a gateway needs to run on a cluster, with an issuer whose tokens are signed here, and
// one such token.
func configuration(t *testing.T, clusterURL string) (cfg config.Config, token string) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	token, err := devtoken.Sign(devtoken.Token{KeyFile: key, User: "jane", Issuer: "https://test", Audience: "kubecast", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	cfg = config.Default()
	cfg.Listen, cfg.OpsListen = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Clusters[0].Kubeconfig = apitest.Kubeconfig(t, clusterURL)
	cfg.Auth.JWT = []config.JWT{{Issuer: "https://test", Audiences: []string{"kubecast"}, PublicKeyFile: key + ".pub", Claims: config.DefaultClaims()}}
	cfg.Authorizer.Mode = config.AuthorizerSAR // the fake API server answers as the test says
	cfg.Drain = config.Duration(2 * time.Second)
	cfg.History.StateDir = t.TempDir()
	return cfg, token
}

// start runs a gateway until the test ends. At the end, it must stop by itself when it is told to.
func start(t *testing.T, cfg config.Config, token string) *gateway {
	t.Helper()
	return startWith(t, Options{Config: cfg}, token)
}

func startWith(t *testing.T, opts Options, token string) *gateway {
	t.Helper()
	g := &gateway{t: t, token: token, log: &lockedBuffer{changed: make(chan struct{}, 1)}, result: make(chan error, 1)}
	ctx, end := context.WithCancel(context.Background())
	drainContext, drain := context.WithCancel(ctx)
	g.drain, g.end = drain, end
	go func() {
		opts.Version, opts.Log, opts.Drain = "test", slog.New(slog.NewTextHandler(g.log, nil)), drainContext
		g.result <- Run(ctx, opts)
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

// until polls a condition that sends no notification when it changes.
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

// readUntil reads an event stream up to a line with a text, and returns all that it read.
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

// lockedBuffer is a log whose lines a test can wait for.
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
