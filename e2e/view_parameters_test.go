package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// annotate changes a ConfigMap and returns its new version.
func (s *stage) annotate(t *testing.T, namespace, name, value string) string {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"annotations": {"note": %q}}}`, value)
	changed, err := s.kube.CoreV1().ConfigMaps(namespace).Patch(context.Background(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return changed.ResourceVersion
}

// With fields=, an object has only what is asked for and what identifies it.
func TestFieldsAreAllThatIsTold(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	s.namespaces(t, "fields")
	s.makeConfigMap(t, "fields", "one")
	stream := s.open(t, g, scope{kind: configMapsKind, namespace: "fields", labelSelector: "app=a"}.path()+"&fields=metadata.labels.app,metadata.annotations", nil)
	check := func(read frame, annotations string) {
		t.Helper()
		var o map[string]any
		if err := json.Unmarshal([]byte(read.data), &o); err != nil {
			t.Fatal(err)
		}
		metadata, _ := o["metadata"].(map[string]any)
		for _, name := range []string{"name", "namespace", "uid", "resourceVersion"} {
			if metadata[name] == nil {
				t.Errorf("there is no metadata.%s: %s", name, read.data)
			}
			delete(metadata, name)
		}
		rest, err := json.Marshal(o)
		want := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{` + annotations + `"labels":{"app":"a"}}}`
		if err != nil || string(rest) != want {
			t.Errorf("beside what identifies it there is %s, not %s", rest, want)
		}
	}
	check(stream.mustEvent(t, "added"), "")
	stream.mustEvent(t, "synced")
	s.annotate(t, "fields", "one", "changed")
	check(stream.mustEvent(t, "modified"), `"annotations":{"note":"changed"},`)
}

// With deltas=merge-patch, changes are told as patches, which lead to the present object.
func TestMergePatchesLeadToTheObject(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	s.namespaces(t, "deltas")
	s.makeConfigMap(t, "deltas", "one")
	path := scope{kind: configMapsKind, namespace: "deltas", labelSelector: "app=a"}.path()
	stream := s.open(t, g, path+"&deltas=merge-patch", nil)
	var have any
	if err := json.Unmarshal([]byte(stream.mustEvent(t, "added").data), &have); err != nil {
		t.Fatal(err)
	}
	stream.mustEvent(t, "synced")
	for _, value := range []string{"first", "second", ""} {
		version := s.annotate(t, "deltas", "one", value)
		var told struct {
			UID, ResourceVersion string
			Patch                map[string]any
		}
		read := stream.mustEvent(t, "patched")
		if err := json.Unmarshal([]byte(read.data), &told); err != nil {
			t.Fatal(err)
		}
		if told.ResourceVersion != version || told.UID == "" || !strings.HasSuffix(read.id, "."+version) {
			t.Errorf("at version %s was told %+v", version, read)
		}
		have = mergePatch(have, told.Patch)
	}
	text, err := json.Marshal(have)
	if err != nil {
		t.Fatal(err)
	}
	want := g.get(t, s.viewer(t), "/api/v1/namespaces/deltas/configmaps/one").body
	if !sameJSON(string(text), want) {
		t.Errorf("the patches lead to %s, not %s", text, want)
	}
}

// mergePatch implements RFC 7386, section 2, literally.
func mergePatch(target any, patch any) any {
	members, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for name, value := range members {
		if value == nil {
			delete(object, name)
		} else {
			object[name] = mergePatch(object[name], value)
		}
	}
	return object
}

// With conflate=, not each modification is told but the latest state, and every addition and deletion.
func TestConflatedStreamEndsWithTheLatest(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	s.namespaces(t, "conflate")
	path := scope{kind: configMapsKind, namespace: "conflate", labelSelector: "app=a"}.path()
	plain, conflated := s.open(t, g, path, nil), s.open(t, g, path+"&conflate=2s", nil)
	plain.mustEvent(t, "synced")
	conflated.mustEvent(t, "synced")
	s.makeConfigMap(t, "conflate", "one")
	const changes = 30
	began := time.Now()
	for i := range changes {
		s.annotate(t, "conflate", "one", fmt.Sprint(i))
	}
	took := time.Since(began)
	if err := s.kube.CoreV1().ConfigMaps("conflate").Delete(context.Background(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.makeConfigMap(t, "conflate", "two")
	read := func(stream *stream) (names []string, modified int) {
		for {
			read := stream.mustNext(t)
			switch read.event {
			case "added", "deleted":
				names = append(names, read.event)
				if strings.Contains(read.data, `"name":"two"`) {
					return names, modified
				}
			case "modified":
				modified++
			}
		}
	}
	names, modified := read(conflated)
	if got := strings.Join(names, " "); got != "added deleted added" {
		t.Errorf("told was %s", got)
	}
	if most := 2 + int(took/(2*time.Second)); modified > most {
		t.Errorf("%d modifications were told of %d within %s", modified, changes, took)
	}
	if _, all := read(plain); all != changes {
		t.Errorf("%d of %d modifications were told to who wants all", all, changes)
	}
}
