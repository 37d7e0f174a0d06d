package historyapi

import (
	"context"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/visibility"
)

// A permission in a namespace is one in the namespace that lives. What was in one of the same name
// before is somebody else's, as Kubernetes shows a namespace that is made anew as empty. Only
// callers who may see a kind in all namespaces see what is of former ones.

// narrow is what a caller may see of a target, who may see so much of it now. It is nil only for
// callers who may see all of the kind: all of a namespace, or of a name, is less than that.
func (h *Handler) narrow(ctx context.Context, kinds *cache.Kinds, id auth.Identity, t visibility.Target, kind cluster.Kind, verb string, visible *visibility.Visibility) (*visibility.Visibility, error) {
	if visible != nil || t.Namespace == "" && t.Name == "" {
		return visible, nil
	}
	everywhere, err := h.opts.Access.Everywhere(ctx, kinds, id, t, verb)
	if err != nil || everywhere {
		return nil, err
	}
	scope := auth.Scope{Namespaces: []string{t.Namespace}}
	if kind.Namespaced = t.Namespace != ""; !kind.Namespaced {
		scope = auth.Scope{Names: map[string][]string{"": {t.Name}}}
	}
	visible, _ = visibility.Of(scope, visibility.Target{}, kind)
	return visible, nil
}

// isWhole reports whether all is visible that a target names, in the namespaces that live.
func isWhole(visible *visibility.Visibility, t visibility.Target) bool {
	shows := visible.Shows()
	return shows.All || shows.SeesNamespace(t.Namespace) || t.Namespace == "" && t.Name != "" && shows.Sees("", t.Name)
}

// maxWithin is how many namespaces and objects may be asked about at once. Databases have such a
// limit, too: SQLite takes 32,766 values, of which each object has four.
const maxWithin = 8_000

// restrict completes a filter, which says which namespace is asked about, with what may be seen of
// that. It asks which namespaces live, and so has to come after the permission: then these are the
// ones in which it counts, or later ones.
func restrict(ctx context.Context, f *store.Filter, c *cluster.Cluster, visible *visibility.Visibility) (err error) {
	if f.Within, err = within(visible.Shows(), f.Namespace); err != nil || f.Within == nil {
		return err
	}
	return alive(ctx, f, c)
}

// alive asks which of a filter's namespaces live.
func alive(ctx context.Context, f *store.Filter, c *cluster.Cluster) error {
	there := map[string]bool{}
	var names []string
	for _, p := range f.Within {
		if p.Namespace != store.AnyNamespace && !there[p.Namespace] {
			there[p.Namespace], names = true, append(names, p.Namespace)
		}
	}
	living, err := c.Namespaces(ctx, names)
	if err != nil {
		return reply.Unavailable("the cluster cannot be asked which namespaces there are; try again in a moment", awayFor, err)
	}
	f.Living = make([]store.Namespace, 0, len(living))
	for _, n := range living {
		f.Living = append(f.Living, store.Namespace{Name: n.Name, UID: n.UID, Created: jobs.At(n.Created)})
	}
	return nil
}

// within are the namespaces and objects that a scope shows within a namespace, or everywhere; nil means all.
func within(shows auth.Scope, namespace string) ([]store.NamespacedName, error) {
	if shows.All {
		return nil, nil
	}
	if namespace != "" {
		shows = shows.In(namespace)
	}
	found := []store.NamespacedName{}
	for _, namespace := range shows.Namespaces {
		found = append(found, store.NamespacedName{Namespace: namespace})
	}
	for namespace, names := range shows.Names {
		if namespace == "" {
			namespace = store.AnyNamespace
		}
		for _, name := range names {
			found = append(found, store.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	if len(found) > maxWithin {
		return nil, reply.BadRequest("what you may see of this is in more than %d pieces: ask for the history of one namespace", maxWithin)
	}
	return found, nil
}
