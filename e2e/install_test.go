package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/e2e/process"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// chartTools builds programs that the chart's tests depend on, by their versions there.
var chartTools = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(harness.Dir(), "charttools")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for name, program := range map[string]string{"helm3": "helm.sh/helm/v3/cmd/helm", "helm4": "helm.sh/helm/v4/cmd/helm", "kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform"} {
		out, err := exec.Command("go", "build", "-C", "../deploy/charttest", "-o", filepath.Join(dir, name), program).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
	}
	return dir, nil
})

// helm runs Helm 4 as cluster-admin.
func (s *stage) helm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.tryHelm(t, "helm4", args...)
	if err != nil {
		t.Fatalf("helm %v: %v %s", args, err, out)
	}
	return out
}

// tryHelm runs helm3 or helm4 as cluster-admin.
func (s *stage) tryHelm(t *testing.T, version string, args ...string) (string, error) {
	t.Helper()
	dir, err := chartTools()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, version), args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// runServer runs a database server until the test ends.
func runServer(t *testing.T, server *dbtest.Server) {
	t.Helper()
	if server.Missing() {
		t.Skip(server.Kind + " is not installed")
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
}

// twoUsers makes a database with the user who may change the schema, and the one who serves, as docs/operations.md says.
func twoUsers(t *testing.T, server *dbtest.Server, owner, user string) (database string) {
	t.Helper()
	statements := []string{
		"CREATE USER %[1]s PASSWORD 'x'", "CREATE USER %[2]s PASSWORD 'x'", "CREATE DATABASE %[2]s OWNER %[1]s",
	}
	if server.Kind == "mysql" {
		statements = []string{
			"CREATE USER %[1]s IDENTIFIED BY 'x'", "CREATE USER %[2]s IDENTIFIED BY 'x'", "CREATE DATABASE %[2]s",
			"GRANT ALL ON %[2]s.* TO %[1]s", "GRANT SELECT, INSERT, UPDATE, DELETE ON %[2]s.* TO %[2]s",
		}
	}
	for _, statement := range statements {
		server.Exec(t, fmt.Sprintf(statement, owner, user))
	}
	if server.Kind == "postgres" {
		inDatabase(t, server.Address(user, owner, "x"), fmt.Sprintf("ALTER DEFAULT PRIVILEGES GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO %s", user))
	}
	return server.Address(user, user, "")
}

// A release is installed, upgraded, rolled back, tested and uninstalled by Helm. Its hooks run before what they are for: the schema is
// another user's. What was read meanwhile behind nginx, as the chart's Ingress has it, never ended for good, and lost nothing. Nothing is left.
func TestHelmsWholeLifeBehindNginx(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	token := s.admin(t)
	for _, server := range []*dbtest.Server{dbtest.Postgres(), dbtest.MariaDB()} {
		t.Run(server.Kind, func(t *testing.T) {
			t.Parallel()
			namespace := "helm-" + server.Kind
			runServer(t, server)
			address := twoUsers(t, server, "kubecast_owner", "kubecast")
			owner := strings.Replace(address, "kubecast@", "kubecast_owner@", 1)
			s.namespaces(t, namespace)
			k := s.startKubelet(t, namespace)
			s.secretsOfChart(t, namespace)
			values := filepath.Join(t.TempDir(), "values.yaml")
			text := fmt.Sprintf(`
config:
  auth: {jwt: [{issuer: %q, audiences: [kubecast], publicKeyFile: /etc/kubecast-keys/issuer.pub}]}
  history: {database: %q}
  drain: 4s
history: {existingSecret: database, migration: {enabled: true, database: %q, existingSecret: database}}
keys: {existingSecret: keys}
ingress: {enabled: true, host: kubecast.example.org, nginxSnippet: true}
preflight: {hooks: [test, post-install, post-upgrade]}
preStopSeconds: 3
nodeSelector: {%s: %s}
tolerations: [{key: %[4]s, operator: Exists}]
`, "https://kubecast.local", address, owner, ownKubelet, namespace)
			if err := os.WriteFile(values, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			release := []string{"kubecast", "../deploy/chart", "-n", namespace, "-f", values, "--wait=legacy", "--timeout", "3m"}
			s.helm(t, append([]string{"install"}, release...)...)
			if log := k.log("kubecast-preflight/preflight"); !strings.Contains(log, "nothing is missing") {
				t.Errorf("preflight after the install: %s", log)
			}
			proxy := s.startIngressNginx(t, namespace, "kubecast")
			eventSources := s.watchThrough(t, proxy, namespace, token)
			s.helm(t, append([]string{"upgrade", "--set", "config.log.level=debug"}, release...)...)
			s.helm(t, "rollback", "kubecast", "1", "-n", namespace, "--wait=legacy", "--timeout", "3m")
			s.helm(t, "test", "kubecast", "-n", namespace)
			eventSources.end(t)
			s.helm(t, "uninstall", "kubecast", "-n", namespace, "--wait", "--timeout", "2m")
			eventually(t, "nothing is left", func() error { return s.leftOf(namespace) })
			if err := tryInDatabase(address, "ALTER TABLE jobs ADD evil INT"); err == nil {
				t.Error("the user who serves could change the schema")
			}
			if err := tryInDatabase(address, "SELECT COUNT(*) FROM jobs"); err != nil {
				t.Error(err)
			}
		})
	}
}

// secretsOfChart makes the Secrets that values name.
func (s *stage) secretsOfChart(t *testing.T, namespace string) {
	t.Helper()
	if _, err := s.token("nobody"); err != nil { // makes the key
		t.Fatal(err)
	}
	public, err := os.ReadFile(s.key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]map[string]string{
		"keys":     {"cookie.key": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "ops.token": strings.Repeat("t", 64), "issuer.pub": string(public)},
		"database": {"password": "x"},
	} {
		if _, err := s.kube.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// leftOf names what is left of a release: objects with its label, and Helm's own.
func (s *stage) leftOf(namespace string) error {
	for _, scope := range [][]string{{"-n", namespace, "all,configmaps,serviceaccounts,roles,rolebindings,ingresses,networkpolicies,poddisruptionbudgets,persistentvolumeclaims,horizontalpodautoscalers"}, {"clusterroles,clusterrolebindings"}} {
		out, err := s.tryKubectl(append([]string{"get", "-o", "name", "-l", "app.kubernetes.io/instance=kubecast", "--ignore-not-found"}, scope...)...)
		var left []string
		for _, name := range strings.Fields(out) {
			if scope[0] == "-n" || strings.Contains(name, "/"+namespace+":") {
				left = append(left, name)
			}
		}
		if err != nil || len(left) > 0 {
			return fmt.Errorf("%v: %v", left, err)
		}
	}
	out, err := s.tryKubectl("get", "secrets", "-o", "name", "-l", "owner=helm", "-n", namespace)
	if err != nil || strings.TrimSpace(out) != "" {
		return fmt.Errorf("%s: %v", out, err)
	}
	return nil
}

// ingressNginx is an nginx as ingress-nginx configures it for an Ingress: each directive is what an annotation, or the default of
// one, comes to. Endpoints are the pods that are ready and not to end. ingress-nginx changes them in Lua; here nginx loads them anew.
type ingressNginx struct {
	url     string
	dir     string
	process *process.Process
}

// startIngressNginx serves the Ingress of a release, until the test ends.
func (s *stage) startIngressNginx(t *testing.T, namespace, release string) *ingressNginx {
	t.Helper()
	ingress, err := s.kube.NetworkingV1().Ingresses(namespace).Get(t.Context(), release, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s.startNginx(t, ingress, release)
}

func (s *stage) startNginx(t *testing.T, ingress *networkingv1.Ingress, release string) *ingressNginx {
	t.Helper()
	binary, err := exec.LookPath("nginx")
	if err != nil {
		if binary, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			harness.Missing(t, "nginx")
		}
	}
	namespace, address := ingress.Namespace, harness.Address(t)
	p := &ingressNginx{url: "http://" + address, dir: t.TempDir()}
	was := s.endpoints(t.Context(), namespace, release)
	write := func(endpoints []string) {
		if err := os.WriteFile(filepath.Join(p.dir, "nginx.conf"), []byte(translated(t, ingress, address, endpoints)), 0o600); err != nil {
			t.Error(err)
		}
	}
	write(was)
	if p.process, err = process.Start(process.Options{Path: binary, Args: []string{"-p", p.dir, "-c", "nginx.conf", "-e", "stderr"}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() {
		for ctx.Err() == nil {
			if now := s.endpoints(ctx, namespace, release); ctx.Err() == nil && strings.Join(now, " ") != strings.Join(was, " ") {
				write(now)
				p.process.Signal(syscall.SIGHUP)
				was = now
			}
			sleep(ctx, 200*time.Millisecond)
		}
	})
	t.Cleanup(func() {
		cancel()
		following.Wait()
		p.process.Terminate(10 * time.Second)
	})
	return p
}

// endpoints are the addresses of a release's pods that an EndpointSlice would have as ready.
func (s *stage) endpoints(ctx context.Context, namespace, release string) (all []string) {
	pods, err := s.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=gateway,app.kubernetes.io/instance=" + release})
	if err != nil {
		return nil
	}
	for _, pod := range pods.Items {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				all = append(all, pod.Status.PodIP+":8080")
			}
		}
	}
	return all
}

// translated is the configuration that an Ingress comes to.
func translated(t *testing.T, ingress *networkingv1.Ingress, address string, endpoints []string) string {
	const prefix = "nginx.ingress.kubernetes.io/"
	buffer, snippet := "4k", ""
	for key, value := range ingress.Annotations {
		switch strings.TrimPrefix(key, prefix) {
		case "proxy-buffer-size":
			buffer = value
		case "server-snippet":
			snippet = value
		default:
			if strings.HasPrefix(key, prefix) {
				t.Errorf("no translation of %s", key)
			}
		}
	}
	user, upstream, to := "", "", "return 503;"
	if os.Getuid() == 0 {
		user = "user root;\n"
	}
	if len(endpoints) > 0 {
		upstream = "upstream gateway {\n server " + strings.Join(endpoints, " max_fails=0;\n server ") + " max_fails=0;\n keepalive 320;\n}\n"
		to = "proxy_pass http://gateway;"
	}
	rule := ingress.Spec.Rules[0]
	return user + fmt.Sprintf(`daemon off; worker_processes 1; pid nginx.pid;
events { worker_connections 4096; }
http {
 access_log off; client_body_temp_path 1; proxy_temp_path 2; fastcgi_temp_path 3; uwsgi_temp_path 4; scgi_temp_path 5;
 map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
 %s server {
  listen %s; server_name %s;
  %s
  location %s {
   client_max_body_size 1m;
   proxy_set_header Host $http_host; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;
   proxy_set_header X-Request-ID $request_id; proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-For $remote_addr;
   proxy_set_header X-Forwarded-Host $http_host; proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header Proxy "";
   proxy_connect_timeout 5s; proxy_send_timeout 60s; proxy_read_timeout 60s; proxy_buffering off; proxy_buffer_size %s; proxy_buffers 4 %[6]s;
   proxy_http_version 1.1; proxy_next_upstream error timeout; proxy_next_upstream_tries 3; proxy_redirect off;
   %s
  }
 }
}
`, upstream, address, rule.Host, snippet, rule.HTTP.Paths[0].Path, buffer, to)
}

// eventSources are EventSource clients, which end for good at any answer but 200 with an event stream.
type eventSources struct {
	stop    context.CancelFunc
	running sync.WaitGroup
	last    []int
	changes int
	mu      sync.Mutex
	moves   int
	resets  bool // may be, since no gateway is there for a while
	all     int  // events
	errors  []error
}

const howManyWatch = 12

// watchThrough changes an object ten times a second, and has clients read each change of it.
func (s *stage) watchThrough(t *testing.T, proxy *ingressNginx, namespace, token string) *eventSources {
	t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "counted"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	if _, err := s.kube.CoreV1().Services(namespace).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &eventSources{stop: cancel, last: make([]int, howManyWatch)}
	t.Cleanup(func() { cancel(); w.running.Wait() })
	w.running.Go(func() {
		for ctx.Err() == nil {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, w.changes+1)
			if _, err := s.kube.CoreV1().Services(namespace).Patch(context.Background(), "counted", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				w.fault(err)
				return
			}
			w.changes++
			sleep(ctx, 100*time.Millisecond)
		}
	})
	for i := range w.last {
		w.running.Go(func() {
			if err := w.watch(ctx, i, proxy.url+"/api/v1/namespaces/"+namespace+"/services?fieldSelector=metadata.name%3Dcounted", token); err != nil {
				w.fault(fmt.Errorf("client %d: %w", i, err))
			}
		})
	}
	return w
}

func (w *eventSources) fault(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errors = append(w.errors, err)
}

// watch is one client's life.
func (w *eventSources) watch(ctx context.Context, i int, address, token string) error {
	id, retry := "", 3*time.Second
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		request.Host = "kubecast.example.org"
		request.Header = http.Header{"Accept": {"text/event-stream"}, "Authorization": {"Bearer " + token}}
		if id != "" {
			request.Header.Set("Last-Event-ID", id)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			sleep(ctx, retry)
			continue
		}
		if response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
			_ = response.Body.Close()
			return fmt.Errorf("it ended for good: %s %s", response.Status, response.Header)
		}
		err = w.read(response, i, &id, &retry)
		_ = response.Body.Close()
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.moves++
		w.mu.Unlock()
		sleep(ctx, retry)
	}
	return nil
}

// read is one connection's: each change follows the one before.
func (w *eventSources) read(response *http.Response, i int, id *string, retry *time.Duration) error {
	event, data, position := "", "", ""
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			event = value
		case "data":
			data += value
		case "id":
			position = value
		case "retry":
			if n, err := strconv.Atoi(value); err == nil {
				*retry = time.Duration(n) * time.Millisecond
			}
		case "":
			if position != "" {
				*id = position
			}
			if err := w.told(i, event, data); err != nil {
				return err
			}
			event, data, position = "", "", ""
		}
	}
	return nil
}

// events is how many were told to all.
func (w *eventSources) events() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

func (w *eventSources) told(i int, event, data string) error {
	if event != "" {
		w.mu.Lock()
		w.all++
		w.mu.Unlock()
	}
	switch event {
	case "reset":
		if w.resets {
			return nil
		}
		return fmt.Errorf("it was reset: %s", data)
	case "added", "modified":
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal([]byte(data), &object); err != nil {
			return err
		}
		n, _ := strconv.Atoi(object.Annotations["n"])
		w.mu.Lock()
		defer w.mu.Unlock()
		if event == "modified" && n != w.last[i]+1 {
			return fmt.Errorf("after change %d it was told %d", w.last[i], n)
		}
		w.last[i] = n
	}
	return nil
}

// end waits until all changes were told to all.
func (w *eventSources) end(t *testing.T) {
	t.Helper()
	all := 0
	eventually(t, "all changes are told", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for i, n := range w.last {
			if n < 100 || len(w.errors) > 0 {
				return fmt.Errorf("client %d is at %d: %v", i, n, w.errors)
			}
		}
		return nil
	})
	w.stop()
	w.running.Wait()
	for _, n := range w.last {
		all += n
	}
	if w.moves < howManyWatch || len(w.errors) > 0 {
		t.Errorf("clients came again %d times: %v", w.moves, w.errors)
	}
	t.Logf("%d changes, %d told to %d clients, which came again %d times", w.changes, all, howManyWatch, w.moves)
}
