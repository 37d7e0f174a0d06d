package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/certtest"
)

// measurer is an API server of its own, as metrics-server is, to which the API server passes requests on.
type measurer struct {
	stage *stage
	away  atomic.Bool
	lists atomic.Int64 // of all pods
}

func (m *measurer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, "/apis/metrics.k8s.io/v1beta1")
	var body any
	var items []any
	var err error
	switch parts := strings.Split(strings.Trim(path, "/"), "/"); {
	case !ok:
		http.NotFound(w, r)
		return
	case path == "":
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "metrics.k8s.io/v1beta1"}
		for _, kind := range []metav1.APIResource{{Name: "nodes", Kind: "NodeMetrics"}, {Name: "pods", Kind: "PodMetrics", Namespaced: true}} {
			kind.Verbs = metav1.Verbs{"get", "list"}
			list.APIResources = append(list.APIResources, kind)
		}
		body = list
	case m.away.Load():
		http.Error(w, "out of order", http.StatusServiceUnavailable)
		return
	case parts[0] == "nodes":
		items, err = m.nodes(r.Context())
		body = answered("NodeMetricsList", items, parts[1:])
	case parts[0] == "pods":
		m.lists.Add(1)
		items, err = m.pods(r.Context(), "", r.URL.Query())
		body = answered("PodMetricsList", items, nil)
	default:
		items, err = m.pods(r.Context(), parts[1], r.URL.Query())
		body = answered("PodMetricsList", items, parts[3:])
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // a client that has gone is no error
}

// answered is the one of a name, or the list.
func answered(kind string, items []any, name []string) map[string]any {
	for _, item := range items {
		if o := item.(map[string]any); len(name) > 0 && o["metadata"].(map[string]any)["name"] == name[0] {
			o["kind"], o["apiVersion"] = strings.TrimSuffix(kind, "List"), "metrics.k8s.io/v1beta1"
			return o
		}
	}
	return map[string]any{"kind": kind, "apiVersion": "metrics.k8s.io/v1beta1", "metadata": map[string]any{}, "items": items}
}

func measurement(of metav1.ObjectMeta, more map[string]any) any {
	more["metadata"] = map[string]any{"name": of.Name, "namespace": of.Namespace, "labels": of.Labels, "creationTimestamp": of.CreationTimestamp}
	more["timestamp"], more["window"] = "2026-01-01T00:00:00Z", "15.2s"
	return more
}

// usage differs from name to name, and is always the same of one.
func usage(name string) map[string]string {
	return map[string]string{"cpu": strconv.Itoa(len(name)*7) + "m", "memory": strconv.Itoa(len(name)*1311) + "Ki"}
}

func (m *measurer) nodes(ctx context.Context) ([]any, error) {
	nodes, err := m.stage.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	items := []any{}
	for _, node := range nodes.Items {
		items = append(items, measurement(node.ObjectMeta, map[string]any{"usage": usage(node.Name)}))
	}
	return items, err
}

func (m *measurer) pods(ctx context.Context, namespace string, query url.Values) ([]any, error) {
	pods, err := m.stage.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: query.Get("labelSelector")})
	items := []any{}
	for _, pod := range pods.Items {
		var containers []any
		for _, c := range pod.Spec.Containers {
			containers = append(containers, map[string]any{"name": c.Name, "usage": usage(pod.Name + c.Name)})
		}
		items = append(items, measurement(pod.ObjectMeta, map[string]any{"containers": containers}))
	}
	return items, err
}

// measure has the cluster's API server pass requests for metrics.k8s.io on to a measurer, until the test ends.
func (s *stage) measure(t *testing.T) *measurer {
	t.Helper()
	m := &measurer{stage: s}
	server := httptest.NewTLSServer(m)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	// Addresses of loopback are refused as endpoints, but not as a name.
	manifest := fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: measurer, namespace: kube-system}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: measurer, namespace: kube-system, port: %s}
`, address.Port())
	s.kubectl(t, manifest, "apply", "-f", "-")
	t.Cleanup(func() { s.kubectl(t, manifest, "delete", "-f", "-") })
	s.kubectl(t, "", "wait", "--for=condition=Available", "apiservice/v1beta1.metrics.k8s.io")
	return m
}

// kubectl top prints the same at the gateway as at the API server: for whoever may see everything, and for a team.
func TestKubectlTopPrintsTheSame(t *testing.T) {
	t.Parallel()
	s := onFaultStage(t)
	m := s.measure(t)
	certFile, keyFile := certtest.New(t, "gateway.test").Write(t, t.TempDir())
	g := s.startGateway(t, gatewayOptions{certFile: certFile, keyFile: keyFile})
	s.namespaces(t, "top-a", "top-b")
	s.allowTeam(t, "top-a")
	ctx := context.Background()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: "top-a", Name: "measured"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}},
	}
	if _, err := s.kube.RbacV1().Roles("top-a").Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "top-a"}},
	}
	if _, err := s.kube.RbacV1().RoleBindings("top-a").Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"api", "web-server"} {
		for _, namespace := range []string{"top-a", "top-b"} {
			p := pod(namespace, name, map[string]string{"app": name, "top": "measured"}) // other tests' pods come and go meanwhile
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "registry.example.org/side:1"})
			if _, err := s.kube.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	token, err := s.token("top", "top-a")
	if err != nil {
		t.Fatal(err)
	}
	all := s.admin(t)
	admin, team := kubectlTo(t, g, all, ""), kubectlTo(t, g, token, "/clusters/default")
	asTeam := []string{"--as=top", "--as-group=top-a", "--as-group=system:authenticated"}
	mustKnow(t, token, "/apis/metrics.k8s.io/v1beta1/pods", g)
	same := func(want, got []string, command string) error {
		arguments := strings.Fields(command)
		wanted, wantErr := s.tryKubectl(append(want, arguments...)...)
		had, gotErr := s.tryKubectl(append(got, arguments...)...)
		if a, b := failure(had, gotErr), failure(wanted, wantErr); a != b {
			return fmt.Errorf("kubectl %s: prints\n%s\nnot\n%s", command, a, b)
		}
		return nil
	}
	eventually(t, "the pods are measured", func() error { return same(nil, admin, "top pods -A -l top=measured") })
	for _, command := range []string{
		"top pods -A -l top=measured", "top pods -n top-a", "top pods -n top-a --containers", "top pods -n top-a --sum --sort-by=memory", "top pods -n top-a -l app=api",
		"top pod -n top-b web-server", "top pods -n nothing", "top nodes", "top node node-00", "get pods.metrics.k8s.io -n top-a -o json",
	} {
		if err := same(nil, admin, command); err != nil {
			t.Error(err)
		}
	}
	for _, command := range []string{"top pods -n top-a", "top pods -n top-b", "top pod -n top-b web-server", "top nodes"} {
		if err := same(asTeam, team, command); err != nil {
			t.Errorf("the team: %v", err)
		}
	}
	if out, err := s.tryKubectl(append(team, "top", "pods", "-A")...); err != nil || strings.Count(out, "top-a") != 2 || strings.Contains(out, "top-b") {
		t.Errorf("the team sees %v %s", err, out)
	}
	before := m.lists.Load()
	for range 30 {
		if a := g.get(t, token, "/apis/metrics.k8s.io/v1beta1/pods"); a.code != 200 {
			t.Errorf("%d %s", a.code, a.body)
		}
	}
	if n := m.lists.Load() - before; n > 3 { // it takes less than ten seconds
		t.Errorf("30 lists cost the API server %d", n)
	}
	for _, path := range []string{"?watch=true", "/x?watch=true"} {
		if a := g.get(t, all, "/apis/metrics.k8s.io/v1beta1/namespaces/top-a/pods"+path); a.code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	m.away.Store(true)
	eventually(t, "nothing is told that is older", func() error {
		if a := g.get(t, token, "/apis/metrics.k8s.io/v1beta1/pods"); a.code != http.StatusServiceUnavailable {
			return errors.New(a.body)
		}
		return nil
	})
	if err := same(nil, admin, "top pods -n top-a"); err != nil {
		t.Error(err)
	}
	m.away.Store(false)
	eventually(t, "it is measured again", func() error { return same(nil, admin, "top pods -n top-b") })
}
