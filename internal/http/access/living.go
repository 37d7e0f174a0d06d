package access

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/visibility"
)

// A namespace may be deleted, and made anew by somebody else. A permission in a namespace is one in
// the namespace that lives, so it shows nothing of what was in a former one. The present state of a
// kind has only objects of namespaces that live. But whoever is told of the past (what happened
// since a position, a snapshot that was kept) would be told of both. So of that, what is no more
// has to be asked about.
//
// An object is one of the namespace that lives unless it is older. Versions do not say that: those
// of two storages cannot be compared. Times are of whole seconds, but between the last object of a
// namespace and another one of its name lie five: Kubernetes waits for so long before it begins to
// empty a namespace in which nothing can be made any more.

// livingWithin is how long it may take to learn which namespaces live.
const livingWithin = 3 * time.Second

// AreTheirs reports whether a caller who may do a verb on a target may also be told of objects of it
// that were there at one time. It asks which namespaces live, unless all of the objects are there
// still, in a snapshot that is no older. It reports false if that cannot be known. The permission
// must have been asked for before: then it counts in the namespaces that are found, or in later
// ones.
func (a *Access) AreTheirs(ctx context.Context, kinds *cache.Kinds, id *auth.Identity, p visibility.VisibleTarget, verb string, now *cache.Snapshot, objects []*cluster.Object) bool {
	var past []*cluster.Object
	namespaces := map[string]bool{}
	for _, o := range objects {
		if namespace := p.BoundTo(o); namespace != "" && !isThere(o, now) {
			past, namespaces[namespace] = append(past, o), true
		}
	}
	if len(past) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, livingWithin)
	defer cancel()
	if p.Visible == nil {
		if everywhere, err := a.Everywhere(ctx, kinds, *id, p.Target, verb); err == nil && everywhere {
			return true
		}
	}
	found, err := kinds.Cluster().Namespaces(ctx, slices.Collect(maps.Keys(namespaces)))
	if err != nil {
		return false
	}
	living := make(map[string]cluster.Namespace, len(found))
	for _, n := range found {
		living[n.Name] = n
	}
	return !slices.ContainsFunc(past, func(o *cluster.Object) bool {
		n, lives := living[p.BoundTo(o)]
		if visibility.AreNamespaces(p.Group, p.Resource) {
			return !lives || o.UID() != n.UID
		}
		return !lives || o.Created() < n.Created.Unix()
	})
}

// isThere reports whether an object is in a snapshot, in whatever state.
func isThere(o *cluster.Object, now *cache.Snapshot) bool {
	there := now.Get(o.GetNamespace(), o.GetName())
	return there != nil && (there == o || there.UID() == o.UID() && o.UID() != "")
}
