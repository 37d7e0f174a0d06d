package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// scope is what a watch asks for, in terms that both the API server and the gateway understand.
type scope struct {
	kind          schema.GroupVersionResource
	namespace     string
	labelSelector string
	fieldSelector string

	// Only the gateway understands the rest.
	only     []string // the only namespaces that the caller may see; none: all
	fields   string   // paths, separated by commas
	conflate time.Duration
	deltas   bool
}

var (
	podsKind       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	configMapsKind = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	jobsKind       = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

func (s scope) resource(client dynamic.Interface) dynamic.ResourceInterface {
	if s.namespace == "" {
		return client.Resource(s.kind)
	}
	return client.Resource(s.kind).Namespace(s.namespace)
}

// path is the scope's path at the gateway, with its query.
func (s scope) path() string {
	path := "/apis/" + s.kind.Group + "/" + s.kind.Version
	if s.kind.Group == "" {
		path = "/api/" + s.kind.Version
	}
	if s.namespace != "" {
		path += "/namespaces/" + s.namespace
	}
	path += "/" + s.kind.Resource
	pairs := []string{"labelSelector", s.labelSelector, "fieldSelector", s.fieldSelector, "fields", s.fields}
	if s.conflate > 0 {
		pairs = append(pairs, "conflate", s.conflate.String())
	}
	if s.deltas {
		pairs = append(pairs, "deltas", "merge-patch")
	}
	return path + query(pairs...)
}

// sees reports whether the caller may see a namespace.
func (s scope) sees(namespace string) bool {
	return len(s.only) == 0 || slices.Contains(s.only, namespace)
}

// project returns the part of an object that a client of the scope is told: what identifies it, and the fields.
func (s scope) project(text string) (string, error) {
	if s.fields == "" {
		return text, nil
	}
	var whole map[string]any
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		return "", err
	}
	part := map[string]any{}
	for _, path := range append(strings.Split(s.fields, ","), "apiVersion", "kind", "metadata.name", "metadata.namespace",
		"metadata.uid", "metadata.resourceVersion") {
		keys := strings.Split(path, ".")
		if value, found, err := unstructured.NestedFieldNoCopy(whole, keys...); err == nil && found {
			if err := unstructured.SetNestedField(part, value, keys...); err != nil {
				return "", err
			}
		}
	}
	projected, err := json.Marshal(part)
	return string(projected), err
}

// witness is the test's own watch on the API server: it sees what a client of the same scope should be told.
type witness struct {
	scope scope
	from  uint64

	mu   sync.Mutex
	seen []told
	err  error
}

// watchDirectly begins a watch at the API server, from now on.
func (s *stage) watchDirectly(t *testing.T, scope scope) *witness {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	list, err := scope.resource(s.dynamic).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	version := list.GetResourceVersion()
	w := &witness{scope: scope}
	if w.from, err = strconv.ParseUint(version, 10, 64); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := w.run(ctx, s.dynamic, version)
		w.mu.Lock()
		w.err = err
		w.mu.Unlock()
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return w
}

func (w *witness) run(ctx context.Context, client dynamic.Interface, version string) error {
	for ctx.Err() == nil {
		watching, err := w.scope.resource(client).Watch(ctx, metav1.ListOptions{
			ResourceVersion: version, LabelSelector: w.scope.labelSelector, FieldSelector: w.scope.fieldSelector,
		})
		if err != nil {
			return err
		}
		for event := range watching.ResultChan() {
			if event.Type == watch.Error {
				return fmt.Errorf("the test's own watch failed: %v", event.Object)
			}
			o := event.Object.(*unstructured.Unstructured)
			version = o.GetResourceVersion()
			if err := w.note(event.Type, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *witness) note(kind watch.EventType, o *unstructured.Unstructured) error {
	text, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	key, read, err := readWitnessed(text)
	if err != nil {
		return err
	}
	event := map[watch.EventType]string{watch.Added: "added", watch.Modified: "modified", watch.Deleted: "deleted"}[kind]
	what := occurrence{read.uid, read.version, kind == watch.Deleted}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, told{occurrence: what, event: event, key: key, json: read.json})
	return nil
}

// readWitnessed is readObject for an object from the API server: without what the gateway leaves out.
func readWitnessed(text []byte) (string, object, error) {
	trimmed, err := trim(text)
	if err != nil {
		return "", object{}, err
	}
	return readObject(trimmed)
}

// trim leaves out what the gateway leaves out, and puts the keys in order.
func trim(text []byte) (string, error) {
	var o map[string]any
	if err := json.Unmarshal(text, &o); err != nil {
		return "", err
	}
	if metadata, ok := o["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
			if len(annotations) == 0 {
				delete(metadata, "annotations")
			}
		}
	}
	ordered, err := json.Marshal(o)
	return string(ordered), err
}

// sameJSON reports whether two texts encode the same value.
func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// list returns the objects of the scope that the API server has now, by namespace/name.
func (s *stage) list(scope scope) (map[string]object, error) {
	list, err := scope.resource(s.dynamic).List(context.Background(), metav1.ListOptions{
		LabelSelector: scope.labelSelector, FieldSelector: scope.fieldSelector,
	})
	if err != nil {
		return nil, err
	}
	objects := map[string]object{}
	for _, item := range list.Items {
		text, err := item.MarshalJSON()
		if err != nil {
			return nil, err
		}
		key, o, err := readWitnessed(text)
		if err == nil {
			o.json, err = scope.project(o.json)
		}
		if err != nil {
			return nil, err
		}
		if scope.sees(item.GetNamespace()) {
			objects[key] = o
		}
	}
	return objects, nil
}

// waitEqual waits until a follower's watch has exactly what the API server has of a scope.
func (s *stage) waitEqual(t *testing.T, f *follower, watch string, scope scope) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s has what the API server has", f.name), func() error {
		want, err := s.list(scope)
		if err != nil {
			return err
		}
		return f.look(watch, func(v *view) error { return v.differs(want) })
	})
}

// differs returns nil if the view has exactly these objects.
func (v *view) differs(want map[string]object) error {
	if v.snapshot != nil {
		return fmt.Errorf("a snapshot is under way")
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		have, ok := v.objects[key]
		switch {
		case !ok:
			return fmt.Errorf("it lacks %s", key)
		case have.uid != want[key].uid || have.version != want[key].version:
			return fmt.Errorf("%s is %s at version %d, not %s at %d", key, have.uid, have.version, want[key].uid, want[key].version)
		case !sameJSON(have.json, want[key].json):
			return fmt.Errorf("%s differs:\n%s\nnot\n%s", key, have.json, want[key].json)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(v.objects)) {
		if _, ok := want[key]; !ok {
			return fmt.Errorf("it has %s, which does not exist", key)
		}
	}
	return nil
}
