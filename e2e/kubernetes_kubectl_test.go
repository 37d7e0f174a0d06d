package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubectlTo returns the arguments with which kubectl uses a gateway: its default cluster, or one behind a prefix. The
// gateway must speak TLS, since kubectl sends no credentials over plain HTTP.
func kubectlTo(t *testing.T, g *gateway, token, prefix string) (arguments []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: gateway
clusters: [{name: gateway, cluster: {server: %q, certificate-authority: %q}}]
contexts: [{name: gateway, context: {cluster: gateway, user: viewer}}]
users: [{name: viewer, user: {token: %q}}]
`, g.url+prefix, g.caFile, token)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--kubeconfig", file}
}

// tryKubectl runs kubectl. If it fails, its message is in the error.
func (s *stage) tryKubectl(arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), eventuallyWithin)
	defer cancel()
	out, err := s.cluster.Kubectl(ctx, nil, arguments...)
	return string(out), err
}

// admin is the token of a user who may see what the API server shows to the stage's own kubectl.
func (s *stage) admin(t *testing.T) string {
	t.Helper()
	user := strings.ToLower(t.Name())
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-admin-" + user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := s.kube.RbacV1().ClusterRoleBindings().Create(context.Background(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.kube.RbacV1().ClusterRoleBindings().Delete(context.Background(), binding.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	token, err := s.token(user)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// kubectlObjects makes the objects that kubectl is asked for. When it returns, nothing changes them any more.
func (s *stage) kubectlObjects(t *testing.T, namespaces ...string) {
	t.Helper()
	ctx := context.Background()
	s.namespaces(t, namespaces...)
	for i, namespace := range namespaces {
		for _, name := range []string{"web", "web-2", "db"} {
			labels := map[string]string{"app": strings.TrimSuffix(name, "-2"), "kubectl": namespaces[0], "n": fmt.Sprint(i)}
			if _, err := s.kube.CoreV1().Pods(namespace).Create(ctx, pod(namespace, name, labels), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.kube.CoreV1().ConfigMaps(namespace).Create(ctx, configMap(namespace, name, labels), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		suspended := true
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: namespace, Labels: map[string]string{"kubectl": namespaces[0]}},
			Spec: batchv1.JobSpec{Suspend: &suspended, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "registry.example.org/train:1"}},
			}}},
		}
		if _, err := s.kube.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.kubectl(t, "", "wait", "-n", namespace, "--for=condition=Suspended", "job/train")
	}
}

// kubectl prints the same at the gateway as at the API server.
func TestKubectlPrintsTheSame(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.secureGateway(t)
	s.kubectlObjects(t, "kubectl", "kubectl-b")
	token := s.admin(t)
	commands := []string{
		"get pods -n kubectl",
		"get pod web -n kubectl",
		"get pod web db -n kubectl",
		"get pods -A -l kubectl=kubectl",
		"get pods -A -l kubectl=kubectl -o wide",
		"get pods -A -l kubectl=kubectl,app!=db --show-labels",
		"get pods -A -l kubectl=kubectl -L app,n --no-headers",
		"get pods -A -l kubectl=kubectl --chunk-size=2",
		"get pods -A -l kubectl=kubectl --chunk-size=2 -o name",
		"get pods -n kubectl --sort-by=.metadata.labels.app",
		"get pods -n kubectl --field-selector metadata.name=web-2",
		"get pods -n kubectl --field-selector status.phase!=Running,metadata.name!=web",
		"get pods -n kubectl -o json",
		"get pods -n kubectl -o yaml",
		"get pod web -n kubectl -o yaml --show-managed-fields=false",
		"get pods -n kubectl -o jsonpath={.items[*].metadata.name}",
		"get pods -n kubectl -o custom-columns=N:.metadata.name,I:.spec.containers[0].image",
		"get pods,configmaps,jobs -n kubectl",
		"get pods,jobs -n kubectl -o name",
		"get all -n kubectl",
		"get jobs -n kubectl -o wide",
		"get job/train pod/db -n kubectl",
		"get ns kubectl kubectl-b",
		"get nodes",
		"get nodes -o name",
		"get events -n kubectl",
		"events -n kubectl",
		"describe pod web -n kubectl",
		"describe job train -n kubectl",
		"describe configmaps -n kubectl",
		"describe ns kubectl",
		"get deployments -n kubectl",
		"get pods -n nowhere",
		"get pod nothing -n kubectl",
		"get nothings",
		"api-versions",
		"explain job.spec.parallelism",
		"explain pods --recursive",
		"explain pods.spec.nothing",
		"version -o yaml",
	}
	for _, prefix := range []string{"", "/clusters/default"} {
		t.Run("at"+prefix, func(t *testing.T) {
			gateway := kubectlTo(t, g, token, prefix)
			for _, command := range commands {
				if prefix != "" && strings.HasPrefix(command, "get") && !strings.Contains(command, "-A") {
					continue // a prefix can affect only discovery, and the paths as such
				}
				arguments := strings.Fields(command)
				eventually(t, "kubectl "+command, func() error { // node heartbeats and events change
					want := failure(s.tryKubectl(arguments...))
					got := failure(s.tryKubectl(append(gateway, arguments...)...))
					if got == want || aged(want, got) && aged(got, failure(s.tryKubectl(arguments...))) {
						return nil
					}
					return fmt.Errorf("prints\n%s\nnot\n%s", got, want)
				})
			}
		})
	}
}

// printedAge is an age as kubectl prints it: two of its units at most, and blanks to fill its column.
var printedAge = regexp.MustCompile(` *\b(?:\d+[ydhms]){1,2}\b *`)

// aged is whether two prints differ in ages only, and each of the later one's is no less. A kubectl
// of a busy machine takes longer than the second after which an age prints otherwise.
func aged(earlier, later string) bool {
	ages, laterAges := printedAge.FindAllString(earlier, -1), printedAge.FindAllString(later, -1)
	return printedAge.ReplaceAllString(earlier, " AGE ") == printedAge.ReplaceAllString(later, " AGE ") &&
		slices.EqualFunc(ages, laterAges, func(a, b string) bool { return seconds(a) <= seconds(b) })
}

// seconds are those of a printed age.
func seconds(age string) (sum int) {
	number := 0
	for _, c := range strings.TrimSpace(age) {
		if unit := map[rune]int{'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'y': 365 * 86400}[c]; unit > 0 {
			sum, number = sum+number*unit, 0
		} else {
			number = number*10 + int(c-'0')
		}
	}
	return sum
}

func TestAgesMayOnlyGrow(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		earlier, later string
		aged           bool
	}{
		{"db   0/1   99s\nweb  0/1   119s", "db   0/1   101s\nweb  0/1   2m1s", true},
		{"db   0/1   99s", "db   0/1   99s", true},
		{"db   0/1   99s", "db   0/1   98s", false},
		{"db   0/1   2m", "db   0/1   119s", false},
		{"db   0/1   99s", "db   1/1   99s", false},
		{"db   0/1   99s   app=a", "db   0/1   100s  app=a", true},
		{"db   0/1   99s", "db   0/1   ", false},
	} {
		if got := aged(x.earlier, x.later); got != x.aged {
			t.Errorf("%q, then %q: %t", x.earlier, x.later, got)
		}
	}
}

// failure is what kubectl printed on either of its outputs.
func failure(out string, err error) string {
	if err == nil {
		return out
	}
	_, said, _ := strings.Cut(err.Error(), "exit status")
	return out + said
}

// Discovery names the kinds that can be read: those that the API server can list and watch. Beside
// them are only the reviews of oneself, which can be created.
func TestKubectlKnowsWhatCanBeRead(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	gateway := kubectlTo(t, s.secureGateway(t), s.admin(t), "/clusters/default")
	eventually(t, "the same resources", func() error { // other tests define kinds, too
		want, err := s.tryKubectl("api-resources", "--verbs=get,list,watch", "-o", "name")
		if err != nil {
			return err
		}
		got, err := s.tryKubectl(append(gateway, "api-resources", "-o", "name")...)
		if err != nil {
			return err
		}
		var kinds strings.Builder
		reviews := 0
		for kind := range strings.Lines(got) {
			if strings.HasPrefix(kind, "selfsubject") {
				reviews++
			} else {
				kinds.WriteString(kind)
			}
		}
		if kinds.String() != want || reviews != 3 {
			return fmt.Errorf("\n%s\nnot\n%s", got, want)
		}
		return nil
	})
	wide, err := s.tryKubectl(append(gateway, "api-resources", "-o", "wide", "--api-group=batch", "--no-headers")...)
	if err != nil || strings.Contains(wide, "create") || strings.Count(wide, "get,list,watch") != 2 {
		t.Errorf("%v\n%s", err, wide)
	}
}

// Discovery names what can be created if, and only if, the gateway answers that: reviews of oneself,
// and not those of others' tokens or rights.
func TestDiscoveryNamesTheReviewsThatAreServed(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	token := s.admin(t)
	served, refused := 0, 0
	for _, group := range []string{"authentication.k8s.io", "authorization.k8s.io"} {
		path := "/apis/" + group + "/v1"
		var there, here metav1.APIResourceList
		for _, document := range []struct {
			ask  asker
			into *metav1.APIResourceList
		}{{s.oracle(t), &there}, {g.asker(token), &here}} {
			if a := document.ask(t, path, asJSON); json.Unmarshal([]byte(a.body), document.into) != nil || a.code != http.StatusOK {
				t.Fatalf("%s: %d %s", path, a.code, a.body)
			}
		}
		for _, resource := range there.APIResources {
			address := path + "/" + resource.Name
			if resource.Namespaced {
				address = path + "/namespaces/default/" + resource.Name
			}
			a := g.send(t, http.MethodPost, address, token, fmt.Sprintf(`{"kind":%q,"apiVersion":"%s/v1","spec":{"nonResourceAttributes":{"path":"/api","verb":"get"},"namespace":"default"}}`, resource.Kind, group))
			named := slices.ContainsFunc(here.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Name && slices.Contains(r.Verbs, "create") })
			switch {
			case named && a.code == http.StatusCreated:
				served++
			case !named && a.code == http.StatusMethodNotAllowed:
				refused++
			default:
				t.Errorf("%s: in discovery %t, but answered %d %s", address, named, a.code, a.body)
			}
		}
	}
	if served != 3 || refused != 3 { // TokenReview, SubjectAccessReview and LocalSubjectAccessReview
		t.Errorf("%d are served, and %d are not", served, refused)
	}
}

// send sends a request with a body.
func (g *gateway) send(t *testing.T, method, path, token, body string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = bearer(token)
	request.Header.Set("Content-Type", asJSON)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

// kubectl explains that a gateway only reads.
func TestKubectlIsToldThatTheGatewayOnlyReads(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "kubectl-writes")
	gateway := kubectlTo(t, s.secureGateway(t), s.admin(t), "")
	for command, text := range map[string]string{
		"get pods --selector app=(":                        "unable to parse requirement: found '(', expected: identifier",
		"get pods --field-selector app.":                   "invalid selector: 'app.'; can't understand 'app.'",
		"create namespace x":                               "only reads",
		"delete namespace kubectl-writes":                  "only reads",
		"label namespace kubectl-writes a=b":               "only reads",
		"annotate namespace kubectl-writes a=b":            "only reads",
		"run x --image=y -n kubectl-writes":                "only reads",
		"get pod x -n kubectl-writes --subresource=status": "pods/status",
		"get --raw /api/v1/namespaces/x/pods/y/proxy":      "pods/proxy",
		"scale deployment/x --replicas=1":                  "",
	} {
		out, err := s.tryKubectl(append(gateway, strings.Fields(command)...)...)
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("kubectl %s: %v %s", command, err, out)
		}
	}
	if out, err := s.tryKubectl("get", "ns", "kubectl-writes", "--show-labels", "--no-headers"); err != nil || strings.Contains(out, "a=b") {
		t.Errorf("%v %s", err, out)
	}
}

// kubectl auth says what the gateway serves: whom it takes the caller for, yes where get, list and
// watch are answered, and no to what only the API server does. Of what is served, it says the same
// as at the API server.
func TestKubectlAuthSaysWhatTheGatewayServes(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "auth-a", "auth-b")
	s.allowTeam(t, "auth-a")
	token, err := s.token("auth-user", "auth-a")
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"rbac", "sar"} {
		t.Run(mode, func(t *testing.T) {
			g := s.secureGateway(t)
			if mode == "sar" {
				options := overTLS(t)
				options.config = "authorizer: {mode: sar}\n"
				g = s.startGateway(t, options)
				g.waitReady(t)
			}
			gateway := kubectlTo(t, g, token, "")
			ask := func(command string) string {
				t.Helper()
				out, err := s.tryKubectl(append(gateway, strings.Fields(command)...)...)
				return failure(out, err)
			}
			if who := ask("auth whoami"); !strings.Contains(who, "auth-user") || !strings.Contains(who, "auth-a") {
				t.Errorf("whoami: %s", who)
			}
			for command, want := range map[string]string{
				"auth can-i list pods -n auth-a":                   "yes",
				"auth can-i watch jobs.batch -n auth-a":            "yes",
				"auth can-i list pods -A":                          "yes", // a part of them
				"auth can-i list pods -n auth-b":                   "no",
				"auth can-i list nodes":                            "no",
				"auth can-i create pods -n auth-a":                 "no",
				"auth can-i get pods --subresource=log -n auth-a":  "yes",
				"auth can-i get pods --subresource=log -n auth-b":  "no",
				"auth can-i get pods --subresource=exec -n auth-a": "no",
				"auth can-i get /version":                          "yes",
				"auth can-i get /metrics":                          "no",
				"auth can-i list nothings -n auth-a":               "no",
			} {
				out, err := s.tryKubectl(append(gateway, strings.Fields(command)...)...)
				said := strings.TrimSpace(out)
				if err != nil && strings.Contains(err.Error(), "exit status 1") { // what it printed is not told then
					said = "no"
				}
				if said != want {
					t.Errorf("kubectl %s: %q, %v, want %s", command, said, err, want)
				}
			}
			for namespace, lists := range map[string]bool{"auth-a": true, "auth-b": false} {
				rules := ask("auth can-i --list -n " + namespace)
				if pods := strings.Contains(rules, "\npods "); pods != lists || !strings.Contains(rules, "selfsubjectaccessreviews.authorization.k8s.io") || strings.Contains(rules, "delete") {
					t.Errorf("can-i --list in %s:\n%s", namespace, rules)
				}
			}
		})
	}
}
