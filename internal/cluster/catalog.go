package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// catalog is what a cluster serves, according to its discovery documents at one moment.
type catalog struct {
	at        time.Time
	changes   int // Cluster.changes when the cluster was asked
	kinds     map[schema.GroupVersionResource]Kind
	preferred map[schema.GroupResource]Kind // each kind in the version that the cluster prefers
	failed    map[schema.GroupVersion]error // versions of aggregated API servers that did not answer
	services  apiServices                   // nil if they are not known
	unsure    bool                          // what was asked of them was not answered, so some may be missing
	storages  map[schema.GroupVersion]string
}

// catalogAge is how old a catalog may be to prove that a kind does not exist. So a new CRD is served a second after
// it was installed at the latest, and requests for kinds that do not exist cost the API server at most one discovery
// a second.
const catalogAge = time.Second

// Resolve finds a kind by group, version and plural name. An error wraps ErrNoKind or ErrUnavailable.
func (c *Cluster) Resolve(ctx context.Context, group, version, resource string) (Kind, error) {
	gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	if known, change := c.latest(group); known != nil && known.changes >= change {
		if kind, ok := known.kinds[gvr]; ok { // the usual case
			return kind, nil
		}
	}
	return c.find(ctx, question{
		name: resource + " of " + gvr.GroupVersion().String(),
		in: func(catalog *catalog) (Kind, bool) {
			kind, ok := catalog.kinds[gvr]
			return kind, ok
		},
		of:     func(gv schema.GroupVersion) bool { return gv == gvr.GroupVersion() },
		groups: []string{group},
	})
}

// Named finds a kind by resource[.group] in the version that the cluster prefers, or by resource.version.group.
// An error wraps ErrNoKind or ErrUnavailable.
func (c *Cluster) Named(ctx context.Context, name string) (Kind, error) {
	gvr, gr := schema.ParseResourceArg(name)
	groups := []string{gr.Group}
	if gvr != nil {
		groups = append(groups, gvr.Group)
	}
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
		groups: groups,
	})
}

// Preferred finds a kind by group and plural name in the version that the cluster prefers. An error wraps ErrNoKind or
// ErrUnavailable.
func (c *Cluster) Preferred(ctx context.Context, group, resource string) (Kind, error) {
	gr := schema.GroupResource{Group: group, Resource: resource}
	return c.find(ctx, question{
		name: gr.String(),
		in: func(catalog *catalog) (Kind, bool) {
			kind, ok := catalog.preferred[gr]
			return kind, ok
		},
		of:     func(gv schema.GroupVersion) bool { return gv.Group == group },
		groups: []string{group},
	})
}

// Kinds returns the kinds that may be served, each in the version that the cluster prefers, sorted by group and name.
// An error wraps ErrUnavailable.
func (c *Cluster) Kinds(ctx context.Context) ([]Kind, error) {
	known, changes := c.known()
	if known == nil || known.changes < changes {
		asked, err := c.askCatalog(ctx, changes)
		if err != nil && known == nil {
			return nil, err
		}
		if err == nil {
			known = asked
		}
	}
	kinds := slices.DeleteFunc(slices.Collect(maps.Values(known.preferred)), func(k Kind) bool { return !k.Watchable && !k.Measured })
	slices.SortFunc(kinds, func(a, b Kind) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource)) })
	return kinds, nil
}

// KindOf finds a kind by group and the name that its objects have, such as JobSet, in the version
// that the cluster prefers. An error wraps ErrNoKind or ErrUnavailable.
func (c *Cluster) KindOf(ctx context.Context, group, name string) (Kind, error) {
	return c.find(ctx, question{
		name:   name + " of group " + strconv.Quote(group),
		in:     func(catalog *catalog) (Kind, bool) { return catalog.kindOf(group, name) },
		of:     func(gv schema.GroupVersion) bool { return gv.Group == group },
		groups: []string{group},
	})
}

// Knows is KindOf by what the cluster has said so far. It asks nobody.
func (c *Cluster) Knows(group, name string) (Kind, bool) {
	known, _ := c.known()
	if known == nil {
		return Kind{}, false
	}
	return known.kindOf(group, name)
}

func (c *catalog) kindOf(group, name string) (Kind, bool) {
	for _, kind := range c.preferred {
		if kind.Group == group && kind.Kind == name {
			return kind, true
		}
	}
	return Kind{}, false
}

// question is a search for one kind in a catalog.
type question struct {
	name string // for errors
	in   func(*catalog) (Kind, bool)
	of   func(schema.GroupVersion) bool // the versions that may have the kind

	groups []string // the groups of these versions
}

// Changed records that the kinds of a group may have changed: a definition came, changed or went, or a kind was not
// found where it had been. When a kind of the group is needed next, the cluster is asked again.
func (c *Cluster) Changed(group string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = map[string]int{}
	}
	c.changes++
	c.changed[group] = c.changes
}

// Defined is Changed for a change that is known to be one: a definition came, changed or went.
func (c *Cluster) Defined(group string) {
	c.Changed(group)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.defined = time.Now()
}

// latest returns the newest catalog, or nil, and the number of the last change of any of the groups.
func (c *Cluster) latest(groups ...string) (_ *catalog, change int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, group := range groups {
		change = max(change, c.changed[group])
	}
	return c.catalog, change
}

func (c *Cluster) find(ctx context.Context, q question) (Kind, error) {
	known, change := c.latest(q.groups...)
	current := known != nil && known.changes >= change
	var remembered Kind
	found := false
	if known != nil {
		if remembered, found = q.in(known); found && current {
			return remembered, nil
		}
	}
	if !current || time.Since(known.at) > catalogAge {
		asked, err := c.askCatalog(ctx, change)
		switch {
		case err != nil && found && ctx.Err() == nil:
			return remembered, nil // a cluster that is away still has its kinds
		case err != nil:
			return Kind{}, err
		}
		known = asked
		if kind, ok := q.in(known); ok {
			return kind, nil
		}
	}
	for failed, cause := range known.failed {
		if q.of(failed) {
			return Kind{}, fmt.Errorf("%w: discovery of %s failed: %w", ErrUnavailable, failed, cause)
		}
	}
	return Kind{}, fmt.Errorf("%w: %s (cluster %s)", ErrNoKind, q.name, c.name)
}

// askCatalog reads what the cluster serves after a change. Callers that ask at the same time share the request.
func (c *Cluster) askCatalog(ctx context.Context, change int) (*catalog, error) {
	for {
		answer, err := c.once(ctx, "catalog", func(ctx context.Context) (any, error) { return c.discover(ctx) })
		if err != nil {
			return nil, err
		}
		if asked := answer.(*catalog); asked.changes >= change {
			return asked, nil
		}
		// The request was under way when the last change became known.
	}
}

// known returns the newest catalog, or nil, and the number of changes so far.
func (c *Cluster) known() (_ *catalog, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.catalog, c.changes
}

// answered says how discovery was answered: client-go does not read the answer, and calls it unknown.
func answered(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return fmt.Errorf("answered with %d %s: %w", status.ErrStatus.Code, http.StatusText(int(status.ErrStatus.Code)), err)
	}
	return err
}

// discover reads the discovery documents. They are aggregated in every supported version of Kubernetes: one request
// for the core group, and one for all others.
func (c *Cluster) discover(ctx context.Context) (*catalog, error) {
	before, changes := c.known()
	groups, lists, err := c.discovery.ServerGroupsAndResourcesWithContext(ctx)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, fmt.Errorf("%w: discovery of cluster %s: %w", ErrUnavailable, c.name, answered(err))
	}
	found := &catalog{
		at:        time.Now(),
		changes:   changes,
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
			if strings.Contains(r.Name, "/") || !c.Serves(gv.Group, r.Name) {
				continue // a subresource, or not to be served
			}
			found.kinds[gv.WithResource(r.Name)] = Kind{
				Group:      gv.Group,
				Version:    gv.Version,
				Resource:   r.Name,
				Kind:       r.Kind,
				Namespaced: r.Namespaced,
				Watchable:  slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") && !IsMeasured(gv.Group, r.Name),
				Measured:   slices.Contains(r.Verbs, "list") && IsMeasured(gv.Group, r.Name),
			}
		}
	}
	found.services, err = c.askAPIServices(ctx)
	found.unsure = err != nil
	if before != nil {
		found.remember(before)
		if err != nil {
			found.services = before.services
		}
	}
	found.tellStorages()
	found.prefer(groups)
	c.mu.Lock()
	c.catalog = found
	c.mu.Unlock()
	return found, nil
}

// remember takes over what an older catalog said of the versions whose discovery failed: a server that does not
// answer still has its kinds.
func (c *catalog) remember(older *catalog) {
	for gvr, kind := range older.kinds {
		if _, failed := c.failed[gvr.GroupVersion()]; failed {
			c.kinds[gvr] = kind
			if older.preferred[gvr.GroupResource()] == kind {
				c.preferred[gvr.GroupResource()] = kind
			}
		}
	}
}

// Serves reports whether a kind may be served, if the cluster has it.
func (c *Cluster) Serves(group, resource string) bool {
	return c.opts.Serves == nil || c.opts.Serves(group, resource)
}

// prefer finds, for each kind, the version that its group prefers among those that have the kind. It replaces no
// entry.
func (c *catalog) prefer(groups []*metav1.APIGroup) {
	kinds := map[schema.GroupVersion][]Kind{}
	for gvr, kind := range c.kinds {
		kinds[gvr.GroupVersion()] = append(kinds[gvr.GroupVersion()], kind)
	}
	for _, group := range groups {
		for _, version := range preferredFirst(group) {
			for _, kind := range kinds[schema.GroupVersion{Group: group.Name, Version: version}] {
				name := schema.GroupResource{Group: group.Name, Resource: kind.Resource}
				if _, taken := c.preferred[name]; !taken {
					c.preferred[name] = kind
				}
			}
		}
	}
}

func preferredFirst(group *metav1.APIGroup) []string {
	versions := []string{group.PreferredVersion.Version}
	for _, v := range group.Versions {
		versions = append(versions, v.Version)
	}
	return versions
}
