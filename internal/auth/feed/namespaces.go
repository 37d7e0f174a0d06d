package feed

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Namespaces knows the names of the namespaces of several clusters. Its methods may be called concurrently.
type Namespaces struct {
	clusters map[string]*namespaces

	mu        sync.Mutex
	listeners map[chan struct{}]struct{}
}

// namespaces are those of one cluster.
type namespaces struct {
	feed *Feed

	mu    sync.Mutex
	names map[string]struct{}
}

// NewNamespaces prepares a Namespaces; it knows nothing until Run runs.
func NewNamespaces(clusters []*cluster.Cluster, log *slog.Logger) *Namespaces {
	n := &Namespaces{clusters: map[string]*namespaces{}, listeners: map[chan struct{}]struct{}{}}
	for _, c := range clusters {
		of := &namespaces{names: map[string]struct{}{}}
		of.feed = New(c, Options{
			Kind: cluster.Kind{Version: "v1", Resource: "namespaces", Kind: "Namespace", Watchable: true},
			Put: func(o *cluster.Object) {
				if of.put(o.GetName()) {
					n.tell()
				}
			},
			Remove: func(_, name string) {
				of.remove(name)
				n.tell()
			},
			Log: log,
		})
		n.clusters[c.Name()] = of
	}
	return n
}

// Run follows the clusters until the context ends.
func (n *Namespaces) Run(ctx context.Context) error {
	var running sync.WaitGroup
	errs := make(chan error, len(n.clusters))
	for _, of := range n.clusters {
		running.Go(func() { errs <- of.feed.Run(ctx) })
	}
	running.Wait()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}

// Names are the namespaces of a cluster, sorted; ok is false if they are not known (yet).
func (n *Namespaces) Names(cluster string) (names []string, ok bool) {
	of := n.clusters[cluster]
	if of == nil || !of.feed.State().Synced {
		return nil, false
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	return slices.Sorted(maps.Keys(of.names)), true
}

// Changes tells when a namespace has come or gone: the channel receives then, once for several changes that nobody
// looked at. It is never closed. stop must be called, and may be called again.
func (n *Namespaces) Changes() (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[c] = struct{}{}
	return c, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.listeners, c)
	}
}

func (n *Namespaces) tell() {
	n.mu.Lock()
	listeners := slices.Collect(maps.Keys(n.listeners))
	n.mu.Unlock()
	for _, c := range listeners {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// put reports whether the namespace is new.
func (of *namespaces) put(name string) bool {
	of.mu.Lock()
	defer of.mu.Unlock()
	_, known := of.names[name]
	of.names[name] = struct{}{}
	return !known
}

func (of *namespaces) remove(name string) {
	of.mu.Lock()
	defer of.mu.Unlock()
	delete(of.names, name)
}
