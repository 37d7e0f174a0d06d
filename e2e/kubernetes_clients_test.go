package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kubecast/kubecast/e2e/harness"
)

// restConfig returns client-go's configuration for a gateway: for its default cluster, or for one behind a prefix.
func (g *gateway) restConfig(token, prefix string) *rest.Config {
	return &rest.Config{Host: g.url + prefix, BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAFile: g.caFile}}
}

// mirror is the content of one of client-go's informers.
type mirror struct {
	name  string
	store toolscache.Store
	ready toolscache.InformerSynced
}

// versions returns the versions of the mirror's objects, by namespace/name.
func (m mirror) versions() map[string]string {
	found := map[string]string{}
	for _, object := range m.store.List() {
		if o, ok := object.(metav1.Object); ok {
			found[o.GetNamespace()+"/"+o.GetName()] = o.GetResourceVersion()
		}
	}
	return found
}

// noStreamedLists makes a client list and then watch, as before WatchList.
type noStreamedLists struct{}

func (noStreamedLists) IsWatchListSemanticsUnSupported() bool { return true }

// mirrors starts client-go's informers of all sorts at one gateway, for the pods with a label.
func (g *gateway) mirrors(t *testing.T, token string, namespace string, selector labels.Set) (all []mirror) {
	t.Helper()
	stop := make(chan struct{})
	var running sync.WaitGroup
	t.Cleanup(func() {
		close(stop)
		running.Wait()
	})
	tweak := func(o *metav1.ListOptions) { o.LabelSelector = selector.String() }
	config := g.restConfig(token, "/clusters/default")
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	anyKind, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	onlyMetadata, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, informer toolscache.SharedIndexInformer) {
		running.Go(func() { informer.Run(stop) })
		all = append(all, mirror{name, informer.GetStore(), informer.HasSynced})
	}
	add("typed", informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(tweak)).Core().V1().Pods().Informer())
	add("dynamic", dynamicinformer.NewFilteredDynamicSharedInformerFactory(anyKind, 0, namespace, tweak).ForResource(podsKind).Informer())
	add("metadata", metadatainformer.NewFilteredSharedInformerFactory(onlyMetadata, 0, namespace, tweak).ForResource(podsKind).Informer())
	// Without WatchList there is a moment between the list and the watch that continues it.
	var watching atomic.Bool
	add("typed, without WatchList", toolscache.NewSharedIndexInformer(toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			tweak(&o)
			watching.Store(false)
			return typed.CoreV1().Pods(namespace).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			tweak(&o)
			opened, err := typed.CoreV1().Pods(namespace).Watch(ctx, o)
			watching.Store(err == nil)
			return opened, err
		},
	}, noStreamedLists{}), &corev1.Pod{}, 0, nil))
	last := &all[len(all)-1]
	synced := last.ready
	last.ready = func() bool { return synced() && watching.Load() }
	return all
}

// converge waits until each mirror has what the API server has.
func (s *stage) converge(t *testing.T, when string, scope scope, mirrors []mirror) {
	t.Helper()
	for _, m := range mirrors {
		eventually(t, m.name+" informer converges "+when, func() error {
			list, err := scope.resource(s.dynamic).List(context.Background(), metav1.ListOptions{LabelSelector: scope.labelSelector})
			if err != nil {
				return err
			}
			want := map[string]string{}
			for _, o := range list.Items {
				want[o.GetNamespace()+"/"+o.GetName()] = o.GetResourceVersion()
			}
			if got := m.versions(); !m.ready() || !maps.Equal(got, want) {
				return fmt.Errorf("synced: %v; has %v, not %v", m.ready(), got, want)
			}
			return nil
		})
	}
}

// Informers of every sort sync at a gateway and follow it, even through its restart, over plain HTTP and over TLS
// with HTTP/2.
func TestInformersConvergeThroughARestart(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "informers", "informers-b")
	gateways := []*gateway{s.startGateway(t, gatewayOptions{listen: harness.Address(t)}), s.startGateway(t, overTLS(t))}
	random := seed(t)
	scopes := map[string]scope{
		"of all namespaces": {kind: podsKind, labelSelector: "test=informers"},
		"of one namespace":  {kind: podsKind, namespace: "informers-b", labelSelector: "app=a,test=informers"},
	}
	mirrors := map[string][]mirror{}
	for name, scope := range scopes {
		selector, err := labels.ConvertSelectorToLabelsMap(scope.labelSelector)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range gateways {
			g.waitReady(t)
			mirrors[name] = append(mirrors[name], g.mirrors(t, s.viewer(t), scope.namespace, selector)...)
		}
	}
	finish := s.startChurn(t, &churn{namespaces: []string{"informers", "informers-b"}, test: "informers", random: random})
	time.Sleep(2 * time.Second) // of changes
	for _, g := range gateways {
		g.kill()
	}
	time.Sleep(time.Second) // of changes that no gateway sees
	for _, g := range gateways {
		g.restart(t)
	}
	time.Sleep(2 * time.Second)
	finish()
	for name, scope := range scopes {
		s.converge(t, name, scope, mirrors[name])
	}
}

// Informers also follow when the gateway itself has to list again, because the API server has lost its history.
func TestInformersConvergeThroughARelist(t *testing.T) {
	t.Parallel()
	s := onFaultStage(t)
	s.namespaces(t, "informers-relist")
	g := s.startGateway(t, gatewayOptions{})
	g.waitReady(t)
	scope := scope{kind: podsKind, labelSelector: "test=relist"}
	mirrors := g.mirrors(t, s.viewer(t), "", labels.Set{"test": "relist"})
	finish := s.startChurn(t, &churn{namespaces: []string{"informers-relist"}, test: "relist", random: seed(t), forgiving: true})
	time.Sleep(2 * time.Second) // of changes
	// The gateway is stopped during the compaction, so it needs history that is gone, unless the kernel holds all of
	// it.
	for tries := 0; tries < 5 && len(g.relists(t, podsKind.Resource)) == 0; tries++ {
		g.missHistory(t)
	}
	eventually(t, "the gateway lists the pods again", func() error {
		if len(g.relists(t, podsKind.Resource)) == 0 {
			return fmt.Errorf("it has not")
		}
		return nil
	})
	time.Sleep(2 * time.Second)
	finish()
	s.converge(t, "after a relist", scope, mirrors)
}

// missHistory compacts the history while the gateway is stopped.
func (g *gateway) missHistory(t *testing.T) {
	t.Helper()
	func() {
		g.process.Signal(syscall.SIGSTOP)
		defer g.process.Signal(syscall.SIGCONT)
		if err := g.stage.cluster.Fault(context.Background(), "etcd-compact"); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Second) // of changes that the gateway does not see
	}()
	time.Sleep(3 * time.Second) // until the gateway watches again
}

// kubectl watches and waits at a gateway as at the API server.
func TestKubectlWatchesAndWaits(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.secureGateway(t)
	s.namespaces(t, "kubectl-watch")
	gateway := append(kubectlTo(t, g, s.admin(t), "/clusters/default"), "-n", "kubectl-watch")
	ctx, cancel := context.WithTimeout(context.Background(), eventuallyWithin)
	defer cancel()
	var group sync.WaitGroup
	defer group.Wait()
	var waited, watched atomic.Pointer[string]
	run := func(into *atomic.Pointer[string], arguments ...string) {
		group.Go(func() {
			out, err := s.cluster.Kubectl(ctx, nil, append(slices.Clone(gateway), arguments...)...)
			text := failure(string(out), err)
			into.Store(&text)
		})
	}
	run(&waited, "wait", "--for=create", "pod/late", "--timeout=50s")
	run(&watched, "get", "pods", "-w", "--request-timeout=8s", "-o", "custom-columns=N:.metadata.name,L:.metadata.labels.step", "--no-headers")
	time.Sleep(2 * time.Second) // until both have begun; otherwise they would see less
	pods := s.kube.CoreV1().Pods("kubectl-watch")
	if _, err := pods.Create(ctx, pod("kubectl-watch", "late", map[string]string{"step": "1"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "", "label", "pod", "late", "-n", "kubectl-watch", "step=2", "--overwrite")
	eventually(t, "kubectl wait ends", func() error {
		if text := waited.Load(); text == nil || !strings.Contains(*text, "condition met") {
			return fmt.Errorf("it says %v", text)
		}
		return nil
	})
	eventually(t, "kubectl get -w shows each step", func() error {
		text := watched.Load()
		if text == nil {
			return fmt.Errorf("it has not ended")
		}
		if lines := strings.Join(strings.Fields(*text), " "); !strings.Contains(lines, "late 1 late 2") {
			t.Fatalf("it shows %q", *text)
		}
		return nil
	})
	zero := int64(0)
	if err := pods.Delete(ctx, "late", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	if out, err := s.tryKubectl(append(gateway, "wait", "--for=delete", "pod/late", "--timeout=50s")...); err != nil {
		t.Errorf("%v %s", err, out)
	}
}
