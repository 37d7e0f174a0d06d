package cache

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
)

// This file follows the CustomResourceDefinitions, if the gateway may watch them, so that kinds come and go at once.
// It is only quicker, and saves requests: without it, the API server's own 404 ends a store, and a kind that is not
// known is looked for again.

// definitions is Kinds as a cluster.DefinitionFollower.
type definitions Kinds

var _ cluster.DefinitionFollower = (*definitions)(nil)

func (d *definitions) Up(int64) { d.log.Debug("definitions of custom resources are watched") }

func (d *definitions) Down(err error) {
	d.log.Debug("definitions of custom resources are not watched", "error", err)
}

func (d *definitions) DefinitionChanged(name string) { (*Kinds)(d).tellChange(name) }

func (d *definitions) DefinitionRemoved(name string, version uint64) {
	k := (*Kinds)(d)
	k.log.Debug("definition was removed", "name", name, "version", version)
	k.tellChange(name)
	for _, store := range k.All() {
		if store.kind.String() == name {
			store.endBefore(version, "its definition was removed")
		}
	}
}

// tellChange drops what is known of the kinds of a definition's group, so that the cluster is asked again. It wakes
// the goroutines that wait for a kind to preload.
func (k *Kinds) tellChange(definition string) {
	_, group, _ := strings.Cut(definition, ".")
	k.cluster.Defined(group)
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.changed)
	k.changed = make(chan struct{})
}

// Changed is closed when what the cluster serves may have changed.
func (k *Kinds) Changed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}

// serves asks whether the cluster serves a kind. Without a clear no, as when the cluster cannot be asked, the answer
// is yes.
func (k *Kinds) serves(kind cluster.Kind) bool {
	k.cluster.Changed(kind.Group)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := k.cluster.Resolve(ctx, kind.Group, kind.Version, kind.Resource)
	return !errors.Is(err, cluster.ErrNoKind)
}

// Remove ends all stores, and makes each later Use fail with ErrNotServed: the cluster is no longer
// one of the gateway's. The caller ends Run afterwards.
func (k *Kinds) Remove() {
	k.mu.Lock()
	k.removed = true
	k.mu.Unlock()
	for _, store := range k.All() {
		store.end("its cluster was removed from the gateway")
	}
}
