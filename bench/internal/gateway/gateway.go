//go:build linux

// Package gateway runs the real gateway for the benchmarks, as its users run it.
package gateway

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/process"
)

// built names the binary that scripts/test.sh has built of the present source, so that a dozen tests do not do so again.
const built = "KUBECAST_BENCH_GATEWAY"

// Build builds the gateway from the present source, and returns its binary, so that no old binary is measured. If a
// binary is named, by a flag or the environment, Build returns that.
func Build(named, dir string) (binary string, err error) {
	if named = cmp.Or(named, os.Getenv(built)); named != "" {
		_, err := os.Stat(named) // results of tests are cached for as long as this is the same file
		return named, err
	}
	binary = filepath.Join(dir, "gateway")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/kubecast/kubecast/cmd/gateway").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the gateway: %w\n%s", err, out)
	}
	return binary, nil
}

// Options say how to run a gateway.
type Options struct {
	Binary     string
	Dir        string        // for its configuration and its log; must exist
	Config     string        // YAML
	Kubeconfig string        // a file
	Listen     string        // "": any port on loopback
	Within     time.Duration // how long it may take until it is ready; 0: a minute
}

// Gateway is a running gateway.
type Gateway struct {
	*process.Process
	Address string // host:port
	Ops     string
}

var listening = regexp.MustCompile(`msg=listening addr=(\S+) ops=(\S+)`)

// Start starts a gateway, and returns when it is ready.
func Start(opts Options) (*Gateway, error) {
	if opts.Listen == "" {
		opts.Listen = "127.0.0.1:0"
	}
	config := filepath.Join(opts.Dir, "gateway.yaml")
	text := "ops: {pprof: true}\n" + opts.Config
	if !strings.Contains(text, "history:") {
		text += "\nhistory: {database: none}\n" // what it costs is measured by itself
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(opts.Dir, "gateway.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(opts.Binary, "serve", "--config", config, "--kubeconfig", opts.Kubeconfig,
		"--listen", opts.Listen, "--ops-listen", "127.0.0.1:0")
	cmd.Stderr = log // a file, so that nothing has to read its many lines
	p, err := process.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start the gateway: %w", err)
	}
	g := &Gateway{Process: p}
	if err := g.awaitReady(log.Name(), cmp.Or(opts.Within, time.Minute)); err != nil {
		g.Kill()
		return nil, err
	}
	return g, nil
}

func (g *Gateway) awaitReady(log string, within time.Duration) error {
	for deadline := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		if err := g.Ended(); err != nil {
			return fmt.Errorf("%w: %s", err, lastLine(log))
		}
		if g.Ops == "" {
			if text, err := os.ReadFile(log); err != nil {
				return err
			} else if m := listening.FindSubmatch(text); m != nil {
				g.Address, g.Ops = string(m[1]), string(m[2])
			}
		}
		if g.Ops != "" {
			if _, err := g.get("/readyz"); err == nil {
				return nil
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the gateway is not ready after %s: %s", within, lastLine(log))
		}
	}
}

func lastLine(file string) (last string) {
	f, err := os.Open(file)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		last = lines.Text()
	}
	return last
}

// Read returns the ops listener's answer at a path.
func (g *Gateway) Read(path string) ([]byte, error) { return g.get(path) }

func (g *Gateway) get(path string) ([]byte, error) {
	response, err := http.Get("http://" + g.Ops + path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return body, err
}

// Save writes the ops listener's answer at a path into a file: a profile, or the metrics.
func (g *Gateway) Save(path, file string) error {
	body, err := g.get(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(file, body, 0o600)
}

// Kubeconfig writes a kubeconfig for an API server without authentication, and returns its path.
func Kubeconfig(dir, url string) (file string, err error) {
	file = filepath.Join(dir, "kubeconfig")
	return file, WriteKubeconfig(file, url, "")
}

// WriteKubeconfig writes a kubeconfig with a token, if one is given.
func WriteKubeconfig(file, url, token string) error {
	user := "{}"
	if token != "" {
		user = fmt.Sprintf("{token: %q}", token)
	}
	return os.WriteFile(file, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: bench
clusters: [{name: bench, cluster: {server: %q}}]
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
users: [{name: bench, user: %s}]
`, url, user), 0o600)
}
