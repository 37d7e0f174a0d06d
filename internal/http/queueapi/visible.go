package queueapi

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/queues"
	"github.com/kubecast/kubecast/internal/queues/pending"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// What a stream of a queue shows depends on what its caller may see of several kinds. It is put into one
// Visibility, in which a namespace is named KIND/NAMESPACE, all namespaces KIND/*, and a kind that was
// asked about ?/KIND. No part of these names contains a slash.

const everywhere = "*"

func within(kind, namespace string) string { return kind + "/" + namespace }

func askedAbout(kind string) string { return "?/" + kind }

// sight is what may be seen of queues and of the jobs in them.
type sight struct{ scope auth.Scope }

func (s sight) sees(kind, namespace, name string) bool {
	return s.scope.Sees(within(kind, everywhere), name) || s.scope.Sees(within(kind, namespace), name)
}

// lacks reports whether it was not asked about one of the kinds.
func (s sight) lacks(kinds []cluster.Kind) bool {
	return slices.ContainsFunc(kinds, func(k cluster.Kind) bool { return !s.scope.SeesNamespace(askedAbout(k.String())) })
}

// The names of the kinds of queues among others.
const (
	localKind = localQueues + "." + queues.Group
	wholeKind = clusterQueues + "." + queues.Group

	volcanoKind = "queues." + queues.VolcanoGroup
	volcanos    = "Queue" // the kind
)

// see decides what a caller may see of what is asked for: queues that they may list, and jobs of some
// kinds that they may list or get. What of jobs cannot be decided is not seen: whoever makes Workloads may
// name any kind. It is not ok if the queue that is asked for may not be seen.
func (h *Handler) see(ctx context.Context, id auth.Identity, kinds *cache.Kinds, q queueRequest, jobs []cluster.Kind) (_ *visibility.Visibility, ok bool, err error) {
	whole := auth.Scope{Names: map[string][]string{}}
	for _, named := range []string{localKind, wholeKind, volcanoKind} {
		switch {
		case named == localKind && q.name != "" && q.namespace == "", named != volcanoKind && q.kind == volcanos, named == volcanoKind && q.name != "" && q.kind != volcanos:
			continue // of no use
		}
		kind, err := kinds.Cluster().Named(ctx, named)
		if isRefusal(err) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if err := h.add(ctx, &whole, id, kinds, q, kind, "list"); err != nil {
			return nil, false, err
		}
	}
	for _, kind := range jobs {
		for _, verb := range []string{"list", "get"} {
			if err := h.add(ctx, &whole, id, kinds, q, kind, verb); err != nil && ctx.Err() != nil {
				return nil, false, ctx.Err()
			}
		}
		whole.Namespaces = append(whole.Namespaces, askedAbout(kind.String()))
	}
	slices.Sort(whole.Namespaces)
	whole.Namespaces = slices.Compact(whole.Namespaces)
	s := sight{whole}
	switch {
	case q.kind == volcanos:
		ok = s.sees(volcanoKind, "", q.name)
	case q.name != "" && q.namespace == "":
		ok = s.sees(wholeKind, "", q.name)
	case q.name != "":
		ok = s.sees(localKind, q.namespace, q.name)
	default:
		ok = true
	}
	visible, some := visibility.Of(whole, visibility.Target{}, cluster.Kind{Namespaced: true})
	if !some {
		visible = visibility.Nothing()
	}
	return visible, ok, nil
}

// add adds what a caller may do with a kind.
func (h *Handler) add(ctx context.Context, to *auth.Scope, id auth.Identity, kinds *cache.Kinds, q queueRequest, kind cluster.Kind, verb string) error {
	t := visibility.Target{Cluster: q.cluster, Group: kind.Group, Version: kind.Version, Resource: kind.Resource}
	if kind.Namespaced {
		t.Namespace = q.namespace
	}
	visible, ok, err := h.opts.Access.See(ctx, kinds, id, t, kind, verb)
	if err != nil || !ok {
		return err
	}
	scope, name := visible.Shows(), kind.String()
	if scope.All {
		to.Namespaces = append(to.Namespaces, within(name, everywhere))
		return nil
	}
	for _, namespace := range scope.Namespaces {
		to.Namespaces = append(to.Namespaces, within(name, namespace))
	}
	for namespace, names := range scope.Names {
		in := within(name, cmp.Or(namespace, everywhere))
		all := slices.Concat(to.Names[in], names)
		slices.Sort(all)
		to.Names[in] = slices.Compact(all)
	}
	return nil
}

// list are the queues that may be seen: those of namespaces, those of the cluster, and then Volcano's.
func (s sight) list(now *pending.Snapshot) []queues.Queue {
	found := []queues.Queue{}
	for o := range s.all(now.Local, localKind) {
		found = append(found, queues.LocalQueue(o, s.get(now.Whole, wholeKind, "", o.Path("spec.clusterQueue").Str)))
	}
	for o := range s.all(now.Whole, wholeKind) {
		found = append(found, queues.ClusterQueue(o))
	}
	for o := range s.all(now.Volcano, volcanoKind) {
		found = append(found, queues.VolcanoQueue(o))
	}
	return found
}

// all are the objects that may be seen, in the order of Kubernetes' lists.
func (s sight) all(snapshot *cache.Snapshot, kind string) iter.Seq[*cluster.Object] {
	return func(yield func(*cluster.Object) bool) {
		if snapshot == nil {
			return
		}
		for o := range snapshot.List(stream.AllNamespaces(), cache.Selector{}, "", "") {
			if s.sees(kind, o.GetNamespace(), o.GetName()) && !yield(o) {
				return
			}
		}
	}
}

// get is an object that may be seen; nil: there is none, or it may not be.
func (s sight) get(snapshot *cache.Snapshot, kind, namespace, name string) *cluster.Object {
	if snapshot == nil || !s.sees(kind, namespace, name) {
		return nil
	}
	return snapshot.Get(namespace, name)
}
