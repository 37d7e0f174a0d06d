// Package apitest is an API server for tests. It imitates what Kubecast asks of a real one:
// discovery, lists in one piece or in pages, gets, watches with bookmarks and an end, one
// resourceVersion for everything, a history that can be compacted or taken back,
// SubjectAccessReviews, those of oneself, a few documents, and on demand a real one's faults.
//
// It imitates nothing else. It validates no request, and takes no changes but by its methods. Lists
// and watches are of whole kinds, without selectors and without lists that are streamed. Two
// versions of a group are two kinds with objects of their own. Tests for which that is not enough
// use a real control plane.
//
// An API is an http.RoundTripper, so that the real clients can run against it within a synctest bubble. It is also an
// http.Handler, for tests that need connections. It shares no code with what it tests but the type of kinds.
package apitest

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Kinds for tests.
var (
	Pods        = cluster.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true, Watchable: true}
	Nodes       = cluster.Kind{Version: "v1", Resource: "nodes", Kind: "Node", Watchable: true}
	Jobs        = cluster.Kind{Group: "batch", Version: "v1", Resource: "jobs", Kind: "Job", Namespaced: true, Watchable: true}
	Deployments = cluster.Kind{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true, Watchable: true}
	Widgets     = cluster.Kind{Group: "example.org", Version: "v1", Resource: "widgets", Kind: "Widget", Namespaced: true, Watchable: true}
	Workloads   = cluster.Kind{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "workloads", Kind: "Workload", Namespaced: true, Watchable: true}
	Claims      = cluster.Kind{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims", Kind: "ResourceClaim", Namespaced: true, Watchable: true}
	Definitions = cluster.Kind{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions", Kind: "CustomResourceDefinition", Watchable: true}

	namespaces = cluster.Kind{Version: "v1", Resource: "namespaces", Kind: "Namespace", Watchable: true}
)

// Roles are the kinds from which RBAC is decided.
var Roles = []cluster.Kind{
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles", Kind: "Role", Namespaced: true, Watchable: true},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles", Kind: "ClusterRole", Watchable: true},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings", Kind: "RoleBinding", Namespaced: true, Watchable: true},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings", Kind: "ClusterRoleBinding", Watchable: true},
}

// Usual are the kinds for tests of whole gateways. One of them cannot be watched.
var Usual = append([]cluster.Kind{
	namespaces, Nodes, Pods, Jobs, Widgets,
	{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true, Watchable: true},
	{Version: "v1", Resource: "bindings", Kind: "Binding", Namespaced: true},
}, Roles...)

// SystemUID is the uid of the namespace kube-system, from which epochs are made. It can be read
// even where namespaces are not served.
const SystemUID = "11111111-2222-3333-4444-555555555555"

// API is the API server. Its methods may be called concurrently. Kinds are named by their resource.
// If there was one of that name already, the group follows: pods, and pods.metrics.k8s.io. A name
// that is not known is a mistake in the test, and panics.
type API struct {
	// Allow answers SubjectAccessReviews; nil allows everything.
	Allow func(authorizationv1.SubjectAccessReviewSpec) bool

	// AllowSelf answers SelfSubjectAccessReviews; nil allows everything.
	AllowSelf func(authorizationv1.ResourceAttributes) bool

	// Logs answers requests for pods' logs; nil: there are none. It must be set before the first request.
	Logs http.HandlerFunc

	// Queues answers requests for Kueue's visibility API; nil: it is not installed. It must be set before the first request.
	Queues http.HandlerFunc

	// Old answers discovery only in the form before the aggregated one, which clients fall back to.
	Old bool

	// Aggregated are API servers behind this one, by group, with objects and versions of their own.
	// It must be set before the first request.
	Aggregated map[string]*API

	closed chan struct{}

	mu        sync.Mutex
	changed   chan struct{} // closed at the next change of anything below
	version   uint64
	floor     uint64 // a watch from an earlier version gets 410
	within    bool   // a revision that comes in parts is under way
	serial    int    // of uids
	kinds     []*kind
	history   []event // in the order of versions
	watches   map[*watch]bool
	bookmarks int             // how often bookmarks were asked for
	mute      bool            // no bookmarks before the end
	paged     bool            // whether limits are heeded
	slow      time.Duration   // between two events of a watch
	held      map[string]bool // kinds of which watches hear nothing
	pages     map[string][]string
	stale     map[string]bool         // groups whose discovery fails
	faults    map[string]Interception // by resource, by name of another endpoint, or Everything
	served    map[string]int          // requests, by resource or endpoint
	warnings  map[string]string       // by name of the kind
	requests  []string                // methods, paths and queries
}

type kind struct {
	cluster.Kind
	name    string
	served  bool
	objects map[string]object // by namespace/name, or name
}

type event struct {
	kind   *kind
	what   string // ADDED, MODIFIED or DELETED
	key    string
	object         // with the event's version
	before *object // nil: there was none
	part   bool    // of a revision that came in parts
}

// New returns an API server at version 1000 that serves some kinds, and has no objects but the namespace kube-system.
func New(kinds ...cluster.Kind) *API {
	a := &API{
		closed:  make(chan struct{}),
		changed: make(chan struct{}),
		version: 999,
		floor:   1000,
		kinds:   []*kind{{Kind: namespaces, name: "namespaces", objects: map[string]object{}}},
		watches: map[*watch]bool{},
		pages:   map[string][]string{},
		stale:   map[string]bool{},
		faults:  map[string]Interception{},
		served:  map[string]int{},

		held:     map[string]bool{},
		warnings: map[string]string{},
	}
	for _, k := range kinds {
		a.Serve(k, true)
	}
	a.Put("namespaces", "kube-system", "metadata.uid="+SystemUID)
	return a
}

// Close ends all watches and all requests that hang.
func (a *API) Close() { close(a.closed) }

// change runs f under the lock, wakes all that wait for a change, and returns the newest version.
func (a *API) change(f func()) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	close(a.changed)
	a.changed = make(chan struct{})
	return a.version
}

// find returns the kind that has a name, or panics.
func (a *API) find(name string) *kind {
	if i := a.index(name); i >= 0 {
		return a.kinds[i]
	}
	panic("apitest: no kind " + name)
}

func (a *API) index(name string) int {
	return slices.IndexFunc(a.kinds, func(k *kind) bool { return k.name == name })
}

// Serve begins or ceases to serve a kind, as when a CRD is installed or removed. Its objects stay.
// If it is removed, its watches break off.
func (a *API) Serve(of cluster.Kind, served bool) {
	a.change(func() {
		i := slices.IndexFunc(a.kinds, func(k *kind) bool { return k.Kind == of })
		if i < 0 {
			made := &kind{Kind: of, name: of.Resource, objects: map[string]object{}}
			if i = len(a.kinds); a.index(of.Resource) >= 0 {
				made.name = of.String()
			}
			a.kinds = append(a.kinds, made)
		}
		if a.kinds[i].served = served; !served {
			a.end(endCut, a.kinds[i])
		}
	})
}

// Put creates or replaces the object of a key (namespace/name, or name), and returns its version.
// JSON says what fields are.
func (a *API) Put(resource, key string, fields ...string) (version uint64) {
	return a.change(func() {
		k := a.find(resource)
		a.next()
		o := object{version: a.version, fields: fields}
		e := event{kind: k, what: "ADDED", key: key, part: a.within}
		if old, exists := k.objects[key]; exists {
			e.what, e.before, o.uid = "MODIFIED", &old, old.uid
		} else {
			a.serial++
			o.uid = "uid-" + strconv.Itoa(a.serial)
		}
		e.object = o.encoded(k.Kind, key)
		k.objects[key] = e.object
		a.history = append(a.history, e)
	})
}

// Amend gives an object other fields at its version, as when its definition has other defaults. No watch hears of it.
func (a *API) Amend(resource, key string, fields ...string) {
	a.change(func() {
		k := a.find(resource)
		old := k.objects[key]
		k.objects[key] = object{version: old.version, uid: old.uid, fields: fields}.encoded(k.Kind, key)
	})
}

// Delete deletes objects, all in one revision, as etcd does when a lease ends. It returns the deletion's version.
func (a *API) Delete(resource string, keys ...string) (version uint64) {
	return a.change(func() {
		k := a.find(resource)
		a.next()
		for _, key := range keys {
			o, exists := k.objects[key]
			if !exists {
				panic("apitest: no object " + key)
			}
			delete(k.objects, key)
			last := o
			last.version = a.version
			a.history = append(a.history, event{k, "DELETED", key, last.encoded(k.Kind, key), &o, a.within})
		}
	})
}

// InParts has some changes be one revision, of which watches hear one change after the other, as of
// a large one, or over a slow network. Between two it calls pause. Requests wait for the end. The
// changes are made with Put and Delete; meanwhile nobody else may make any.
func (a *API) InParts(pause func(), changes ...func()) (version uint64) {
	a.change(func() {
		a.version++
		a.within = true
	})
	for i, change := range changes {
		if i > 0 {
			pause()
		}
		change()
	}
	return a.change(func() { a.within = false })
}

// next goes on to another revision, unless one is under way. The lock is held.
func (a *API) next() {
	if !a.within {
		a.version++
	}
}

// whole waits for the end of a revision that is under way.
func (a *API) whole(ctx context.Context) {
	for {
		a.mu.Lock()
		within, changed := a.within, a.changed
		a.mu.Unlock()
		if !within {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-a.closed:
			return
		}
	}
}

// Skip uses up versions, as changes of other kinds do. No watch hears of it.
func (a *API) Skip(versions uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version += versions
}

// Bookmark sends a bookmark on all watches.
func (a *API) Bookmark() { a.change(func() { a.bookmarks++ }) }

// Warn has each answer about a kind carry a warning, as that of a deprecated one does.
func (a *API) Warn(resource, text string) { a.change(func() { a.warnings[resource] = text }) }

// Mute suppresses bookmarks before the end of a watch's time, as an API server does that does not
// keep the kind in memory.
func (a *API) Mute() { a.change(func() { a.mute = true }) }

// Slowly sets how much time passes between two events of a watch, as over a slow network.
func (a *API) Slowly(each time.Duration) { a.change(func() { a.slow = each }) }

// Hold keeps from the watches of a kind what happens, as over a connection that hangs, or lets them go on.
func (a *API) Hold(resource string, held bool) { a.change(func() { a.held[resource] = held }) }

// Paged sets whether the limits of lists are heeded, as when the API server's own cache is off.
func (a *API) Paged(paged bool) { a.change(func() { a.paged = paged }) }

// Stale makes the discovery of a group fail, or succeed again.
func (a *API) Stale(group string, stale bool) { a.change(func() { a.stale[group] = stale }) }

// Compact forgets the history: new watches from earlier versions get 410. Open watches go on.
func (a *API) Compact() { a.change(func() { a.floor = a.version }) }

// Restore takes everything back to an earlier version, like an etcd that is restored from a backup.
// All watches break off. The version must not be older than the last Renumber.
func (a *API) Restore(version uint64) {
	a.change(func() {
		for len(a.history) > 0 {
			e := a.history[len(a.history)-1]
			if e.version <= version {
				break
			}
			if e.before != nil {
				e.kind.objects[e.key] = *e.before
			} else {
				delete(e.kind.objects, e.key)
			}
			a.history = a.history[:len(a.history)-1]
		}
		a.version, a.floor = version, version
		a.end(endCut)
	})
}

// Renumber is Restore of a backup of an older version, but for the content, which stays as it is.
func (a *API) Renumber(version uint64) {
	a.change(func() {
		for _, k := range a.kinds {
			for key, o := range k.objects {
				o.version = min(o.version, version)
				k.objects[key] = o.encoded(k.Kind, key)
			}
		}
		a.version, a.floor, a.history = version, version, nil
		a.end(endCut)
	})
}

// Version is the newest version.
func (a *API) Version() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.version
}

// Objects are a kind's objects as JSON, by key.
func (a *API) Objects(resource string) map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return contents(a.find(resource).objects)
}

// Keys are the keys of a kind's objects, in the order of Kubernetes' lists.
func (a *API) Keys(resource string) []string { return slices.Sorted(maps.Keys(a.Objects(resource))) }

// UID is that of an object.
func (a *API) UID(resource, key string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.find(resource).objects[key].uid
}

// At is Objects as they were at a version, which must not be older than the last Renumber.
func (a *API) At(resource string, version uint64) map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return contents(a.at(a.find(resource), version))
}

// States are what Objects were at a version: after each part of it, if it came in parts.
func (a *API) States(resource string, version uint64) (states []map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.find(resource)
	for i, e := range a.history {
		if e.kind == k && e.version == version && e.part {
			states = append(states, contents(stateAfter(a.history[:i+1], k, version)))
		}
	}
	if len(states) == 0 {
		states = append(states, contents(a.at(k, version)))
	}
	return states
}

func (a *API) at(k *kind, version uint64) map[string]object { return stateAfter(a.history, k, version) }

func stateAfter(history []event, k *kind, version uint64) map[string]object {
	state := map[string]object{}
	for _, e := range history {
		switch {
		case e.kind != k || e.version > version:
		case e.what == "DELETED":
			delete(state, e.key)
		default:
			state[e.key] = e.object
		}
	}
	return state
}

// Served is the number of requests for a resource, or for another endpoint (discovery, reviews,
// logs, documents), so far.
func (a *API) Served(what string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.served[what]
}

// Requests returns the methods, paths and queries of the requests since the last call.
func (a *API) Requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	requests := a.requests
	a.requests = nil
	return requests
}
