package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/e2e/process"
)

// startWatch runs gateway watch until the test ends.
func (s *stage) startWatch(t *testing.T, args ...string) *process.Process {
	t.Helper()
	p, err := process.Start(process.Options{Path: s.gateway, Args: append([]string{"watch"}, args...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Terminate(10 * time.Second)
		if t.Failed() {
			t.Logf("gateway watch says:\n%s", p.Stderr)
		}
		if strings.Contains(p.Stderr.String(), "DATA RACE") {
			t.Error("data race in gateway watch")
		}
	})
	return p
}

// printed gives the output of gateway watch -o json to a follower's views, which check it.
func printed(out string) (*follower, error) {
	f := &follower{watches: single(), views: map[string]*view{"": newView()}, relists: true}
	start, err := f.begin("", "")
	if err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(out, "\n")
	for _, line := range lines[:len(lines)-1] { // the last one may not be complete
		var read struct {
			Event, ID string
			Data      json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if err := f.take(start, frame{event: read.Event, id: read.ID, data: string(read.Data)}); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// gateway watch goes on by itself when the gateway is killed and comes back, and prints all events.
func TestGatewayWatchResumes(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "command-a", "command-b")
	g := s.startGateway(t, gatewayOptions{listen: harness.Address(t), config: "stream: {retry: 100ms}\n"})
	g.waitReady(t)
	c := &churn{namespaces: []string{"command-a", "command-b"}, test: "command", random: seed(t)}
	scope := c.scopes()["all namespaces"]
	witness := s.watchDirectly(t, scope)
	watching := s.startWatch(t, "--server", g.url, "--token", s.viewer(t), "-o", "json", scope.path())
	read := func(enough func(*view) error) {
		t.Helper()
		eventually(t, "gateway watch prints it", func() error {
			f, err := printed(watching.Stdout.String())
			if err != nil {
				t.Fatal(err)
			}
			return f.look("", enough)
		})
	}
	atLeast := func(n int) func(*view) error {
		return func(v *view) error {
			if len(v.told) < n {
				return fmt.Errorf("%d events", len(v.told))
			}
			return nil
		}
	}
	read(func(v *view) error {
		if len(v.covered) == 0 {
			return errors.New("not synced")
		}
		return nil
	})
	finish := s.startChurn(t, c)
	read(atLeast(40))
	g.kill()
	g.restart(t)
	read(atLeast(80))
	finish()
	read(func(v *view) error {
		want, err := s.list(scope)
		if err != nil {
			return err
		}
		return v.differs(want)
	})
	f, err := printed(watching.Stdout.String())
	if err != nil {
		t.Fatal(err)
	}
	checkNothingLost(t, f, "", witness)
	watching.Signal(syscall.SIGTERM)
	if code := watching.ExitCode(); code != 0 {
		t.Errorf("its exit code is %d", code)
	}
}

// An error that stays the same at each attempt ends gateway watch, with the server's message.
func TestGatewayWatchSaysWhyItEnds(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	for wanted, args := range map[string][]string{
		"invalid token":  {"--server", g.url, "--token", "garbage", "/api/v1/pods"},
		"could not find": {"--server", g.url, "--token", s.viewer(t), "/apis/batch/v1/nothings"},
		"forbidden":      {"--server", g.url, "--token", s.viewer(t), "/api/v1/secrets"},
		"labelSelector":  {"--server", g.url, "--token", s.viewer(t), "/api/v1/pods?labelSelector=(("},
		"not a path":     {"--server", g.url, "pods"},
	} {
		p := s.startWatch(t, args...)
		if code := p.ExitCode(); code != 1 || !strings.Contains(p.Stderr.String(), wanted) {
			t.Errorf("%q: exit code %d, and it says %q", args, code, p.Stderr)
		}
	}
}

// An event that was cut off in the middle does not count, nor does its id. The library under gateway watch passes on
// the part that came, and remembers the id.
func TestGatewayWatchForgetsTornEvents(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	for name, torn := range map[string]string{
		"before its data": "event: modified\nid: e.3",
		"within its data": "event: modified\nid: e.3\ndata: {\"metadata\":{\"name\":\"torn\"",
		"within its id":   "event: modified\nid: e.",
	} {
		var mu sync.Mutex
		var positions []string
		asked := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return append([]string(nil), positions...)
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			positions = append(positions, r.Header.Get("Last-Event-ID"))
			first := len(positions) == 1
			mu.Unlock()
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "retry: 50\n\n")
			if !first {
				<-r.Context().Done()
				return
			}
			_, _ = io.WriteString(w, "event: added\nid: e.2\ndata: {\"metadata\":{\"name\":\"whole\"}}\n\n"+torn)
			cut(t, w)
		}))
		defer server.Close()
		defer server.CloseClientConnections()
		p := s.startWatch(t, "--server", server.URL, "-o", "json", "/api/v1/pods")
		eventually(t, "gateway watch comes back", func() error {
			if len(asked()) < 2 {
				return errors.New("it has not")
			}
			return nil
		})
		if got := asked()[1]; got != "e.2" {
			t.Errorf("cut %s, it resumes after %q and not after e.2", name, got)
		}
		if out := p.Stdout.String(); strings.Contains(out, "e.3") || strings.Contains(out, "torn") || !strings.Contains(out, "whole") {
			t.Errorf("cut %s, it prints %q", name, out)
		}
		p.Kill()
	}
}

// cut sends what was written, and closes the connection without ending the body.
func cut(t *testing.T, w http.ResponseWriter) {
	control := http.NewResponseController(w)
	if err := control.Flush(); err != nil {
		t.Error(err)
	}
	connection, _, err := control.Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	_ = connection.Close()
}

// For people, gateway watch prints lines.
func TestGatewayWatchPrintsLines(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	s.namespaces(t, "lines")
	p := s.startWatch(t, "--server", g.url, "--token", s.viewer(t), "/api/v1/namespaces/lines/pods")
	wait := func(text string) {
		t.Helper()
		eventually(t, "gateway watch prints "+text, func() error {
			if !strings.Contains(p.Stdout.String(), text) {
				return fmt.Errorf("%q", p.Stdout)
			}
			return nil
		})
	}
	wait("synced")
	if _, err := s.kube.CoreV1().Pods("lines").Create(context.Background(), pod("lines", "one", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	wait("added      Pod lines/one Pending")
}
