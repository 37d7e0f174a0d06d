package notifications

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/inbox"
	"github.com/kubecast/kubecast/internal/visibility"
)

// What callers may see of their notifications is about several clusters and kinds. It is put into
// one Visibility, in which a namespace is named CLUSTER/KIND/NAMESPACE, and all namespaces
// CLUSTER/KIND/*. No part of these names contains a slash.

// everywhere stands for all namespaces.
const everywhere = "*"

func within(clusterID, kind, namespace string) string {
	return clusterID + "/" + kind + "/" + namespace
}

// questionsAtOnce is how many questions to the authorizer are asked at once for one caller.
const questionsAtOnce = 4

// see decides what a caller may see: the kinds whose history is kept, where the caller may get
// them. What a cluster that cannot be reached would have to decide may not be seen meanwhile.
func (h *Handler) see(ctx context.Context, id auth.Identity) (*visibility.Visibility, error) {
	if h.opts.SeeTheirOwn {
		return nil, nil
	}
	all := h.opts.Access.All()
	scopes := make([]auth.Scope, len(all)*len(h.opts.Kinds))
	var asking errgroup.Group
	asking.SetLimit(questionsAtOnce)
	for c, kinds := range all {
		for k, kind := range h.opts.Kinds {
			asking.Go(func() (err error) {
				scopes[c*len(h.opts.Kinds)+k], err = h.seeKind(ctx, id, kinds, kind)
				if err != nil && kinds.Cluster().Away() != nil && ctx.Err() == nil {
					return nil
				}
				return err
			})
		}
	}
	if err := asking.Wait(); err != nil {
		return nil, err
	}
	whole := auth.Scope{Names: map[string][]string{}}
	for _, s := range scopes {
		whole.Namespaces = append(whole.Namespaces, s.Namespaces...)
		for namespace, names := range s.Names {
			whole.Names[namespace] = names
		}
	}
	slices.Sort(whole.Namespaces)
	visible, ok := visibility.Of(whole, visibility.Target{}, cluster.Kind{Namespaced: true})
	if !ok {
		visible = visibility.Nothing()
	}
	return visible, nil
}

// seeKind is what a caller may see of one kind of a cluster.
func (h *Handler) seeKind(ctx context.Context, id auth.Identity, kinds *cache.Kinds, kind string) (s auth.Scope, err error) {
	identity, err := kinds.Cluster().Identity(ctx)
	if err != nil {
		return s, err
	}
	resource, group, _ := strings.Cut(kind, ".")
	permitted, err := h.opts.Access.ScopeIn(ctx, id, kinds, auth.Request{Verb: "get", Group: group, Resource: resource})
	if err != nil {
		return s, err
	}
	if permitted.All {
		return auth.Scope{Namespaces: []string{within(identity, kind, everywhere)}}, nil
	}
	for _, namespace := range permitted.Namespaces {
		s.Namespaces = append(s.Namespaces, within(identity, kind, namespace))
	}
	s.Names = map[string][]string{}
	for namespace, names := range permitted.Names {
		if namespace == "" {
			namespace = everywhere
		}
		s.Names[within(identity, kind, namespace)] = names
	}
	return s, nil
}

// oneTime is how long after a namespace was made something must have been seen in one of its name
// to have been in this one, whichever clocks say so.
const oneTime = jobs.Time(time.Minute / time.Millisecond)

// seesOf says of jobs whether they may be seen. A permission in a namespace counts for the one
// that lives, which is asked for now: after the permission. What was in one of its name before is
// somebody else's.
func (h *Handler) seesOf(ctx context.Context, visible *visibility.Visibility) (inbox.Sees, error) {
	scope := visible.Shows()
	if scope.All {
		return func(inbox.JobRef) bool { return true }, nil
	}
	living, err := h.living(ctx, scope)
	if err != nil {
		return nil, err
	}
	return func(p inbox.JobRef) bool {
		if scope.Sees(within(p.Cluster, p.Resource, everywhere), p.Name) {
			return true
		}
		n, lives := living[namespaceName{p.Cluster, p.Namespace}]
		isOf := lives && (n.UID == p.NamespaceUID || p.NamespaceUID == "" && p.Seen > jobs.At(n.Created)+oneTime)
		return isOf && scope.Sees(within(p.Cluster, p.Resource, p.Namespace), p.Name)
	}, nil
}

// namespaceName is a namespace's name in a cluster.
type namespaceName struct{ cluster, namespace string }

// living are the namespaces that there are now of those that a scope names. Those of a cluster that is away are none.
func (h *Handler) living(ctx context.Context, scope auth.Scope) (map[namespaceName]cluster.Namespace, error) {
	names := map[string]map[string]bool{} // by cluster
	note := func(place string) {
		identity, rest, _ := strings.Cut(place, "/")
		if _, namespace, _ := strings.Cut(rest, "/"); namespace != everywhere && namespace != "" {
			if names[identity] == nil {
				names[identity] = map[string]bool{}
			}
			names[identity][namespace] = true
		}
	}
	for _, place := range scope.Namespaces {
		note(place)
	}
	for place := range scope.Names {
		note(place)
	}
	living := map[namespaceName]cluster.Namespace{}
	if len(names) == 0 {
		return living, nil
	}
	for _, kinds := range h.opts.Access.All() {
		identity, err := kinds.Cluster().Identity(ctx)
		var found []cluster.Namespace
		if err == nil && len(names[identity]) > 0 {
			found, err = kinds.Cluster().Namespaces(ctx, slices.Collect(maps.Keys(names[identity])))
		}
		if err != nil && (kinds.Cluster().Away() == nil || ctx.Err() != nil) {
			return nil, reply.Unavailable("the cluster cannot be asked which namespaces there are; try again in a moment", awayFor, err)
		}
		for _, n := range found {
			living[namespaceName{identity, n.Name}] = n
		}
	}
	return living, nil
}
