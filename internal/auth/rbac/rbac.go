// Package rbac decides who may see what as Kubernetes' own RBAC does, in process.
//
// It follows the Roles, ClusterRoles and bindings of each cluster, and keeps an index from subjects to what they may
// do. So a question costs a few look-ups, and no request. Aggregated ClusterRoles need no special care, since the
// controller manager writes the aggregated rules into them.
//
// It decides by what it saw last. A change takes effect as soon as its event has come. The events of one kind come in
// order; as at the API server, roles and bindings have no order among each other. While the API server is away, the
// last known permissions count. If a part of them cannot be read, for whatever reason, while the API server answers
// other requests, nothing is allowed after a minute. Nor is anything allowed before all of them have been read once.
//
// The group system:masters is allowed everything. The API server does the same, and there, too, it is no part of
// RBAC.
package rbac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/mirror"
	"github.com/kubecast/kubecast/internal/cluster"
)

// privileged is the group whose members the API server lets do everything.
const privileged = "system:masters"

// Authorizer is an auth.Authorizer. Its methods may be called concurrently.
type Authorizer struct {
	log      *slog.Logger
	audience *audience

	mu       sync.RWMutex
	clusters map[string]*member
}

var _ auth.Authorizer = (*Authorizer)(nil)

// member is one cluster.
type member struct {
	name         string
	cluster      *cluster.Cluster
	index        *index
	mirrors      [4]*mirror.Mirror
	confirmation confirmation
	log          *slog.Logger
}

// New returns an Authorizer without clusters.
func New(log *slog.Logger) *Authorizer {
	return &Authorizer{log: log, audience: newAudience(), clusters: map[string]*member{}}
}

// Add adds a cluster. The returned function follows its roles and bindings until the context ends, and then removes
// the cluster.
func (a *Authorizer) Add(c *cluster.Cluster) (follow func(context.Context) error) {
	m := &member{name: c.Name(), cluster: c, index: newIndex(), confirmation: newConfirmation(), log: a.log}
	m.mirrors = [4]*mirror.Mirror{
		// Roles come first, so that most of them are known when their bindings come.
		a.follow(m, "roles", "Role", true, []string{"rules"},
			func(k key, version string, o object) []subject { return m.index.putRole(k, version, o.Rules) },
			m.index.removeRole),
		a.follow(m, "clusterroles", "ClusterRole", false, []string{"rules"},
			func(k key, version string, o object) []subject { return m.index.putRole(k, version, o.Rules) },
			m.index.removeRole),
		a.follow(m, "rolebindings", "RoleBinding", true, []string{"roleRef", "subjects"},
			func(k key, version string, o object) []subject {
				return m.index.putBinding(bindingKey(k), version, o.RoleRef, o.Subjects)
			},
			func(k key) []subject { return m.index.removeBinding(bindingKey(k)) }),
		a.follow(m, "clusterrolebindings", "ClusterRoleBinding", false, []string{"roleRef", "subjects"},
			func(k key, version string, o object) []subject {
				return m.index.putBinding(bindingKey(k), version, o.RoleRef, o.Subjects)
			},
			func(k key) []subject { return m.index.removeBinding(bindingKey(k)) }),
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clusters[c.Name()] = m
	return func(ctx context.Context) error {
		defer a.remove(m)
		return m.run(ctx, a.audience.notifyAll)
	}
}

// remove removes a cluster, unless another one of the same name has replaced it.
func (a *Authorizer) remove(m *member) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clusters[m.name] == m {
		delete(a.clusters, m.name)
	}
}

func (a *Authorizer) cluster(name string) *member {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.clusters[name]
}

// object is the part of a role or binding that is used.
type object struct {
	Rules    []rbacv1.PolicyRule `json:"rules"`
	RoleRef  rbacv1.RoleRef      `json:"roleRef"`
	Subjects []rbacv1.Subject    `json:"subjects"`
}

func (a *Authorizer) follow(m *member, resource, kind string, namespaced bool, keep []string,
	put func(key, string, object) []subject, remove func(key) []subject) *mirror.Mirror {
	return mirror.New(m.cluster, mirror.Options{
		Kind: cluster.Kind{
			Group: rbacv1.GroupName, Version: "v1", Resource: resource, Kind: kind, Namespaced: namespaced, Watchable: true,
		},
		Keep: keep,
		Put: func(o *cluster.Object) {
			k := key{o.GetNamespace(), o.GetName()}
			var read object
			if err := json.Unmarshal([]byte(o.JSON()), &read); err != nil {
				// An object that cannot be read gives nothing. In particular it must not go on giving what it gave
				// before.
				a.log.Warn("an RBAC object cannot be read and counts as absent", "cluster", m.name, "kind", kind,
					"object", o.Key(), "error", err)
				a.audience.notify(remove(k))
				return
			}
			// The uid is a part of the version: in a restored cluster, an object that was deleted and made anew may
			// have a version that was seen before.
			a.audience.notify(put(k, o.UID()+"@"+o.GetResourceVersion(), read))
		},
		Remove: func(namespace, name string) { a.audience.notify(remove(key{namespace, name})) },
		Lost:   m.confirmation.wake,
		Log:    a.log,
	})
}

func (m *member) run(ctx context.Context, notify func()) error {
	var running sync.WaitGroup
	errs := make([]error, len(m.mirrors))
	for i, one := range m.mirrors {
		running.Go(func() { errs[i] = one.Run(ctx) })
	}
	running.Go(func() { m.confirm(ctx, notify) })
	running.Wait()
	return errors.Join(errs...)
}

// Ready is nil when all roles and bindings of a cluster are known. Otherwise it says what is missing, and why.
func (a *Authorizer) Ready(cluster string) error {
	if m := a.cluster(cluster); m != nil {
		return m.usable()
	}
	return fmt.Errorf("%w: there is no cluster %q", auth.ErrUndecided, cluster)
}

// usable is nil if what is known of the cluster suffices for decisions.
func (m *member) usable() error {
	if doubt := m.confirmation.doubt.Load(); doubt != nil {
		return *doubt
	}
	for i, one := range m.mirrors {
		state := one.State()
		switch {
		case state.Synced:
		case state.Refused():
			return m.cannot(i, state.Err)
		case state.Err != nil:
			return fmt.Errorf("%w: cluster %s: %s are not all read yet: %w", auth.ErrUndecided, m.name, one.Kind(), state.Err)
		default:
			return fmt.Errorf("%w: cluster %s: %s are not all read yet", auth.ErrUndecided, m.name, one.Kind())
		}
	}
	return nil
}

// waitAtMost is how long a question waits for the first lists, when the gateway has just started.
const waitAtMost = 5 * time.Second

// wait waits until each mirror has been synced, or has failed, for the first time.
func (m *member) wait(ctx context.Context) error {
	timer := time.NewTimer(waitAtMost)
	defer timer.Stop()
	for _, one := range m.mirrors {
		select {
		case <-one.Attempted():
		case <-timer.C:
			return m.usable()
		case <-ctx.Done():
			return fmt.Errorf("wait for the roles and bindings of cluster %s: %w", m.name, ctx.Err())
		}
	}
	return m.usable()
}

// of returns the cluster of a question. It waits for a cluster that is not usable yet, and fails if the question
// cannot be answered.
func (a *Authorizer) of(ctx context.Context, id *auth.Identity, req *auth.Request) (*member, error) {
	m := a.cluster(req.Cluster)
	switch {
	case m == nil:
		return nil, fmt.Errorf("%w: there is no cluster %q", auth.ErrUndecided, req.Cluster)
	case id.Username == "":
		return nil, fmt.Errorf("%w: the identity has no name", auth.ErrUndecided)
	}
	if m.usable() == nil {
		return m, nil
	}
	return m, m.wait(ctx)
}

// Authorize implements auth.Authorizer. An error wraps auth.ErrUndecided, or is ctx's.
func (a *Authorizer) Authorize(ctx context.Context, id auth.Identity, req auth.Request) (auth.Decision, error) {
	m, err := a.of(ctx, &id, &req)
	if err != nil {
		return auth.Decision{}, err
	}
	if slices.Contains(id.Groups, privileged) {
		return auth.Decision{Allowed: true, Reason: privileged}, nil
	}
	if req.Path != "" {
		reason, allowed := m.index.allowsPath(&id, req.Path)
		return auth.Decision{Allowed: allowed && req.Verb == "get", Reason: reason}, nil
	}
	q := newQuestion(req)
	reason, allowed := m.index.allows(&id, &q, req.Namespace)
	return auth.Decision{Allowed: allowed, Reason: reason}, nil
}

// Scope implements auth.Authorizer. An error wraps auth.ErrUndecided, or is ctx's.
func (a *Authorizer) Scope(ctx context.Context, id auth.Identity, req auth.Request) (auth.Scope, error) {
	m, err := a.of(ctx, &id, &req)
	if err != nil {
		return auth.Scope{}, err
	}
	if slices.Contains(id.Groups, privileged) {
		if req.Namespace != "" {
			return auth.Scope{Namespaces: []string{req.Namespace}}, nil
		}
		return auth.Scope{All: true}, nil
	}
	q := newQuestion(req)
	if q.verb == 0 {
		return auth.Scope{}, nil
	}
	scope := m.index.scope(&id, &q)
	if req.Namespace != "" {
		scope = scope.In(req.Namespace)
	}
	return scope, nil
}

// Changes implements auth.Authorizer: changed is called for each change of a role or binding that the identity has,
// or had.
func (a *Authorizer) Changes(id auth.Identity, changed func()) (stop func()) {
	return a.audience.join(id, changed)
}
