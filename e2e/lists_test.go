package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// list is a Kubernetes list with its items as they were sent.
type list struct {
	Kind, APIVersion string
	Metadata         struct{ ResourceVersion, Continue string }
	Items            []json.RawMessage
}

func parseList(t *testing.T, text string) list {
	t.Helper()
	var l list
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return l
}

// list asks the gateway for a list.
func (g *gateway) list(t *testing.T, token, path string) list {
	t.Helper()
	a := g.get(t, token, path)
	if a.code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, a.code, a.body)
	}
	return parseList(t, a.body)
}

// difference returns how two lists of items differ: in their order, or in an item.
func difference(have, want []json.RawMessage) error {
	for i := range max(len(have), len(want)) {
		switch {
		case i >= len(have):
			return fmt.Errorf("%d items are there, not %d; the first that is missing: %s", len(have), len(want), want[i])
		case i >= len(want):
			return fmt.Errorf("%d items are there, not %d; the first too many: %s", len(have), len(want), have[i])
		}
		text, err := trim(want[i])
		if err != nil {
			return err
		}
		if !sameJSON(string(have[i]), text) {
			return fmt.Errorf("item %d is\n%s\nnot\n%s", i, have[i], text)
		}
	}
	return nil
}

// named returns the items of a list with their kind, as kubectl prints them.
func (l list) named(t *testing.T) []json.RawMessage {
	t.Helper()
	items := make([]json.RawMessage, len(l.Items))
	for i, item := range l.Items {
		var object map[string]any
		if err := json.Unmarshal(item, &object); err != nil {
			t.Fatal(err)
		}
		object["kind"], object["apiVersion"] = strings.TrimSuffix(l.Kind, "List"), l.APIVersion
		var err error
		if items[i], err = json.Marshal(object); err != nil {
			t.Fatal(err)
		}
	}
	return items
}

// The lists of a kind equal those of the API server: the same items in the same order, whatever selects them.
func TestListEqualsKubectls(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	token := s.viewer(t)
	// Orders go wrong where the name of one namespace begins with that of another.
	s.namespaces(t, "list", "list-b")
	manifest, group := crd("lists")
	s.kubectl(t, manifest, "apply", "-f", "-")
	s.allow(t, strings.ToLower(t.Name()), group, "trainings")
	trainings := schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "trainings"}
	s.kubectl(t, "", "wait", "--for=condition=Established", "crd", "trainings."+group)
	s.fill(t, trainings)
	mustKnow(t, token, "/apis/"+group+"/v1alpha1/trainings", g)

	kinds := []struct {
		kind       schema.GroupVersionResource
		name       string
		namespaces bool
	}{
		{podsKind, "Pod", true},
		{jobsKind, "Job", true},
		{configMapsKind, "ConfigMap", true},
		{trainings, "Training", true},
		{schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "Namespace", false},
		{schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, "Node", false},
	}
	for _, k := range kinds {
		t.Run(k.kind.Resource, func(t *testing.T) {
			scopes := []scope{
				{kind: k.kind},
				{kind: k.kind, labelSelector: "app=a"},
				{kind: k.kind, labelSelector: "app in (a,b),tier!=db,!absent"},
				{kind: k.kind, labelSelector: "app notin (a)"},
				{kind: k.kind, fieldSelector: "metadata.name=item-3"},
				{kind: k.kind, fieldSelector: "metadata.name!=item-3", labelSelector: "app"},
				{kind: k.kind, labelSelector: "app=nothing"},
			}
			if k.namespaces {
				scopes = append(scopes, scope{kind: k.kind, namespace: "list"}, scope{kind: k.kind, namespace: "list-b", labelSelector: "app=b"},
					scope{kind: k.kind, namespace: "absent"}, scope{kind: k.kind, fieldSelector: "metadata.namespace=list"})
			}
			if k.kind == podsKind {
				scopes = append(scopes, scope{kind: k.kind, fieldSelector: "status.phase=Pending,spec.nodeName="},
					scope{kind: k.kind, namespace: "list", fieldSelector: "status.phase!=Pending"})
			}
			for _, scope := range scopes {
				s.compareLists(t, g, token, scope, k.name)
			}
		})
	}
	t.Run("kubectl", func(t *testing.T) { s.compareWithKubectl(t, g, token, group) })
}

// fill makes objects to list. When it returns, they exist, and nothing changes them any more.
func (s *stage) fill(t *testing.T, trainings schema.GroupVersionResource) {
	t.Helper()
	ctx := context.Background()
	for i := range 8 {
		namespace, name := []string{"list", "list-b"}[i%2], fmt.Sprintf("item-%d", i)
		labels := map[string]string{"app": []string{"a", "b", "c"}[i%3], "tier": []string{"db", "web"}[i/4]}
		_, err := s.kube.CoreV1().Pods(namespace).Create(ctx, pod(namespace, name, labels), metav1.CreateOptions{})
		if err == nil {
			_, err = s.kube.CoreV1().ConfigMaps(namespace).Create(ctx, configMap(namespace, name, labels), metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the training is made", func() error { // the API server may not know the kind at once
			training := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": trainings.GroupVersion().String(), "kind": "Training",
				"spec": map[string]any{"replicas": int64(i), "rate": 0.125, "big": int64(1) << 53, "none": nil, "list": []any{}},
			}}
			training.SetName(name)
			training.SetLabels(labels)
			_, err := s.dynamic.Resource(trainings).Namespace(namespace).Create(ctx, training, metav1.CreateOptions{})
			return err
		})
	}
	// Applied objects have the annotation that the gateway leaves out.
	s.kubectl(t, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied", "namespace": "list", "labels": {"app": "a"}}, "data": {"k": "v"}}`,
		"apply", "-f", "-")
	s.kubectl(t, suspendedJob("list", "suspended", "a"), "apply", "-f", "-")
	s.kubectl(t, suspendedJob("list-b", "suspended", "b"), "create", "-f", "-")
	eventually(t, "the jobs are seen by their controller", func() error {
		for _, namespace := range []string{"list", "list-b"} {
			if out := s.kubectl(t, "", "get", "job", "-n", namespace, "suspended", "-o", "jsonpath={.status.conditions[0].type}"); out != "Suspended" {
				return fmt.Errorf("%s: %q", namespace, out)
			}
		}
		return nil
	})
}

func suspendedJob(namespace, name, app string) string {
	return fmt.Sprintf(`{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": %q, "namespace": %q, "labels": {"app": %q}},
		"spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}}}`, name, namespace, app)
}

// compareLists compares a list of the gateway with the API server's at the same version.
func (s *stage) compareLists(t *testing.T, g *gateway, token string, scope scope, kind string) {
	t.Helper()
	path := scope.path()
	have := g.list(t, token, path)
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	want := parseList(t, s.kubectl(t, "", "get", "--raw",
		path+separator+"resourceVersionMatch=Exact&resourceVersion="+have.Metadata.ResourceVersion))
	apiVersion := scope.kind.GroupVersion().String()
	if have.Kind != kind+"List" || have.APIVersion != apiVersion {
		t.Errorf("%s: the list is a %s of %s", path, have.Kind, have.APIVersion)
	}
	if have.Metadata.ResourceVersion != want.Metadata.ResourceVersion {
		t.Errorf("%s: version %s, not %s", path, have.Metadata.ResourceVersion, want.Metadata.ResourceVersion)
	}
	if err := difference(have.Items, want.Items); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// compareWithKubectl compares lists of objects that do not change with the output of kubectl get -o json.
func (s *stage) compareWithKubectl(t *testing.T, g *gateway, token, group string) {
	for path, args := range map[string][]string{
		"/api/v1/namespaces/list/pods":                                            {"pods", "-n", "list"},
		"/api/v1/namespaces/list-b/pods?labelSelector=app%3Db":                    {"pods", "-n", "list-b", "-l", "app=b"},
		"/api/v1/pods?fieldSelector=metadata.namespace%3Dlist,metadata.name!%3Dx": {"pods", "-A", "--field-selector", "metadata.namespace=list,metadata.name!=x"},
		"/api/v1/namespaces/list/configmaps":                                      {"configmaps", "-n", "list"},
		"/apis/batch/v1/namespaces/list/jobs":                                     {"jobs", "-n", "list"},
		"/apis/" + group + "/v1alpha1/namespaces/list/trainings":                  {"trainings." + group, "-n", "list"},
	} {
		want := parseList(t, s.kubectl(t, "", append([]string{"get", "-o", "json"}, args...)...))
		if len(want.Items) == 0 {
			t.Fatalf("kubectl get %q: nothing", args)
		}
		eventually(t, "the gateway lists what kubectl does", func() error {
			return difference(g.list(t, token, path).named(t), want.Items)
		})
	}
}

// A single object equals that of kubectl get.
func TestGetEqualsKubectls(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	s.namespaces(t, "get")
	if _, err := s.kube.CoreV1().Pods("get").Create(context.Background(), pod("get", "one", map[string]string{"app": "a"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	want, err := trim([]byte(s.kubectl(t, "", "get", "pod", "-n", "get", "one", "-o", "json")))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the gateway has the pod", func() error {
		a := g.get(t, s.viewer(t), "/api/v1/namespaces/get/pods/one")
		if a.code != http.StatusOK || !sameJSON(a.body, want) {
			return fmt.Errorf("%d %s, not %s", a.code, a.body, want)
		}
		return nil
	})
}
