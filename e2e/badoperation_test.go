package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/e2e/process"
)

// A mistake in the configuration is named, and the gateway does not start.
func TestBadConfigurationIsNamed(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	for text, wanted := range map[string]string{
		"cache: {preloads: [pods]}\n":                  "cache.preloads",
		"steam: {heartbeat: 1s}\n":                     "steam",
		"stream: {heartbeat: fast}\n":                  "stream.heartbeat",
		"tls: {certFile: a.crt, keyFile: a.key}\n":     "tls.certFile a.crt",
		"tls: {certFile: a.crt}\n":                     "only one of certFile and keyFile",
		"webhooks: [{url: 'https://example.org'}]\n":   "webhooks[0].name",
		"stream: {compress: [brotli]}\n":               "stream.compress",
		"clusters: [{name: one}, {name: one}]\n":       "clusters",
		"cache: {indexes: {pods: [\"spec..node\"]}}\n": "indexes",
		"listen: nowhere\n":                            "listen",
		"a: b: c\n":                                    "mapping values",
	} {
		file := filepath.Join(t.TempDir(), "gateway.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"serve", "--kubeconfig", s.cluster.Kubeconfig()}, {"check"}} {
			args := append(command, "--config", file)
			if command[0] == "serve" {
				args = append(args, "--ops-listen", "127.0.0.1:0")
				if !strings.HasPrefix(text, "listen") {
					args = append(args, "--listen", "127.0.0.1:0")
				}
			}
			p, err := process.Start(process.Options{Path: s.gateway, Args: args})
			if err != nil {
				t.Fatal(err)
			}
			within, cancel := context.WithTimeout(t.Context(), startWithin) // one that is accepted would be served for ever
			stop := context.AfterFunc(within, p.Kill)
			if code := p.ExitCode(); code != 1 || !strings.Contains(p.Stderr.String(), wanted) {
				t.Errorf("%s with %q: exit code %d, and it says %q, without %q", command[0], text, code, p.Stderr, wanted)
			}
			stop()
			cancel()
		}
	}
}

// Files that do not exist are named, too.
func TestMissingFilesAreNamed(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	missing := filepath.Join(t.TempDir(), "missing")
	for name, args := range map[string][]string{
		"config":     {"serve", "--config", missing},
		"kubeconfig": {"serve", "--kubeconfig", missing},
		"check":      {"check", "--config", missing},
	} {
		p, err := process.Start(process.Options{Path: s.gateway, Args: args})
		if err != nil {
			t.Fatal(err)
		}
		if code := p.ExitCode(); code != 1 || !strings.Contains(p.Stderr.String(), missing) {
			t.Errorf("%s: exit code %d, and it says %q", name, code, p.Stderr)
		}
	}
}

// The gateway waits for a cluster that is away at the start: it lives, says what it waits for, tells streams to come
// again, and serves once the cluster is there.
func TestUnreachableClusterAtStartIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := onFaultStage(t)
	if err := s.cluster.Fault(context.Background(), "apiserver-kill"); err != nil {
		t.Fatal(err)
	}
	back := false
	t.Cleanup(func() {
		if !back {
			_ = s.cluster.Fault(context.Background(), "apiserver-start")
		}
	})
	g := s.startGateway(t, gatewayOptions{})
	if a, err := fetch(http.MethodGet, g.ops+"/livez", nil); err != nil || a.code != http.StatusOK || a.body != "ok\n" {
		t.Errorf("livez: %v %d %q", err, a.code, a.body)
	}
	eventually(t, "readyz says what is waited for", func() error {
		code, body := g.readyz()
		if code != http.StatusServiceUnavailable || !strings.Contains(body, "default") || !strings.Contains(body, "pods") ||
			!regexp.MustCompile("refused|reached|connect").MatchString(body) {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	for _, path := range []string{"/api/v1/pods", "/stream?pods=/api/v1/pods"} {
		stream := s.open(t, g, path, nil)
		end := stream.mustEnd(t)
		if len(end) != 1 || end[0].event != "goodbye" || end[0].reason(t) != "unavailable" {
			t.Errorf("%s is told %+v", path, end)
		}
	}
	a := g.get(t, s.viewer(t), "/api/v1/pods")
	a.mustStatus(t, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "")
	if a.header.Get("Retry-After") == "" {
		t.Error("a 503 without Retry-After")
	}

	if err := s.cluster.Fault(context.Background(), "apiserver-start"); err != nil {
		t.Fatal(err)
	}
	back = true
	g.waitReady(t)
	scope := scope{kind: podsKind}
	f := follow(t, &follower{name: "after", token: s.viewer(t), path: scope.path(), watches: single(), address: always(g.url), connect: rawly, relists: true})
	f.waitSynced(t)
	s.waitEqual(t, f, "", scope)
}

// If the gateway itself may not list a kind, only requests for that kind are refused. All others are served, and
// readiness does not wait for the kind. It is served once the gateway gets the permission.
func TestKindTheGatewayMayNotListHurtsNoOther(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.startGateway(t, gatewayOptions{
		kubeconfig: s.limitedKubeconfig(t, "limited"),
		config:     "cache: {preload: [pods, jobs.batch, configmaps]}\n",
	})
	g.waitReady(t)
	eventually(t, "readyz names the kind that is missing", func() error {
		if code, body := g.readyz(); code != http.StatusOK || !strings.Contains(body, "missing: cluster default: configmaps") {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	token := s.viewer(t)
	a := g.get(t, token, "/api/v1/configmaps")
	a.mustStatus(t, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "may not list")
	if end := s.open(t, g, "/api/v1/configmaps", nil).mustEnd(t); len(end) != 1 || end[0].event != "goodbye" || end[0].reason(t) != "unavailable" {
		t.Errorf("a stream of it is told %+v", end)
	}
	g.says(t, "grant") // what to do
	g.list(t, token, "/api/v1/pods")
	s.open(t, g, "/api/v1/pods", nil).find(t, "synced")

	s.allow(t, "system:serviceaccount:limited:gateway", "", "configmaps")
	eventually(t, "the kind is served once it may be", func() error {
		if a := g.get(t, token, "/api/v1/configmaps"); a.code != http.StatusOK {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		return nil
	})
}

// limitedKubeconfig is the kubeconfig of a ServiceAccount that may do what the gateway needs for pods and jobs, and
// no more.
func (s *stage) limitedKubeconfig(t *testing.T, namespace string) string {
	t.Helper()
	s.namespaces(t, namespace)
	s.kubectl(t, fmt.Sprintf(`apiVersion: v1
kind: ServiceAccount
metadata: {name: gateway, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-%[1]s}
rules:
- {apiGroups: [""], resources: [pods], verbs: [list, watch]}
- {apiGroups: [batch], resources: [jobs], verbs: [list, watch]}
- {apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, clusterroles, rolebindings, clusterrolebindings]
  verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: e2e-%[1]s}
subjects: [{kind: ServiceAccount, name: gateway, namespace: %[1]s}]
`, namespace), "apply", "-f", "-")
	t.Cleanup(func() {
		s.kubectl(t, "", "delete", "clusterrole,clusterrolebinding", "e2e-"+namespace)
	})
	token := strings.TrimSpace(s.kubectl(t, "", "create", "token", "gateway", "-n", namespace))
	admin, err := os.ReadFile(s.cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	limited := regexp.MustCompile(`(?m)^    token: .*$`).ReplaceAll(admin, []byte("    token: "+token))
	if err := os.WriteFile(file, limited, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
