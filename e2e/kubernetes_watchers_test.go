package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// These are the cases of Kubernetes' conformance tests for watchers (test/e2e/apimachinery/watch.go), run against
// both servers. Writes go to the API server; watches come from either.
func TestWatchersConform(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	throughGateway, err := kubernetes.NewForConfig(g.restConfig(s.admin(t), ""))
	if err != nil {
		t.Fatal(err)
	}
	for server, client := range map[string]kubernetes.Interface{"api-server": s.kube, "gateway": throughGateway} {
		t.Run(server, func(t *testing.T) {
			namespace := "watchers-" + server
			s.namespaces(t, namespace)
			w := &watchers{t: t, write: s.kube.CoreV1().ConfigMaps(namespace), read: client.CoreV1().ConfigMaps(namespace), namespace: namespace}
			t.Run("add, update and delete", w.addUpdateDelete)
			t.Run("from a version", w.fromAVersion)
			t.Run("from where another ended", w.fromWhereAnotherEnded)
			t.Run("what leaves the selection", w.leavesTheSelection)
			t.Run("concurrently, in one order", w.inOneOrder)
		})
	}
}

type watchers struct {
	t           *testing.T
	write, read corev1.ConfigMapInterface
	namespace   string
}

func (w *watchers) create(t *testing.T, name, label string) (version string) {
	t.Helper()
	made, err := w.write.Create(context.Background(), configMap(w.namespace, name, map[string]string{"watch": label}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.ResourceVersion
}

func (w *watchers) patch(t *testing.T, name, body string) (version string) {
	t.Helper()
	made, err := w.write.Patch(context.Background(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.ResourceVersion
}

func (w *watchers) mutate(t *testing.T, name string, n int) (version string) {
	t.Helper()
	return w.patch(t, name, fmt.Sprintf(`{"data":{"mutation":"%d"}}`, n))
}

func (w *watchers) delete(t *testing.T, name string) {
	t.Helper()
	if err := w.write.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w *watchers) watch(t *testing.T, selector, version string) watch.Interface {
	t.Helper()
	watching, err := w.read.Watch(context.Background(), metav1.ListOptions{LabelSelector: selector, ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watching.Stop)
	return watching
}

// expect reads the next event.
func expect(t *testing.T, watching watch.Interface, kind watch.EventType, name, mutation string) (version string) {
	t.Helper()
	select {
	case event, open := <-watching.ResultChan():
		o, ok := event.Object.(interface {
			GetName() string
			GetResourceVersion() string
		})
		if !open || !ok {
			t.Fatalf("%s %T comes, not %s of %s", event.Type, event.Object, kind, name)
		}
		data := fmt.Sprint(event.Object)
		if event.Type != kind || o.GetName() != name || mutation != "" && !strings.Contains(data, "mutation: "+mutation) {
			t.Fatalf("%s of %s comes (%s), not %s of %s with mutation %q", event.Type, o.GetName(), data, kind, name, mutation)
		}
		return o.GetResourceVersion()
	case <-time.After(eventuallyWithin):
		t.Fatalf("no %s of %s", kind, name)
	}
	return ""
}

func expectNothing(t *testing.T, watching watch.Interface) {
	t.Helper()
	select {
	case event, open := <-watching.ResultChan():
		t.Errorf("%s comes, %v: %v", event.Type, open, event.Object)
	case <-time.After(500 * time.Millisecond):
	}
}

func (w *watchers) addUpdateDelete(t *testing.T) {
	a, b := w.watch(t, "watch=a", ""), w.watch(t, "watch=b", "")
	both := w.watch(t, "watch in (a,b)", "")
	w.create(t, "a", "a")
	w.mutate(t, "a", 1)
	w.mutate(t, "a", 2)
	w.delete(t, "a")
	for _, watching := range []watch.Interface{a, both} {
		expect(t, watching, watch.Added, "a", "")
		expect(t, watching, watch.Modified, "a", "1")
		expect(t, watching, watch.Modified, "a", "2")
		expect(t, watching, watch.Deleted, "a", "2")
	}
	expectNothing(t, b)
	w.create(t, "b", "b")
	w.delete(t, "b")
	for _, watching := range []watch.Interface{b, both} {
		expect(t, watching, watch.Added, "b", "")
		expect(t, watching, watch.Deleted, "b", "")
	}
	expectNothing(t, a)
}

func (w *watchers) fromAVersion(t *testing.T) {
	w.create(t, "from", "from")
	first := w.mutate(t, "from", 1)
	w.mutate(t, "from", 2)
	w.delete(t, "from")
	watching := w.watch(t, "watch=from", first)
	expect(t, watching, watch.Modified, "from", "2")
	expect(t, watching, watch.Deleted, "from", "2")
}

func (w *watchers) fromWhereAnotherEnded(t *testing.T) {
	first := w.watch(t, "watch=restarted", "")
	w.create(t, "restarted", "restarted")
	w.mutate(t, "restarted", 1)
	expect(t, first, watch.Added, "restarted", "")
	last := expect(t, first, watch.Modified, "restarted", "1")
	first.Stop()
	w.mutate(t, "restarted", 2)
	w.delete(t, "restarted")
	second := w.watch(t, "watch=restarted", last)
	expect(t, second, watch.Modified, "restarted", "2")
	expect(t, second, watch.Deleted, "restarted", "2")
}

func (w *watchers) leavesTheSelection(t *testing.T) {
	watching := w.watch(t, "watch=stays", "")
	w.create(t, "moves", "stays")
	w.mutate(t, "moves", 1)
	expect(t, watching, watch.Added, "moves", "")
	expect(t, watching, watch.Modified, "moves", "1")
	left := w.patch(t, "moves", `{"metadata":{"labels":{"watch":"gone"}}}`)
	if version := expect(t, watching, watch.Deleted, "moves", "1"); version != left {
		t.Errorf("it is told with version %s, not that of the change, %s", version, left)
	}
	w.mutate(t, "moves", 2)
	expectNothing(t, watching)
	w.patch(t, "moves", `{"metadata":{"labels":{"watch":"stays"}}}`)
	w.mutate(t, "moves", 3)
	w.delete(t, "moves")
	expect(t, watching, watch.Added, "moves", "2")
	expect(t, watching, watch.Modified, "moves", "3")
	expect(t, watching, watch.Deleted, "moves", "3")
}

// inOneOrder checks that all watches, from whichever event they begin, are told the same sequence from there on.
func (w *watchers) inOneOrder(t *testing.T) {
	list, err := w.read.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const changes = 60
	random := rand.New(rand.NewPCG(7, 8))
	var writing sync.WaitGroup
	writing.Go(func() {
		exists := map[string]bool{}
		for n := range changes {
			name := fmt.Sprintf("order-%d", random.IntN(5))
			switch {
			case !exists[name]:
				w.create(t, name, "order")
			case random.IntN(3) == 0:
				w.delete(t, name)
			default:
				w.mutate(t, name, n)
				continue
			}
			exists[name] = !exists[name]
		}
	})
	defer writing.Wait()
	read := func(version string, count int) (versions []string) {
		watching := w.watch(t, "watch=order", version)
		defer watching.Stop()
		deadline := time.After(eventuallyWithin)
		for len(versions) < count {
			select {
			case event, open := <-watching.ResultChan():
				o, ok := event.Object.(metav1.Object)
				if !open || !ok {
					t.Fatalf("after %d events: %s %v", len(versions), event.Type, event.Object)
				}
				versions = append(versions, o.GetResourceVersion())
			case <-deadline:
				t.Fatalf("%d of %d events have come", len(versions), count)
			}
		}
		return versions
	}
	all := read(list.ResourceVersion, changes)
	for i := 0; i < changes-1; i += 7 {
		if rest := read(all[i], changes-i-1); !slices.Equal(rest, all[i+1:]) {
			t.Errorf("after event %d come %v, not %v", i, rest, all[i+1:])
		}
	}
}
