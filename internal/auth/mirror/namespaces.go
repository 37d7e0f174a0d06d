package mirror

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Namespaces knows the names of the namespaces of several clusters. Its methods may be called concurrently.
type Namespaces struct {
	log *slog.Logger

	mu        sync.Mutex
	clusters  map[string]*namespaces
	listeners map[*func()]struct{}
}

// namespaces are the namespaces of one cluster.
type namespaces struct {
	mirror *Mirror

	mu     sync.Mutex
	names  map[string]struct{}
	sorted []string // nil after a change
}

// NewNamespaces returns a Namespaces without clusters.
func NewNamespaces(log *slog.Logger) *Namespaces {
	return &Namespaces{log: log, clusters: map[string]*namespaces{}, listeners: map[*func()]struct{}{}}
}

// Add adds a cluster. The returned function follows its namespaces until the context ends, and then removes the
// cluster.
func (n *Namespaces) Add(c *cluster.Cluster) (follow func(context.Context) error) {
	of := &namespaces{names: map[string]struct{}{}}
	of.mirror = New(c, Options{
		Kind: cluster.Kind{Version: "v1", Resource: "namespaces", Kind: "Namespace", Watchable: true},
		Put: func(o *cluster.Object) {
			if of.put(o.GetName()) {
				n.notify()
			}
		},
		Remove: func(_, name string) {
			of.remove(name)
			n.notify()
		},
		Synced: n.notify, // before that, the names were not known
		Log:    n.log,
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clusters[c.Name()] = of
	return func(ctx context.Context) error {
		defer n.take(c.Name(), of)
		return of.mirror.Run(ctx)
	}
}

// take removes a cluster, unless another one of the same name has replaced it.
func (n *Namespaces) take(name string, of *namespaces) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.clusters[name] == of {
		delete(n.clusters, name)
	}
}

// Names returns the names of a cluster's namespaces, sorted; ok is false if they are not known (yet). The slice must
// not be changed.
func (n *Namespaces) Names(cluster string) (names []string, ok bool) {
	n.mu.Lock()
	of := n.clusters[cluster]
	n.mu.Unlock()
	if of == nil || !of.mirror.State().Synced {
		return nil, false
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.sorted == nil {
		of.sorted = slices.Sorted(maps.Keys(of.names))
	}
	return of.sorted, true
}

// Changes arranges for changed to be called when a namespace has come or gone. Changed must return at once. The
// caller must call stop in the end; further calls do nothing.
func (n *Namespaces) Changes(changed func()) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[&changed] = struct{}{}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.listeners, &changed)
	}
}

func (n *Namespaces) notify() {
	n.mu.Lock()
	listeners := slices.Collect(maps.Keys(n.listeners))
	n.mu.Unlock()
	for _, changed := range listeners {
		(*changed)()
	}
}

// put reports whether the namespace is new.
func (of *namespaces) put(name string) bool {
	of.mu.Lock()
	defer of.mu.Unlock()
	_, known := of.names[name]
	if !known {
		of.sorted = nil
	}
	of.names[name] = struct{}{}
	return !known
}

func (of *namespaces) remove(name string) {
	of.mu.Lock()
	defer of.mu.Unlock()
	delete(of.names, name)
	of.sorted = nil
}
