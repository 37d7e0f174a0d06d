package clients

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/e2e/process"
)

// gateway is a gateway that is ended and started again, always on the same address.
type gateway struct {
	stage   *stage
	dir     string
	address string
	history string // the configuration of its history; "" for none
	process *process.Process
	logs    []string
}

// newGateway prepares a gateway, which ends with the test. Its log is printed if the test fails. A data race in it
// fails the test.
func (s *stage) newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{stage: s, dir: t.TempDir(), address: harness.Address(t)}
	t.Cleanup(func() {
		if g.process != nil {
			g.process.Kill()
			g.logs = append(g.logs, g.process.Stderr.String())
		}
		log := strings.Join(g.logs, "")
		if err := harness.Races(log); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the end of the gateway's log:\n%s", harness.Tail(log, 40))
		}
	})
	return g
}

var listening = regexp.MustCompile(`msg=listening`)

// start runs the gateway with a configuration. Every client is accepted as system:anonymous, since an EventSource
// cannot send a token.
func (g *gateway) start(t *testing.T, config string) {
	t.Helper()
	program, err := harness.Gateway()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(g.dir, "gateway.yaml")
	if err := os.WriteFile(file, []byte("auth: {anonymous: true}\nhistory:\n  "+cmp.Or(g.history, "database: none")+"\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	g.process, err = process.Start(process.Options{Path: program, Args: []string{"serve", "--config", file,
		"--kubeconfig", g.stage.cluster.Kubeconfig(), "--listen", g.address, "--ops-listen", "127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := g.process.Stderr.WaitFor(ctx, listening); err != nil {
		t.Fatal(err)
	}
}

// kill ends the gateway as a crash does.
func (g *gateway) kill() { g.end(syscall.SIGKILL) }

// drain ends the gateway as a rolling update does, and returns when it has ended.
func (g *gateway) drain() { g.end(syscall.SIGTERM) }

func (g *gateway) end(signal syscall.Signal) {
	g.process.Signal(signal)
	<-g.process.Done()
	g.logs = append(g.logs, g.process.Stderr.String(), fmt.Sprintf("--- ended by %s ---\n", signal))
	g.process = nil
}

func (g *gateway) url() string { return "http://" + g.address }
