package notifications

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/notify/inbox"
)

// What callers may see of their notifications is about several clusters and kinds. It is put into one Visibility, in which a
// namespace is named CLUSTER/KIND/NAMESPACE, and all namespaces CLUSTER/KIND/*. No part of these names contains a slash.

// everywhere stands for all namespaces.
const everywhere = "*"

func within(clusterID, kind, namespace string) string {
	return clusterID + "/" + kind + "/" + namespace
}

// questionsAtOnce is how many questions to the authorizer are asked at once for one caller.
const questionsAtOnce = 4

// see decides what a caller may see: the kinds whose history is kept, where the caller may get them. What a cluster that cannot be
// reached would have to decide may not be seen meanwhile.
func (h *Handler) see(ctx context.Context, id auth.Identity) (*access.Visibility, error) {
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
	visible, ok := access.VisibilityOf(whole, access.Target{}, cluster.Kind{Namespaced: true})
	if !ok {
		visible = access.Nothing()
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

// seesOf says of places whether they may be seen.
func seesOf(visible *access.Visibility) inbox.Sees {
	scope := visible.Shows()
	return func(p inbox.Place) bool {
		return scope.Sees(within(p.Cluster, p.Resource, p.Namespace), p.Name) || scope.Sees(within(p.Cluster, p.Resource, everywhere), p.Name)
	}
}
