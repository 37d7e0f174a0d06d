package e2e

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubecast/kubecast/e2e/process"
)

// A cluster that enforces the strictest pod security accepts the manifests. Their configuration is valid, and their
// ServiceAccount may do what the gateway needs in each mode, and nothing else.
func TestManifestsAreWhatTheGatewayNeeds(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	t.Cleanup(func() {
		s.kubectl(t, "", "delete", "--wait=false", "--ignore-not-found", "-f", "../deploy/kubernetes.yaml")
	})
	if said := s.kubectl(t, "", "apply", "--warnings-as-errors", "-f", "../deploy/kubernetes.yaml"); !strings.Contains(said, "deployment.apps/gateway created") {
		t.Error(said)
	}
	// The pods are simulated, but admitted like real ones.
	s.kubectl(t, "", "rollout", "status", "-n", "kubecast", "deployment/gateway", "--timeout=60s")
	const container = `{.spec.template.spec.containers[0]`
	for path, want := range map[string]string{
		container + `.securityContext.readOnlyRootFilesystem}`:                  "true",
		container + `.securityContext.capabilities.drop}`:                       `["ALL"]`,
		`{.spec.template.spec.securityContext.runAsNonRoot}`:                    "true",
		container + `.readinessProbe.httpGet.path}`:                             "/readyz",
		container + `.livenessProbe.httpGet.path}`:                              "/livez",
		`{.metadata.namespace} {.spec.template.spec.serviceAccountName}`:        "kubecast gateway",
		`{range .spec.template.spec.volumes[*]}{.name} {end}`:                   "config keys ",
		container + `.volumeMounts[?(@.name=="config")].mountPath}`:             "/etc/kubecast",
		container + `.volumeMounts[?(@.name=="keys")].mountPath}`:               "/etc/kubecast-keys",
		`{.spec.template.spec.volumes[?(@.name=="keys")].secret.secretName}`:    "gateway",
		`{.spec.template.spec.volumes[?(@.name=="config")].configMap.name}`:     "gateway",
		container + `.ports[*].containerPort} {.spec.strategy..maxUnavailable}`: "8080 9090 0",
		`{.spec.template.spec.securityContext.seccompProfile.type}`:             "RuntimeDefault",
		container + `.securityContext.allowPrivilegeEscalation}`:                "false",
		`{.spec.template.spec.hostNetwork}{.spec.template.spec.hostPID}`:        "",
		`{.spec.template.spec.automountServiceAccountToken}`:                    "",
		container + `.resources.limits.memory}`:                                 "832Mi",
	} {
		if got := s.kubectl(t, "", "get", "-n", "kubecast", "deployment/gateway", "-o", "jsonpath="+path); got != want {
			t.Errorf("%s: %q, not %q", path, got, want)
		}
	}
	config := s.kubectl(t, "", "get", "-n", "kubecast", "configmap/gateway", "-o", `jsonpath={.data.gateway\.yaml}`)
	s.mustBeValid(t, config)
	if !strings.Contains(config, "/etc/kubecast-keys/cookie.key") || !strings.Contains(config, "tokenFile: /etc/kubecast-keys/ops.token") || strings.Contains(config, "0.0.0.0/0") {
		t.Error(config)
	}
	s.withVolume(t)

	kubeconfig := s.serviceAccountKubeconfig(t, "kubecast", "gateway")
	token := s.admin(t)
	served := func(g *gateway) error {
		for path, want := range map[string]int{
			"/api/v1/pods?limit=1": http.StatusOK, "/apis/batch/v1/jobs?limit=1": http.StatusOK, "/apis/apps/v1/deployments?limit=1": http.StatusOK,
			"/api/v1/secrets": http.StatusServiceUnavailable, // the gateway may not read them, whoever asks
		} {
			if a := g.get(t, token, path); a.code != want {
				return fmt.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
		return nil
	}
	g := s.startGateway(t, gatewayOptions{kubeconfig: kubeconfig})
	g.waitReady(t)
	eventually(t, "mode rbac", func() error { return served(g) })
	if code, body := g.readyz(); strings.Contains(body, "missing") {
		t.Errorf("%d %s", code, body)
	}
	if out := s.preflight(t, kubeconfig, "history: {database: none}\n"); !strings.Contains(out, "nothing is missing") || !strings.Contains(out, "may not list and watch it: ") || !strings.Contains(out, "secrets") {
		t.Error(out)
	}
	if out := s.preflight(t, kubeconfig, "history: {database: none}\nauthorizer: {mode: sar}\n"); !strings.Contains(out, "missing: create on subjectaccessreviews.authorization.k8s.io (authorizer.mode: sar)") {
		t.Error(out)
	}
	g = s.startGateway(t, gatewayOptions{kubeconfig: kubeconfig, config: "authorizer: {mode: sar}\n", auth: "  serviceAccounts: {audiences: [kubecast]}\n"})
	g.waitReady(t)
	if a := g.get(t, token, "/api/v1/pods?limit=1"); a.code != http.StatusServiceUnavailable {
		t.Errorf("without the permission to ask: %d %s", a.code, a.body)
	}
	isRole := func(o *unstructured.Unstructured) bool { return o.GetKind() == "ClusterRole" }
	s.applyRendered(t, "sar", "kubecast", isRole)
	s.kubectl(t, "", "create", "clusterrolebinding", "kubecast-sar", "--clusterrole=kubecast:gateway-kubecast", "--serviceaccount=kubecast:gateway")
	t.Cleanup(func() { s.kubectl(t, "", "delete", "clusterrolebinding", "kubecast-sar", "--wait=false") })
	eventually(t, "mode sar", func() error { return served(g) })
	robot := strings.TrimSpace(s.kubectl(t, "", "create", "token", "gateway", "-n", "kubecast", "--audience", "kubecast"))
	eventually(t, "a ServiceAccount is known", func() error {
		if a := g.get(t, robot, "/auth/me"); a.code != http.StatusOK || !strings.Contains(a.body, "system:serviceaccount:kubecast:gateway") {
			return errors.New(a.body)
		}
		return nil
	})
	for _, forbidden := range []string{"get secrets", "create pods", "delete pods", "patch deployments.apps", "impersonate users", "create serviceaccounts/token"} {
		verb, resource, _ := strings.Cut(forbidden, " ")
		out, err := s.tryKubectl("auth", "can-i", verb, resource, "-A", "--as", "system:serviceaccount:kubecast:gateway")
		if failure(out, err) == "" || strings.HasPrefix(out, "yes") {
			t.Errorf("the gateway may %s: %s %v", forbidden, out, err)
		}
	}
}

// mustBeValid has the gateway check a configuration, with the files that a volume has in the cluster.
func (s *stage) mustBeValid(t *testing.T, config string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "gateway.yaml")
	for name, text := range map[string]string{
		file: strings.ReplaceAll(config, "/etc/kubecast-keys", dir), filepath.Join(dir, "cookie.key"): base64.StdEncoding.EncodeToString(make([]byte, 32)), filepath.Join(dir, "ops.token"): strings.Repeat("t", 64),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check, err := process.Start(process.Options{Path: s.gateway, Args: []string{"check", "--config", file, "--kubeconfig", s.cluster.Kubeconfig()}})
	if err != nil {
		t.Fatal(err)
	}
	if check.ExitCode() != 0 || strings.Contains(check.Stdout.String(), "warning") {
		t.Errorf("%s%s%s", config, check.Stdout, check.Stderr)
	}
}

// preflight is what the gateway finds missing of a configuration.
func (s *stage) preflight(t *testing.T, kubeconfig, config string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(process.Options{Path: s.gateway, Args: []string{"preflight", "--config", file, "--kubeconfig", kubeconfig}})
	if err != nil {
		t.Fatal(err)
	}
	if code := p.ExitCode(); (code == 0) != strings.Contains(p.Stdout.String(), "nothing is missing") {
		t.Errorf("exit code %d: %s%s", code, p.Stdout, p.Stderr)
	}
	return p.Stdout.String()
}

// withVolume runs what the chart makes for a history in a file: its pod waits for a volume, and is never there twice.
func (s *stage) withVolume(t *testing.T) {
	t.Helper()
	s.applyRendered(t, "sqlite", "kubecast", func(o *unstructured.Unstructured) bool { return o.GetAnnotations()["helm.sh/hook"] == "" })
	s.bindVolume(t, "kubecast", "gateway-kubecast-history")
	s.kubectl(t, "", "rollout", "status", "-n", "kubecast", "deployment/gateway-kubecast", "--timeout=60s")
	if got := s.kubectl(t, "", "get", "-n", "kubecast", "deployment/gateway-kubecast", "-o", "jsonpath={.status.readyReplicas} {.spec.strategy}"); got != `1 {"type":"Recreate"}` {
		t.Error(got)
	}
}

// bindVolume binds a claim of the StorageClass fast to a volume: the cluster has no controllers for them.
func (s *stage) bindVolume(t *testing.T, namespace, claim string) {
	t.Helper()
	name := "e2e-" + namespace
	volume := fmt.Sprintf(`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":%q},"spec":{"accessModes":["ReadWriteOnce"],
		"capacity":{"storage":"50Gi"},"hostPath":{"path":"/history"},"storageClassName":"fast","claimRef":{"namespace":%q,"name":%q}}}`, name, namespace, claim)
	s.kubectl(t, volume, "apply", "-f", "-")
	patch := func(what, patch string, args ...string) {
		s.kubectl(t, "", append([]string{"patch", "-n", namespace, what, "--type=merge", "-p", patch}, args...)...)
	}
	t.Cleanup(func() {
		patch("pvc/"+claim, `{"metadata":{"finalizers":null}}`)
		patch("pv/"+name, `{"metadata":{"finalizers":null}}`)
		s.kubectl(t, volume, "delete", "--wait=false", "-f", "-")
	})
	patch("pvc/"+claim, fmt.Sprintf(`{"metadata":{"annotations":{"pv.kubernetes.io/bind-completed":"yes"}},"spec":{"volumeName":%q}}`, name))
	patch("pvc/"+claim, `{"status":{"phase":"Bound","accessModes":["ReadWriteOnce"],"capacity":{"storage":"50Gi"}}}`, "--subresource=status")
}

// serviceAccountKubeconfig writes a kubeconfig with a ServiceAccount's token.
func (s *stage) serviceAccountKubeconfig(t *testing.T, namespace, name string) (file string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(s.cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(s.kubectl(t, "", "create", "token", name, "-n", namespace))
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	}
	file = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}
