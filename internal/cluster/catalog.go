package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// catalog is what a cluster serves, as its discovery documents said at one time.
type catalog struct {
	at        time.Time
	kinds     map[schema.GroupVersionResource]Kind
	preferred map[schema.GroupResource]Kind // in the version that the cluster prefers
	failed    map[schema.GroupVersion]error // served by an aggregated API server that did not answer
}

// catalogAge is how old a catalog may be to be believed that it lacks a kind: a CRD is served a second after it was
// installed, and questions for nonsense cost the API server one discovery a second.
const catalogAge = time.Second

// Resolve finds a kind by group, version and plural name. An error wraps ErrNoKind or ErrUnavailable.
func (c *Cluster) Resolve(ctx context.Context, group, version, resource string) (Kind, error) {
	gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	return c.find(ctx, question{
		name: resource + " of " + gvr.GroupVersion().String(),
		in: func(catalog *catalog) (Kind, bool) {
			kind, ok := catalog.kinds[gvr]
			return kind, ok
		},
		of: func(gv schema.GroupVersion) bool { return gv == gvr.GroupVersion() },
	})
}

// Named finds a kind by resource[.group] in the version that the cluster prefers, or by resource.version.group.
// An error wraps ErrNoKind or ErrUnavailable.
func (c *Cluster) Named(ctx context.Context, name string) (Kind, error) {
	gvr, gr := schema.ParseResourceArg(name)
	return c.find(ctx, question{
		name: name,
		in: func(catalog *catalog) (Kind, bool) {
			kind, ok := catalog.preferred[gr]
			if !ok && gvr != nil {
				kind, ok = catalog.kinds[*gvr]
			}
			return kind, ok
		},
		of: func(gv schema.GroupVersion) bool {
			return gv.Group == gr.Group || gvr != nil && gv == gvr.GroupVersion()
		},
	})
}

// question is what is asked of a catalog.
type question struct {
	name string // for errors
	in   func(*catalog) (Kind, bool)
	of   func(schema.GroupVersion) bool // where the kind would be
}

func (c *Cluster) find(ctx context.Context, q question) (Kind, error) {
	c.mu.Lock()
	current := c.catalog
	c.mu.Unlock()
	if current != nil {
		if kind, ok := q.in(current); ok {
			return kind, nil
		}
	}
	if current == nil || time.Since(current.at) > catalogAge {
		answer, err := c.once(ctx, "catalog", func(ctx context.Context) (any, error) { return c.discover(ctx) })
		if err != nil {
			return Kind{}, err
		}
		current = answer.(*catalog)
		if kind, ok := q.in(current); ok {
			return kind, nil
		}
	}
	for failed, cause := range current.failed {
		if q.of(failed) {
			return Kind{}, fmt.Errorf("%w: discovery of %s failed: %w", ErrUnavailable, failed, cause)
		}
	}
	return Kind{}, fmt.Errorf("%w: %s (cluster %s)", ErrNoKind, q.name, c.name)
}

// discover reads the discovery documents: one request where they are aggregated, as in every supported version.
func (c *Cluster) discover(ctx context.Context) (*catalog, error) {
	groups, lists, err := c.discovery.ServerGroupsAndResourcesWithContext(ctx)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, fmt.Errorf("%w: discovery of cluster %s: %w", ErrUnavailable, c.name, err)
	}
	found := &catalog{
		at:        time.Now(),
		kinds:     map[schema.GroupVersionResource]Kind{},
		preferred: map[schema.GroupResource]Kind{},
		failed:    failed,
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") {
				continue // a subresource
			}
			found.kinds[gv.WithResource(r.Name)] = Kind{
				Group:      gv.Group,
				Version:    gv.Version,
				Resource:   r.Name,
				Kind:       r.Kind,
				Namespaced: r.Namespaced,
				Watchable:  slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch"),
			}
		}
	}
	for _, group := range groups {
		for _, version := range preferredFirst(group) {
			for gvr, kind := range found.kinds {
				if gvr.Group != group.Name || gvr.Version != version {
					continue
				}
				if _, taken := found.preferred[gvr.GroupResource()]; !taken {
					found.preferred[gvr.GroupResource()] = kind
				}
			}
		}
	}
	c.mu.Lock()
	c.catalog = found
	c.mu.Unlock()
	return found, nil
}

func preferredFirst(group *metav1.APIGroup) []string {
	versions := []string{group.PreferredVersion.Version}
	for _, v := range group.Versions {
		versions = append(versions, v.Version)
	}
	return versions
}
