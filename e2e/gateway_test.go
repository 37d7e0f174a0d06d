package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/e2e/process"
	"github.com/kubecast/kubecast/internal/certtest"
)

// gatewayOptions are how a test's gateway differs from the usual one.
type gatewayOptions struct {
	program    string // empty: the stage's
	kubeconfig string // empty: the stage's own, of the cluster-admin
	isEdge     bool   // config has cores, and there is no kubeconfig
	config     string // keys of the configuration file beyond auth
	auth       string // keys of its section auth beyond jwt, indented
	listen     string // empty: any port

	certFile, keyFile string // empty: plain HTTP
}

// gateway is a gateway that may be killed and started again.
type gateway struct {
	stage   *stage
	program string
	args    []string
	process *process.Process
	url     string       // of the public listener
	caFile  string       // the CA of its certificate; "": it speaks plain HTTP
	client  *http.Client // trusts that CA, and speaks HTTP/2 over TLS
	ops     string       // of the ops listener
	logs    []string
}

var listening = regexp.MustCompile(`msg=listening addr=(\S+) ops=(\S+)`)

// startWithin is how long a start may take: programs with the race detector start slowly on a busy machine.
const startWithin = 90 * time.Second

// startGateway runs a gateway until the test ends. Its log is printed if the test fails. A data race in it fails the
// test.
func (s *stage) startGateway(t *testing.T, opts gatewayOptions) *gateway {
	t.Helper()
	g, err := s.newGateway(t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.end()
		if err := g.races(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", g.log())
		}
	})
	return g
}

// shared is a gateway that many tests use and none makes fail.
type shared struct {
	once    sync.Once
	gateway *gateway
}

// sharedGateway is the shared gateway that speaks plain HTTP.
func (s *stage) sharedGateway(t *testing.T) *gateway {
	t.Helper()
	return s.share(t, &s.plain, "plain", func(string) gatewayOptions { return gatewayOptions{} })
}

// secureGateway is the shared gateway that speaks TLS.
func (s *stage) secureGateway(t *testing.T) *gateway {
	t.Helper()
	return s.share(t, &s.secure, "secure", func(dir string) gatewayOptions {
		certFile, keyFile := certtest.New(t, "gateway.test").Write(t, dir)
		return gatewayOptions{certFile: certFile, keyFile: keyFile}
	})
}

func (s *stage) share(t *testing.T, one *shared, name string, options func(dir string) gatewayOptions) *gateway {
	t.Helper()
	one.once.Do(func() {
		dir := filepath.Join(s.dir, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		opts := options(dir)
		opts.config = "log: {level: debug}\n"
		g, err := s.newGateway(dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		one.gateway = g
		harness.AtEnd(g.end)
	})
	g := one.gateway
	if g == nil {
		t.Fatal("the shared gateway did not start")
	}
	t.Cleanup(func() {
		if err := g.races(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the end of the shared gateway's log:\n%s", harness.Tail(g.log(), 40))
		}
	})
	g.waitReady(t)
	return g
}

func (s *stage) newGateway(dir string, opts gatewayOptions) (*gateway, error) {
	if _, err := s.token("nobody"); err != nil { // makes the key
		return nil, err
	}
	config := filepath.Join(dir, "gateway.yaml")
	text := fmt.Sprintf("auth:\n  jwt:\n  - {issuer: %q, audiences: [kubecast], publicKeyFile: %q, trusted: same}\n%s%s",
		"https://kubecast.local", s.key+".pub", opts.auth, opts.config)
	if !strings.Contains(opts.config, "history:") {
		text += fmt.Sprintf("history: {stateDir: %q}\n", dir)
	}
	if opts.certFile != "" {
		text += fmt.Sprintf("tls: {certFile: %q, keyFile: %q}\n", opts.certFile, opts.keyFile)
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	kubeconfig := opts.kubeconfig
	if kubeconfig == "" {
		kubeconfig = s.cluster.Kubeconfig()
	}
	listen := opts.listen
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	client, err := clientThatTrusts(opts.certFile)
	if err != nil {
		return nil, err
	}
	program := opts.program
	if program == "" {
		program = s.gateway
	}
	g := &gateway{stage: s, program: program, caFile: opts.certFile, client: client, args: []string{"serve", "--config", config, "--listen", listen, "--ops-listen", "127.0.0.1:0"}}
	if !opts.isEdge {
		g.args = append(g.args, "--kubeconfig", kubeconfig)
	}
	return g, g.start()
}

// clientThatTrusts returns a client that trusts one certificate; without one, the default client.
func clientThatTrusts(certFile string) (*http.Client, error) {
	if certFile == "" {
		return http.DefaultClient, nil
	}
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = certtest.Client(certtest.Pair{Cert: cert})
	return &http.Client{Transport: transport}, nil
}

func (g *gateway) start() error {
	p, err := process.Start(process.Options{Path: g.program, Args: g.args})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	match, err := p.Stderr.WaitFor(ctx, listening)
	if err != nil {
		p.Kill()
		return err
	}
	g.process, g.url, g.ops = p, "http://"+match[1], "http://"+match[2]
	if g.caFile != "" {
		g.url = "https://" + match[1]
	}
	return nil
}

// kill ends the gateway as a crash does.
func (g *gateway) kill() {
	g.process.Kill()
	g.logs = append(g.logs, g.process.Stderr.String(), "--- killed ---\n")
}

// restart starts a gateway that was killed, on the same address.
func (g *gateway) restart(t *testing.T) {
	t.Helper()
	if err := g.start(); err != nil {
		t.Fatal(err)
	}
}

// end ends the gateway at once, if it runs, since a second SIGTERM waits for no stream.
func (g *gateway) end() {
	g.process.Signal(syscall.SIGTERM)
	g.process.Terminate(20 * time.Second)
}

// says waits until the log has a text: a line that was written before an answer may be read after it.
func (g *gateway) says(t *testing.T, text string) {
	t.Helper()
	eventually(t, "the log says "+text, func() error {
		if !strings.Contains(g.log(), text) {
			return errors.New("it does not")
		}
		return nil
	})
}

func (g *gateway) log() string { return strings.Join(g.logs, "") + g.process.Stderr.String() }

var listedAgain = regexp.MustCompile(`^"kind was listed again" cluster=\S+ kind=(\S+) after=(\d+) version=(\d+) `)

// relists returns the stretches of a kind's history of which the gateway saw only the difference, according to its
// log.
func (g *gateway) relists(t *testing.T, kind string) (found stretches) {
	t.Helper()
	for _, message := range strings.Split(g.log(), "msg=")[1:] {
		match := listedAgain.FindStringSubmatch(message)
		if match == nil {
			continue
		}
		after, err := strconv.ParseUint(match[2], 10, 64)
		version, err2 := strconv.ParseUint(match[3], 10, 64)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if match[1] == kind {
			found = append(found, interval{after, version})
		}
	}
	return found
}

func (g *gateway) races() error { return harness.Races(g.log()) }

// waitReady waits until the gateway says that it is ready.
func (g *gateway) waitReady(t *testing.T) {
	t.Helper()
	eventually(t, "the gateway is ready", func() error {
		code, body := g.readyz()
		if code != http.StatusOK {
			return fmt.Errorf("readyz: %d %s", code, body)
		}
		return nil
	})
}

// waitRecording waits until Jobs and their pods are recorded as they change: what was there before is recorded as found.
func (g *gateway) waitRecording(t *testing.T) {
	t.Helper()
	eventually(t, "the gateway records", func() error {
		a, err := fetch(http.MethodGet, g.ops+"/metrics", nil)
		if err != nil {
			return err
		}
		for _, kind := range []string{"jobs.batch", "runs"} {
			if !strings.Contains(a.body, fmt.Sprintf("kubecast_history_recording{cluster=\"default\",kind=%q} 1\n", kind)) {
				return fmt.Errorf("%d: %s are not recorded", a.code, kind)
			}
		}
		return nil
	})
}

func (g *gateway) readyz() (code int, body string) {
	answer, err := fetch(http.MethodGet, g.ops+"/readyz", nil)
	if err != nil {
		return 0, err.Error()
	}
	return answer.code, answer.body
}
