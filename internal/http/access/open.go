package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Options configure an Access; all are required.
type Options struct {
	Clusters    []*cache.Kinds // the first is the default one; SetClusters changes them
	Authorizer  auth.Authorizer
	SyncTimeout time.Duration // how long a request waits for a kind's first list
}

// Access finds how much of a target a caller may see, and the store that has it.
type Access struct {
	opts     Options
	clusters atomic.Pointer[clusters]
}

// New returns an Access. An error means that there are no clusters.
func New(opts Options) (*Access, error) {
	a := &Access{opts: opts}
	return a, a.SetClusters(opts.Clusters)
}

// Grant is what a request was granted: the store of its target, and how much of it the caller may see. It must be
// released.
type Grant struct {
	Kinds   *cache.Kinds
	Store   *cache.Store
	Visible *visibility.Visibility
	Release func()
}

// Epoch is the epoch in which positions of what was granted count now. An error wraps cluster.ErrUnavailable.
func (g Grant) Epoch(ctx context.Context) (string, error) {
	return g.Kinds.Cluster().EpochOf(ctx, g.Store.Kind(), g.Store.Followed())
}

// History names, to another gateway, the history of which positions of what was granted are, in the epoch that Epoch said;
// see cluster.HistoryHeader.
func (g Grant) History(epoch string) string {
	if name := g.Visible.Name(); name != "" {
		return epoch + "-" + name
	}
	return epoch
}

// Open authorizes a verb on a target, and finds the store that serves it. The permission is checked first: a caller
// who may not see a kind does not learn whether it exists.
func (a *Access) Open(ctx context.Context, id auth.Identity, t visibility.Target, verb string) (g Grant, err error) {
	defer func() {
		auditrecord.Of(ctx).Decided(ReadVisible(visibility.VisibleTarget{Target: t, Visible: g.Visible}, verb), err)
	}()
	g, kind, err := a.Find(ctx, id, t, verb)
	if err != nil {
		return g, err
	}
	if kind.Measured {
		return g, &reply.Error{
			Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed, Allow: "GET, HEAD, OPTIONS",
			Message: fmt.Sprintf("watch is not supported on resources of kind %q", kind),
		}
	}
	if g.Store, g.Release, err = g.Kinds.Use(kind, id.QuotaOwner()); err != nil {
		return g, err
	}
	if err = g.Store.Unservable(); err != nil {
		g.Release()
	}
	return g, err
}

// FindMeasured authorizes a verb on a target whose kind is measured, and finds the kind.
func (a *Access) FindMeasured(ctx context.Context, id auth.Identity, t visibility.Target, verb string) (g Grant, kind cluster.Kind, err error) {
	g, kind, err = a.Find(ctx, id, t, verb)
	auditrecord.Of(ctx).Decided(ReadVisible(visibility.VisibleTarget{Target: t, Visible: g.Visible}, verb), err)
	if err == nil && !kind.Measured {
		err = cache.ErrNotWatchable
	}
	return g, kind, err
}

// Find authorizes a verb on a target, and finds its kind, but no store. Nothing of it is told to the audit log.
func (a *Access) Find(ctx context.Context, id auth.Identity, t visibility.Target, verb string) (g Grant, kind cluster.Kind, err error) {
	if g.Kinds, err = a.Cluster(t.Cluster); err != nil {
		return g, kind, err
	}
	scope, err := a.permitted(ctx, g.Kinds, id, t, verb, false)
	if err != nil {
		return g, kind, err
	}
	if scope.Empty() {
		return g, kind, Forbidden(id, t, verb)
	}
	kind, err = g.Kinds.Cluster().Resolve(ctx, t.Group, t.Version, t.Resource)
	if err != nil {
		return g, kind, err
	}
	switch {
	case !kind.Namespaced && t.Namespace != "":
		return g, kind, reply.NoResource() // it has no namespace
	case kind.Namespaced && t.Namespace == "" && t.Name != "":
		return g, kind, reply.NoResource() // it is in a namespace
	}
	var ok bool
	if g.Visible, ok = visibility.Of(scope, t, kind); !ok {
		return g, kind, Forbidden(id, t, verb)
	}
	return g, kind, nil
}

// FindGone is Find for a kind that the cluster no longer has, but of which the gateway still knows something. The
// calling code must have checked that the kind is gone. It is not known whether the kind had namespaces, so it is
// treated as if it had.
func (a *Access) FindGone(ctx context.Context, id auth.Identity, t visibility.Target, verb string) (g Grant, err error) {
	if g.Kinds, err = a.Cluster(t.Cluster); err != nil {
		return g, err
	}
	scope, err := a.permitted(ctx, g.Kinds, id, t, verb, true)
	if err != nil {
		return g, err
	}
	var ok bool
	if g.Visible, ok = visibility.Of(scope, t, cluster.Kind{Group: t.Group, Version: t.Version, Resource: t.Resource, Namespaced: true}); !ok {
		return g, Forbidden(id, t, verb)
	}
	return g, nil
}

// UnconfirmedFor is how long a client may be told on, by an earlier answer, what nobody can say is still permitted
// (docs/security.md).
const UnconfirmedFor = time.Minute

// OpenSynced is Open, but waits for the store's first list. It does not wait for a cluster that is away.
func (a *Access) OpenSynced(ctx context.Context, id auth.Identity, t visibility.Target, verb string) (Grant, error) {
	g, err := a.Open(ctx, id, t, verb)
	if err != nil || g.Store.Upstream().Synced {
		return g, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.opts.SyncTimeout)
	defer cancel()
	if err := g.Store.WaitReachable(ctx); err != nil {
		g.Release()
		return Grant{}, err
	}
	return g, nil
}

// AwaitVersion waits until a store has reached a version; 0 means any. A version that nobody has is a 504.
func AwaitVersion(ctx context.Context, store *cache.Store, version uint64) error {
	if version == 0 {
		return nil
	}
	have := store.Reach(ctx, version)
	switch {
	case have >= version:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return reply.TooLarge(version, have)
}

// allWithin is how long the rest of a revision is waited for.
const allWithin = 3 * time.Second

// AwaitAll waits until a store has all of a version that it has reached.
func AwaitAll(ctx context.Context, store *cache.Store, version uint64) error {
	waiting, cancel := context.WithTimeout(ctx, allWithin)
	defer cancel()
	store.AwaitAll(waiting, version)
	return ctx.Err()
}

// permitted asks on which part of a target a caller may do a verb. Exists says that the target is being served, so
// that its existence is not checked again: when a kind is removed, its streams end with that reason, and not for lack
// of a permission.
func (a *Access) permitted(ctx context.Context, kinds *cache.Kinds, id auth.Identity, t visibility.Target, verb string, exists bool) (auth.Scope, error) {
	request := t.Request(kinds.Cluster().Name(), verb)
	allowed, err := a.allowed(ctx, id, request)
	switch {
	case err != nil:
		return auth.Scope{}, err
	case allowed:
		return auth.Scope{All: true}, nil
	case t.Name != "":
		return auth.Scope{}, nil
	case t.Namespace == "" && !exists && a.isMadeUp(ctx, kinds, id, func(ctx context.Context) (cluster.Kind, error) {
		return kinds.Cluster().Resolve(ctx, t.Group, t.Version, t.Resource)
	}):
		return auth.Scope{}, nil
	}
	return a.scope(ctx, id, request)
}

// See asks again how much a caller may see of a target of a kind that is being served; ok is false if that is
// nothing.
func (a *Access) See(ctx context.Context, kinds *cache.Kinds, id auth.Identity, t visibility.Target, kind cluster.Kind, verb string) (_ *visibility.Visibility, ok bool, err error) {
	scope, err := a.permitted(ctx, kinds, id, t, verb, true)
	if err != nil {
		return nil, false, err
	}
	visible, ok := visibility.Of(scope, t, kind)
	return visible, ok, nil
}

// Everywhere reports whether a caller may do a verb on all of a target's kind, in all namespaces,
// be they gone or to come.
func (a *Access) Everywhere(ctx context.Context, kinds *cache.Kinds, id auth.Identity, t visibility.Target, verb string) (bool, error) {
	t.Namespace, t.Name = "", ""
	decision, err := a.opts.Authorizer.Authorize(ctx, id, t.Request(kinds.Cluster().Name(), verb))
	return decision.Allowed, err
}

// May asks whether Open would show a caller anything of a target; whole says whether that is all of it. A target
// without a version means the one that the cluster prefers, and a namespace does not count for a kind that is in none.
// Like Open, it does not tell a caller who may not see a kind whether it exists.
func (a *Access) May(ctx context.Context, kinds *cache.Kinds, id auth.Identity, t visibility.Target, verb string) (ok, whole bool, err error) {
	find := func() (kind cluster.Kind, err error) {
		if t.Version == "" {
			kind, err = kinds.Cluster().Preferred(ctx, t.Group, t.Resource)
		} else {
			kind, err = kinds.Cluster().Resolve(ctx, t.Group, t.Version, t.Resource)
		}
		if err == nil && !kind.Watchable && (!kind.Measured || verb == "watch") {
			err = cluster.ErrNoKind
		}
		if err == nil && !kind.Namespaced {
			t.Namespace = ""
		}
		return kind, err
	}
	var kind cluster.Kind
	exists, err := a.MayRead(ctx, kinds, id, Discovery)
	if err == nil && exists {
		kind, err = find()
	}
	if err != nil {
		return false, false, notThere(err)
	}
	scope, err := a.permitted(ctx, kinds, id, t, verb, true)
	if err != nil || scope.Empty() {
		return false, false, err
	}
	if !exists {
		if kind, err = find(); err != nil {
			return false, false, notThere(err)
		}
	}
	visible, ok := visibility.Of(scope, t, kind)
	return ok, ok && visible == nil, nil
}

// notThere is no error for a kind that does not exist: nobody may see anything of it.
func notThere(err error) error {
	if errors.Is(err, cluster.ErrNoKind) {
		return nil
	}
	return err
}

// Scope asks where a caller may do a verb on a kind, in any version.
func (a *Access) Scope(ctx context.Context, id auth.Identity, kinds *cache.Kinds, group, resource, verb string) (auth.Scope, error) {
	name := resource
	if group != "" {
		name += "." + group
	}
	if !kinds.Cluster().Serves(group, resource) || a.isMadeUp(ctx, kinds, id, func(ctx context.Context) (cluster.Kind, error) { return kinds.Cluster().Named(ctx, name) }) {
		return auth.Scope{}, nil
	}
	scope, err := a.scope(ctx, id, auth.Request{Cluster: kinds.Cluster().Name(), Verb: verb, Group: group, Resource: resource})
	if err != nil || scope.All || scope.Empty() {
		return scope, err
	}
	if kind, err := kinds.Cluster().Named(ctx, name); err == nil {
		scope = visibility.Applicable(scope, kind)
	}
	return scope, nil
}

// ScopeIn asks where a caller may do what is asked about in a cluster, of a kind that is known to
// exist. The answer is the authorizer's own: a role in a namespace counts even for kinds that are
// in none.
func (a *Access) ScopeIn(ctx context.Context, id auth.Identity, kinds *cache.Kinds, about auth.Request) (auth.Scope, error) {
	about.Cluster = kinds.Cluster().Name()
	return a.opts.Authorizer.Scope(ctx, id, about)
}
