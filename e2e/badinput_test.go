package e2e

import (
	"context"
	"encoding/json"
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

// mustStatus checks that an answer is a Status as kubectl prints it, with a message that contains a text.
func (a answer) mustStatus(t *testing.T, code int, reason metav1.StatusReason, text string) {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal([]byte(a.body), &status); err != nil {
		t.Errorf("%d %s: %v", a.code, a.body, err)
		return
	}
	if a.code != code || status.Kind != "Status" || status.APIVersion != "v1" || status.Status != metav1.StatusFailure ||
		int(status.Code) != code || status.Reason != reason || !strings.Contains(status.Message, text) {
		t.Errorf("answered %d %s, not %d %s with %q", a.code, a.body, code, reason, text)
	}
}

// A mistake in the configuration is named, and nothing starts.
func TestBadConfigurationIsNamed(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	for text, wanted := range map[string]string{
		"cache: {preloads: [pods]}\n":                  "cache.preloads",
		"steam: {heartbeat: 1s}\n":                     "steam",
		"stream: {heartbeat: fast}\n":                  "stream.heartbeat",
		"tls: {certFile: a.crt, keyFile: a.key}\n":     "tls.certFile",
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
			stop := context.AfterFunc(t.Context(), p.Kill)
			if code := p.ExitCode(); code != 1 || !strings.Contains(p.Stderr.String(), wanted) {
				t.Errorf("%s with %q: exit code %d, and it says %q, without %q", command[0], text, code, p.Stderr, wanted)
			}
			stop()
		}
	}
}

// Files that are not there are named, too.
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

// A cluster that is away at the start is waited for: the gateway lives, says what it waits for, sends streams away
// to come again, and serves when the cluster is there.
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

// What is wrong with a request is told by status and text: as a Status on Kubernetes' paths, to event streams with
// the same codes, since repeating such a request helps nobody.
func TestBadRequestsAreRefusedClearly(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	token := s.viewer(t)
	events := http.Header{"Accept": {"text/event-stream"}}
	const bad, pods = http.StatusBadRequest, "/api/v1/pods"
	for _, c := range []struct {
		path   string
		header http.Header
		code   int
		reason metav1.StatusReason
		text   string
	}{
		{pods + "?labelSelector=a%3D%3D%3Db", nil, bad, "BadRequest", "labelSelector"},
		{pods + "?labelSelector=in+(", events, bad, "BadRequest", "labelSelector"},
		{pods + "?fieldSelector=status.phase", nil, bad, "BadRequest", "fieldSelector"},
		{pods + "?fieldSelector=a..b%3Dc", events, bad, "BadRequest", "fieldSelector"},
		{pods + "?limit=many", nil, bad, "BadRequest", "limit"},
		{pods + "?limit=-1", nil, bad, "BadRequest", "limit"},
		{pods + "?continue=nonsense", nil, bad, "BadRequest", "continue"},
		{pods + "?resourceVersion=abc", nil, bad, "BadRequest", "resourceVersion"},
		{pods + "?resourceVersion=-1", events, bad, "BadRequest", "resourceVersion"},
		{pods + "?resourceVersion=99999999999999999999", events, bad, "BadRequest", "resourceVersion"},
		{pods + "?resourceVersionMatch=Exact", nil, bad, "BadRequest", "resourceVersionMatch"},
		{pods + "?resourceVersion=1&resourceVersionMatch=Sometimes", nil, bad, "BadRequest", "resourceVersionMatch"},
		{pods + "?sendInitialEvents=perhaps", events, bad, "BadRequest", "sendInitialEvents"},
		{pods + "?heartbeat=often", events, bad, "BadRequest", "heartbeat"},
		{pods + "?labelselector=a", events, bad, "BadRequest", "labelselector"},
		{pods + "?labelSelector=a&labelSelector=b", events, bad, "BadRequest", "labelSelector"},
		{pods + "?access_token=secret", nil, bad, "BadRequest", "Authorization"},
		{"/api/v1/nothings", nil, http.StatusForbidden, "Forbidden", "nothings"}, // permission comes first
		{"/apis/batch/v1/nothings", nil, http.StatusNotFound, "NotFound", "could not find"},
		{"/apis/batch/v1/nothings", events, http.StatusNotFound, "NotFound", "could not find"},
		{"/apis/batch/v9/jobs", nil, http.StatusNotFound, "NotFound", "could not find"},
		{"/api/v1/namespaces/default/nodes", nil, http.StatusNotFound, "NotFound", "namespace"},
		{"/api/v1/namespaces/default/pods/absent", nil, http.StatusNotFound, "NotFound", `pods "absent" not found`},
		{"/clusters/elsewhere/api/v1/pods", nil, http.StatusNotFound, "NotFound", "cluster"},
		{pods, http.Header{"Accept": {"application/yaml"}}, http.StatusNotAcceptable, "NotAcceptable", "application/json"},
	} {
		header := bearer(token)
		for name, values := range c.header {
			header[name] = values
		}
		a, err := fetch(http.MethodGet, g.url+c.path, header)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(c.path, func(t *testing.T) { a.mustStatus(t, c.code, c.reason, c.text) })
	}
}

// The same on /stream, where errors are problems (RFC 9457).
func TestBadStreamRequestsAreRefusedClearly(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	for path, text := range map[string]string{
		"/stream":               "no watch",
		"/stream?pods=pods":     "pods",
		"/stream?pods=/healthz": "pods",
		"/stream?pods=https://elsewhere/api/v1/x":     "pods",
		"/stream?Pods=/api/v1/pods":                   "Pods",
		"/stream?watch=/api/v1/pods":                  "",
		"/stream?a=/api/v1/pods&a=/api/v1/pods":       "a",
		"/stream?a=/api/v1/pods%3FlabelSelector%3D((": "labelSelector",
		"/stream?a=/api/v1/pods%3Fnonsense%3D1":       "nonsense",
		"/stream?a=/api/v1/pods&heartbeat=never":      "heartbeat",
	} {
		header := bearer(s.viewer(t))
		header.Set("Accept", "text/event-stream")
		a, err := fetch(http.MethodGet, g.url+path, header)
		if err != nil {
			t.Fatal(err)
		}
		a.mustProblem(t, path, http.StatusBadRequest, text)
	}
	header := bearer(s.viewer(t))
	header.Set("Accept", "text/event-stream")
	a, err := fetch(http.MethodGet, g.url+"/stream?a=/apis/batch/v1/nothings", header)
	if err != nil {
		t.Fatal(err)
	}
	a.mustProblem(t, "a kind that does not exist", http.StatusNotFound, "")
	a, err = fetch(http.MethodGet, g.url+"/stream?a=/api/v1/pods", nil)
	if err != nil {
		t.Fatal(err)
	}
	a.mustProblem(t, "without a token", http.StatusUnauthorized, "")
}

func (a answer) mustProblem(t *testing.T, what string, code int, text string) {
	t.Helper()
	var problem struct {
		Status        int
		Title, Detail string
	}
	err := json.Unmarshal([]byte(a.body), &problem)
	if err != nil || a.code != code || problem.Status != code || problem.Title == "" || !strings.Contains(problem.Detail, text) ||
		a.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: answered %d %q %s, not a problem with %q", what, a.code, a.header.Get("Content-Type"), a.body, text)
	}
}

// The gateway only reads.
func TestWritesAreRefused(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		a, err := fetch(method, g.url+"/api/v1/namespaces/default/pods/one", bearer(s.viewer(t)))
		if err != nil {
			t.Fatal(err)
		}
		a.mustStatus(t, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "only reads")
		if a.header.Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("%s: Allow: %q", method, a.header.Get("Allow"))
		}
	}
}

// A kind that the gateway itself may not list is answered for itself; all others are served, and readiness does not
// wait for it. When its permission comes, so does the kind.
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
	if !strings.Contains(g.log(), "grant") {
		t.Error("the log does not say what to do")
	}
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

// limitedKubeconfig is that of a ServiceAccount which may do what the gateway needs for pods and jobs, and no more.
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
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
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
