package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubecast/kubecast/internal/app"
	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// rendered are the objects that the chart makes of one of its cases, in a namespace of the test's.
func rendered(t *testing.T, name, namespace string) (objects []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../deploy/charttest/testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := strings.NewReplacer("namespace: kubecast", "namespace: "+namespace, "namespace: security", "namespace: "+namespace,
		"kubecast:gateway", namespace+":gateway", "kubecast/revoked", namespace+"/revoked", "security/revoked", namespace+"/revoked")
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(elsewhere.Replace(string(text))), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		switch {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatal(name, err)
		}
		objects = append(objects, object)
	}
}

// applyRendered makes some of a case's objects, until the test ends.
func (s *stage) applyRendered(t *testing.T, name, namespace string, which func(*unstructured.Unstructured) bool) {
	t.Helper()
	var manifests strings.Builder
	for _, object := range rendered(t, name, namespace) {
		if which(object) {
			text, err := object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			manifests.Write(text)
		}
	}
	s.kubectl(t, manifests.String(), "apply", "--warnings-as-errors", "-f", "-")
	t.Cleanup(func() { s.kubectl(t, manifests.String(), "delete", "--ignore-not-found", "--wait=false", "-f", "-") })
}

// chartCases are the cases that the chart is rendered of.
func chartCases(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../deploy/charttest/testdata/*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	return names
}

// A real API server, in a namespace that enforces the strictest pod security, takes what the chart makes of each case, and warns of
// nothing. Kinds of Prometheus Operator and of the Gateway API are not there; deploy/charttest reads them by their types.
func TestTheAPIServerTakesWhatTheChartMakes(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	const namespace = "charted"
	s.namespaces(t, namespace)
	s.kubectl(t, "", "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted")
	s.kubectl(t, "", "create", "serviceaccount", "gateway-kubecast", "-n", namespace) // a pod, as of a hook, is admitted only with its own
	s.kubectl(t, "", "create", "serviceaccount", "existing", "-n", namespace)
	for _, name := range chartCases(t) {
		var manifests bytes.Buffer
		for _, object := range rendered(t, name, namespace) {
			if group := object.GroupVersionKind().Group; group == "monitoring.coreos.com" || group == "gateway.networking.k8s.io" || object.GetKind() == "Namespace" {
				continue
			}
			text, err := object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			manifests.Write(text)
		}
		out, err := s.cluster.Kubectl(context.Background(), &manifests, "apply", "--dry-run=server", "--warnings-as-errors", "--validate=strict", "-f", "-")
		if err != nil {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
}

// permission is one verb of one resource of a role.
type permission struct{ group, resource, verb string }

// permissions are those of a role's rules.
func permissions(rules []rbacv1.PolicyRule) (all []permission) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, permission{group, resource, verb})
				}
			}
		}
	}
	return all
}

// without are rules that permit what others do, but for what is taken.
func without(rules []rbacv1.PolicyRule, taken map[permission]bool) (left []rbacv1.PolicyRule) {
	for _, rule := range rules {
		for _, p := range permissions([]rbacv1.PolicyRule{rule}) {
			if !taken[p] {
				left = append(left, rbacv1.PolicyRule{APIGroups: []string{p.group}, Resources: []string{p.resource}, ResourceNames: rule.ResourceNames, Verbs: []string{p.verb}})
			}
		}
	}
	return left
}

// charted is a case of the chart, whose rights the cluster has.
type charted struct {
	stage      *stage
	config     string // of the gateway, with files that are there
	kubeconfig string
	role       rbacv1.ClusterRole
	revoked    rbacv1.Role // empty: there is none
}

// The gateway's role has what it needs, and nothing else: with it nothing is missing, and of whatever is taken away, one verb of
// all resources after the other, each is named, and nothing that is there. The cluster has all kinds that the chart's cases name.
func TestEachVerbOfTheChartsRoleIsNeeded(t *testing.T) {
	t.Parallel()
	s := ready(t, func() (*stage, error) { return newStage("rights", 1) }) // those kinds would be others' for tests beside this one
	t.Cleanup(s.cluster.Stop)
	const namespace = "charted-rights"
	s.namespaces(t, namespace)
	s.defineKinds(t, chartedKinds...)
	s.kubectl(t, "", "create", "serviceaccount", "gateway-kubecast", "-n", namespace)
	kubeconfig := s.serviceAccountKubeconfig(t, namespace, "gateway-kubecast")
	tried := map[permission]bool{}
	for _, name := range []string{"default", "login", "sar", "policy", "sqlite", "postgres"} {
		c := s.grantCharted(t, name, namespace, kubeconfig)
		if name == "postgres" {
			c.onPostgres(t)
		}
		c.mustMiss(t, name+" with all its rights", nil)
		byVerb := map[string]map[permission]bool{}
		for _, p := range slices.Concat(permissions(c.role.Rules), permissions(c.revoked.Rules)) {
			if byVerb[p.verb] == nil {
				byVerb[p.verb] = map[permission]bool{}
			}
			// What another case has shown is not asked again.
			if !tried[p] {
				tried[p], byVerb[p.verb][p] = true, true
			}
		}
		for verb, taken := range byVerb {
			if len(taken) > 0 {
				c.take(t, taken)
				c.mustMiss(t, name+" without "+verb, taken)
			}
		}
	}
	shown := map[string]bool{}
	for p := range tried {
		shown[p.resource+"."+p.group] = true
	}
	for _, kind := range append([]string{"clusterqueues/pendingworkloads.visibility.kueue.x-k8s.io"}, chartedKinds...) {
		if !shown[kind] {
			t.Errorf("no case has rights of %s", kind)
		}
	}
	if len(tried) < 80 {
		t.Errorf("only %d verbs were tried: %v", len(tried), slices.Collect(maps.Keys(tried)))
	}
}

// chartedKinds are those that the chart's cases name and Kubernetes does not have.
var chartedKinds = []string{
	"localqueues.kueue.x-k8s.io", "clusterqueues.kueue.x-k8s.io", "workloads.kueue.x-k8s.io",
	"queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh",
	"jobsets.jobset.x-k8s.io", "rayjobs.ray.io", "trainjobs.trainer.kubeflow.org",
}

// defineKinds makes definitions without a schema of kinds, such as rayjobs.ray.io: rights are of names alone.
func (s *stage) defineKinds(t *testing.T, names ...string) {
	t.Helper()
	var all strings.Builder
	for _, name := range names {
		plural, group, _ := strings.Cut(name, ".")
		fmt.Fprintf(&all, `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: %s
  scope: Namespaced
  names: {plural: %s, singular: %s, kind: %s, listKind: %[5]sList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, name, group, plural, strings.TrimSuffix(plural, "s"), "A"+strings.TrimSuffix(plural, "s"))
	}
	s.kubectl(t, all.String(), "apply", "-f", "-")
	s.kubectl(t, "", append([]string{"wait", "--for=condition=Established", "--timeout=60s", "crd"}, names...)...)
}

// onPostgres gives a case a PostgreSQL, whose schema is there, in place of the one that its configuration names.
func (c *charted) onPostgres(t *testing.T) {
	t.Helper()
	server := dbtest.Postgres()
	runServer(t, server)
	address := twoUsers(t, server, "rights_owner", "rights")
	owner := "history: {database: '" + strings.Replace(address, "rights@", "rights_owner@", 1) + "'}\n"
	file := filepath.Join(t.TempDir(), "owner.yaml")
	if err := os.WriteFile(file, []byte(owner), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(c.stage.gateway, "history", "migrate", "--config", file).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	named := regexp.MustCompile(`postgres://\S+`)
	if !named.MatchString(c.config) {
		t.Fatal(c.config)
	}
	c.config = named.ReplaceAllString(c.config, address)
}

// take leaves all rights of the chart's roles but some.
func (c *charted) take(t *testing.T, taken map[permission]bool) {
	t.Helper()
	role := c.role.DeepCopy()
	role.Rules = without(c.role.Rules, taken)
	_, err := c.stage.kube.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{})
	if err == nil && len(c.revoked.Rules) > 0 {
		revoked := c.revoked.DeepCopy()
		revoked.Rules = without(c.revoked.Rules, taken)
		_, err = c.stage.kube.RbacV1().Roles(revoked.Namespace).Update(t.Context(), revoked, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// mustMiss waits until preflight names what was taken away, and nothing else.
func (c *charted) mustMiss(t *testing.T, what string, taken map[permission]bool) {
	t.Helper()
	eventually(t, what, func() error {
		out, err := c.preflight(t)
		if (err == nil) != (len(taken) == 0) {
			return fmt.Errorf("%v: %s", err, out)
		}
		named := map[permission]bool{}
		for line := range strings.Lines(out) {
			if missing, is := strings.CutPrefix(line, "  missing: "); is {
				verbs, of, _ := strings.Cut(missing, " on ")
				of, _, _ = strings.Cut(of, " ")
				resource, group, _ := strings.Cut(of, ".")
				for verb := range strings.SplitSeq(verbs, ", ") {
					named[permission{group, resource, verb}] = true
				}
			}
		}
		if !maps.Equal(named, taken) {
			return fmt.Errorf("taken were %v: %s", slices.Collect(maps.Keys(taken)), out)
		}
		return nil
	})
}

// grantCharted gives a ServiceAccount the rights that the chart makes of a case, and nobody else.
func (s *stage) grantCharted(t *testing.T, name, namespace, kubeconfig string) *charted {
	t.Helper()
	c := &charted{stage: s, kubeconfig: kubeconfig}
	s.applyRendered(t, name, namespace, func(o *unstructured.Unstructured) bool {
		return strings.HasSuffix(o.GetKind(), "Role") || strings.HasSuffix(o.GetKind(), "RoleBinding")
	})
	for _, object := range rendered(t, name, namespace) {
		var err error
		switch kind := object.GetKind(); {
		case kind == "ConfigMap" && object.GetName() == "gateway-kubecast":
			c.config, _, err = unstructured.NestedString(object.Object, "data", "gateway.yaml")
		case kind == "ClusterRole":
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &c.role)
		case kind == "Role":
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &c.revoked)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for file, text := range map[string]string{"cookie.key": base64.StdEncoding.EncodeToString(make([]byte, 32)), "ops.token": strings.Repeat("t", 64), "client-secret": "secret", "password": "x"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.config = strings.NewReplacer("/etc/kubecast-keys", dir, "/etc/kubecast-history", dir, "/var/lib/kubecast", dir).Replace(c.config)
	return c
}

// preflight is what the gateway finds missing, with the case's configuration and rights.
func (c *charted) preflight(t *testing.T) (string, error) {
	t.Helper()
	cfg, err := config.Parse([]byte(c.config))
	if err != nil {
		t.Fatalf("%v\n%s", err, c.config)
	}
	cfg.Clusters[0].Kubeconfig = c.kubeconfig
	var out bytes.Buffer
	err = app.Preflight(t.Context(), app.Options{Config: cfg, Version: "test"}, &out)
	return out.String(), err
}
