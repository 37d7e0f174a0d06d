package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

var definitionsKind = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Kinds and their versions come and go while the gateway runs. A kind is served once it is installed, each version in
// its own form. The streams of a removed kind end with the reason.
func TestKindsComeAndGo(t *testing.T) {
	t.Parallel()
	onStage(t).comeAndGo(t, "kinds", false)
}

// The same holds if the gateway may not watch the definitions.
func TestKindsComeAndGoUnwatched(t *testing.T) {
	t.Parallel()
	onStage(t).comeAndGo(t, "kinds-unwatched", true)
}

func (s *stage) comeAndGo(t *testing.T, name string, limited bool) {
	manifest, group := crd(name)
	second := strings.Replace(manifest, "  versions:\n", "  versions:\n  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n", 1)
	opts := gatewayOptions{config: "log: {level: debug}\n"}
	if limited {
		opts.kubeconfig = s.limitedKubeconfig(t, name)
		s.allow(t, "system:serviceaccount:"+name+":gateway", group, "trainings")
	} else {
		s.namespaces(t, name)
	}
	g := s.startGateway(t, opts)
	g.waitReady(t)
	token := s.viewer(t)
	s.allow(t, strings.ToLower(t.Name()), group, "trainings")
	trainings := s.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "trainings"}).Namespace(name)
	path := func(version string) string {
		return "/apis/" + group + "/" + version + "/namespaces/" + name + "/trainings"
	}
	served := func(version string, code int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s is answered with %d", version, code), func() error {
			if a := g.get(t, token, path(version)); a.code != code {
				return fmt.Errorf("%d %s", a.code, a.body)
			}
			return nil
		})
	}
	mustKnow(t, token, path("v1alpha1"), g)
	s.mustBeAbsent(t, g, token, path("v1alpha1"))
	for round := range 2 { // a removed kind can be installed again
		s.kubectl(t, second, "apply", "-f", "-")
		t.Cleanup(func() {
			err := s.dynamic.Resource(definitionsKind).Delete(context.Background(), "trainings."+group, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		})
		eventually(t, "the API server serves it", func() error {
			_, err := trainings.List(context.Background(), metav1.ListOptions{})
			return err
		})
		installed := time.Now()
		served("v1alpha1", http.StatusOK)
		served("v1beta1", http.StatusOK)
		t.Logf("served %v after the API server does", time.Since(installed).Round(time.Millisecond))

		old := openAs(t, g, token, path("v1alpha1"), nil)
		old.find(t, "synced")
		beta := openAs(t, g, token, path("v1beta1"), nil)
		beta.find(t, "synced")
		mustCreate(t, trainings, group, fmt.Sprintf("run-%d", round))
		for version, stream := range map[string]*stream{"v1alpha1": old, "v1beta1": beta} {
			if added := stream.mustEvent(t, "added"); !strings.Contains(added.data, `"apiVersion":"`+group+"/"+version+`"`) {
				t.Errorf("%s: %s", version, added.data)
			}
		}

		_, err := s.dynamic.Resource(definitionsKind).Patch(context.Background(), "trainings."+group, types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/spec/versions/0/served","value":false}]`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if reason := beta.find(t, "goodbye").reason(t); reason != "gone" {
			t.Errorf("the version that is not served any more: goodbye %s", reason)
		}
		served("v1beta1", http.StatusNotFound)
		mustCreate(t, trainings, group, fmt.Sprintf("late-%d", round))
		eventually(t, "the other version goes on", func() error {
			if added := old.find(t, "added"); !strings.Contains(added.data, `"late-`) {
				return fmt.Errorf("%s", added.data)
			}
			return nil
		})

		removed, logged := time.Now(), len(g.log())
		s.kubectl(t, "", "delete", "crd", "trainings."+group)
		gone := map[string]bool{}
		for {
			event := old.mustNext(t)
			if event.event == "deleted" {
				for _, object := range []string{"run", "late"} {
					gone[object] = gone[object] || strings.Contains(event.data, fmt.Sprintf(`"name":"%s-%d"`, object, round))
				}
			}
			if event.event == "goodbye" {
				if reason := event.reason(t); reason != "gone" {
					t.Errorf("the kind that was removed: goodbye %s", reason)
				}
				break
			}
		}
		t.Logf("gone %v after it was removed", time.Since(removed).Round(time.Millisecond))
		// The API server may close the watch before it has told of each deletion. Then nobody can list what there was: the goodbye says it.
		if !gone["run"] || !gone["late"] {
			eventually(t, "its objects are told as deleted before, or the watch is lost", func() error {
				if !strings.Contains(g.log()[logged:], "watch is lost") {
					return fmt.Errorf("%v", gone)
				}
				return nil
			})
		}
		served("v1alpha1", http.StatusNotFound)
		s.mustBeAbsent(t, g, token, path("v1alpha1"))
	}
	g.list(t, token, "/api/v1/pods") // other kinds are not affected
	if !limited && strings.Contains(g.log(), "definitions of custom resources are not watched") {
		t.Error("the watch on the definitions did not last")
	}
}

// mustBeAbsent asks for a kind that does not exist, as a list and as a stream.
func (s *stage) mustBeAbsent(t *testing.T, g *gateway, token, path string) {
	t.Helper()
	for _, accept := range []string{"application/json", "text/event-stream"} {
		header := bearer(token)
		header.Set("Accept", accept)
		if a, err := fetch(http.MethodGet, g.url+path, header); err != nil || a.code != http.StatusNotFound {
			t.Errorf("%s as %s: %d %s %v", path, accept, a.code, a.body, err)
		}
	}
}

func mustCreate(t *testing.T, trainings dynamic.ResourceInterface, group, name string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1alpha1", "kind": "Training", "metadata": map[string]any{"name": name},
	}}
	if _, err := trainings.Create(context.Background(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
