package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/e2e/controlplane"
	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/e2e/process"
	"github.com/kubecast/kubecast/internal/devtoken"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m, "alerts", 20)) }

// stage is a control plane with the gateway's program and a key for tokens.
type stage struct {
	program, key string
	cluster      *controlplane.ControlPlane
}

// theStage is made by the first test that needs it, and ends after the last one.
var theStage = sync.OnceValues(func() (*stage, error) {
	s := &stage{program: filepath.Join(harness.Dir(), "gateway"), key: filepath.Join(harness.Dir(), "key.pem")}
	var group errgroup.Group
	group.Go(func() error {
		if out, err := exec.Command("go", "build", "-C", "../../..", "-o", s.program, "./cmd/gateway").CombinedOutput(); err != nil {
			return fmt.Errorf("building the gateway: %w\n%s", err, out)
		}
		return nil
	})
	group.Go(func() (err error) {
		s.cluster, err = controlplane.Start(context.Background(), controlplane.Options{Program: "../../../bin/devcluster", Dir: filepath.Join(harness.Dir(), "cluster"), Nodes: 1})
		if err == nil {
			harness.AtEnd(s.cluster.Stop)
		}
		return err
	})
	err := group.Wait()
	if err == nil {
		_, err = s.token("nobody") // makes the key
	}
	return s, err
})

func onStage(t *testing.T) *stage {
	t.Helper()
	s, err := theStage()
	if errors.Is(err, controlplane.ErrMissing) {
		harness.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stage) token(user string, groups ...string) (string, error) {
	return devtoken.Sign(devtoken.Token{KeyFile: s.key, User: user, Groups: groups, Issuer: "https://kubecast.local", Audience: "kubecast", TTL: time.Hour})
}

// viewer is the token of a user who may see the whole cluster.
func (s *stage) viewer(t *testing.T, user string) string { return s.user(t, user, "platform") }

func (s *stage) user(t *testing.T, user string, groups ...string) string {
	t.Helper()
	token, err := s.token(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// options are how a gateway differs from the usual one.
type options struct {
	kubeconfig string // empty: the cluster-admin's
	auth       string // keys of the configuration's section auth, indented
	config     string // keys of the configuration beyond auth and history
	history    string // its section history; empty: a file
	env        []string
	files      int // how many files it may have open; 0: as many as this process
}

// gateway is a gateway that keeps its addresses when it is started again.
type gateway struct {
	t           *testing.T
	dir         string // of its own
	config      string // its file
	listen, ops string
	run         process.Options
	process     *process.Process
	logs        string // of those that have ended
}

var listening = regexp.MustCompile(`msg=listening `)

// gateway is one that is not started yet, and ends with the test.
func (s *stage) gateway(t *testing.T, opts options) *gateway {
	t.Helper()
	g := &gateway{t: t, dir: t.TempDir(), listen: harness.Address(t), ops: harness.Address(t)}
	g.config = filepath.Join(g.dir, "gateway.yaml")
	if opts.kubeconfig == "" {
		opts.kubeconfig = s.cluster.Kubeconfig()
	}
	if opts.history == "" {
		opts.history = fmt.Sprintf("{stateDir: %q}", g.dir)
	}
	g.write(fmt.Sprintf("auth:\n  jwt:\n  - {issuer: \"https://kubecast.local\", audiences: [kubecast], publicKeyFile: %q, trusted: same}\n%shistory: %s\n%s",
		s.key+".pub", opts.auth, opts.history, opts.config))
	g.run = process.Options{Path: s.program, Env: opts.env,
		Args: []string{"serve", "--config", g.config, "--kubeconfig", opts.kubeconfig, "--listen", g.listen, "--ops-listen", g.ops}}
	if opts.files > 0 {
		g.run.Args = append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, opts.files), g.run.Path}, g.run.Args...)
		g.run.Path = "sh"
	}
	t.Cleanup(func() {
		if g.process == nil {
			return
		}
		g.process.Signal(syscall.SIGTERM)
		g.process.Signal(syscall.SIGCONT)
		g.process.Terminate(5 * time.Second)
		if t.Failed() {
			t.Logf("the end of the gateway's log:\n%s", harness.Tail(g.logs+g.process.Stderr.String(), 30))
		}
	})
	return g
}

// write replaces the configuration file.
func (g *gateway) write(text string) {
	g.t.Helper()
	if err := os.WriteFile(g.config, []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// read is what the configuration file says.
func (g *gateway) read() string {
	g.t.Helper()
	text, err := os.ReadFile(g.config)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(text)
}

// start starts it, and waits until it listens.
func (g *gateway) start() *gateway {
	g.t.Helper()
	p, err := process.Start(g.run)
	if err != nil {
		g.t.Fatal(err)
	}
	g.process = p
	ctx, cancel := context.WithTimeout(g.t.Context(), 90*time.Second)
	defer cancel()
	if _, err := p.Stderr.WaitFor(ctx, listening); err != nil {
		g.t.Fatal(err)
	}
	return g
}

// ready waits until it says that it is ready.
func (g *gateway) ready() *gateway {
	g.t.Helper()
	harness.Eventually(g.t, "the gateway is ready", 90*time.Second, func() error {
		code, body, err := g.get("http://"+g.ops, "", "/readyz")
		if err != nil || code != http.StatusOK {
			return fmt.Errorf("%d %s, %w", code, body, err)
		}
		return nil
	})
	return g
}

// kill ends it as a crash does.
func (g *gateway) kill() {
	g.process.Kill()
	g.logs += g.process.Stderr.String() + "--- killed ---\n"
}

// restart ends it in good order, and starts it again.
func (g *gateway) restart() *gateway {
	g.t.Helper()
	g.process.Signal(syscall.SIGTERM)
	g.process.Terminate(20 * time.Second)
	g.logs += g.process.Stderr.String() + "--- restarted ---\n"
	return g.start()
}

// get asks for something that is answered at once.
func (g *gateway) get(at, token, path string) (code int, body string, err error) {
	ctx, cancel := context.WithTimeout(g.t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at+path, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// mustGet asks until the answer is as it has to be.
func (g *gateway) mustGet(token, path string, want int) {
	g.t.Helper()
	harness.Eventually(g.t, fmt.Sprintf("%s is answered with %d", path, want), patience, func() error {
		code, body, err := g.get("http://"+g.listen, token, path)
		if err != nil || code != want {
			return fmt.Errorf("%d %s, %w", code, body, err)
		}
		return nil
	})
}

// often does something so many times a second, without waiting for its end, until it is told to stop.
func often(t *testing.T, aSecond int, do func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(aSecond))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				running.Go(func() { do(ctx) })
			}
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return stop
}
