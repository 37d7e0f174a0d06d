// Package apitest is an API server for tests: discovery, LIST and WATCH with bookmarks, SubjectAccessReviews, and on
// demand the faults of a real one. It does not validate requests; tests that need that use a real API server.
package apitest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// Kind is a resource that the API server serves.
type Kind struct {
	Group, Version, Resource, Kind string
	Namespaced                     bool
	Verbs                          []string // nil: get, list and watch
	Name                           string   // by which tests call it; "": the resource
	Measured                       bool     // its objects have neither uid nor version, and its lists have no version
}

// Kinds are the kinds that a new API serves.
var Kinds = []Kind{
	{Version: "v1", Resource: "namespaces", Kind: "Namespace"},
	{Version: "v1", Resource: "nodes", Kind: "Node"},
	{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true},
	{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true},
	{Version: "v1", Resource: "bindings", Kind: "Binding", Namespaced: true, Verbs: []string{"create"}},
	{Group: "batch", Version: "v1", Resource: "jobs", Kind: "Job", Namespaced: true},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles", Kind: "Role", Namespaced: true},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings", Kind: "RoleBinding", Namespaced: true},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings", Kind: "ClusterRoleBinding"},
	{Group: "example.org", Version: "v1", Resource: "widgets", Kind: "Widget", Namespaced: true},
}

// SystemUID is the uid of the namespace kube-system, from which epochs are made.
const SystemUID = "11111111-2222-3333-4444-555555555555"

// Everything names a fault of all requests.
const Everything = ""

// API is the API server: an http.Handler, and methods that change what it serves. All may be called concurrently.
type API struct {
	// Allow answers SubjectAccessReviews; nil allows everything.
	Allow func(authorizationv1.SubjectAccessReviewSpec) bool

	// Logs answers requests for pods' logs; nil: there are none. It must be set before the first request.
	Logs http.HandlerFunc

	closed chan struct{}

	mu      sync.Mutex
	changed chan struct{} // closed at the next change of anything below
	version uint64
	uids    int
	kinds   []*kind
	faults  map[string]fault // by resource, by name of another endpoint, or Everything
	served  map[string]int   // requests, by resource or endpoint
}

type kind struct {
	Kind
	objects map[string]object // by namespace/name, or name
	history []event
	floor   uint64 // a watch from an earlier version gets 410
	watches int
	epoch   int // watches of earlier epochs are broken off
}

type object struct {
	uid     string
	version uint64
	json    []byte
}

type event struct {
	version uint64
	kind    string
	json    []byte
}

type fault struct {
	code int
	hang bool
}

// New returns an API server with Kinds and the namespace kube-system, at version 1000.
func New() *API {
	a := &API{
		closed:  make(chan struct{}),
		changed: make(chan struct{}),
		version: 1000,
		faults:  map[string]fault{},
		served:  map[string]int{},
	}
	for _, k := range Kinds {
		a.AddKind(k)
	}
	a.Put("namespaces", "kube-system", "metadata.uid="+SystemUID)
	return a
}

// Close ends all watches and all requests that hang.
func (a *API) Close() { close(a.closed) }

// change runs f under the lock, and wakes all that wait for a change.
func (a *API) change(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	close(a.changed)
	a.changed = make(chan struct{})
}

// AddKind serves one more kind, as after a CRD was installed.
func (a *API) AddKind(k Kind) {
	if k.Verbs == nil {
		k.Verbs = []string{"get", "list", "watch"}
	}
	if k.Name == "" {
		k.Name = k.Resource
	}
	a.change(func() { a.kinds = append(a.kinds, &kind{Kind: k, objects: map[string]object{}, floor: a.version}) })
}

// RemoveKind ceases to serve a kind: its watches end, and requests are answered with 404.
func (a *API) RemoveKind(resource string) {
	a.change(func() {
		a.find(resource).epoch++
		a.kinds = slices.DeleteFunc(a.kinds, func(k *kind) bool { return k.Name == resource })
	})
}

// find returns a kind by its name. It panics for an unknown one, since that is a mistake in the test.
func (a *API) find(resource string) *kind {
	for _, k := range a.kinds {
		if k.Name == resource {
			return k
		}
	}
	panic("apitest: no kind " + resource)
}

// Put creates or replaces the object of a key (namespace/name, or name), and returns its version. The fields are
// assignments: metadata.labels.app=web assigns a string, and spec.replicas:=3 assigns JSON.
func (a *API) Put(resource, key string, fields ...string) (version uint64) {
	a.change(func() {
		k := a.find(resource)
		old, exists := k.objects[key]
		o := object{uid: old.uid, version: a.next()}
		if !exists {
			a.uids++
			o.uid = fmt.Sprintf("uid-%d", a.uids)
		}
		o.json = k.encode(key, o, fields)
		k.objects[key] = o
		name := "MODIFIED"
		if !exists {
			name = "ADDED"
		}
		k.history = append(k.history, event{o.version, name, o.json})
		version = o.version
	})
	return version
}

// Delete deletes an object, and returns the deletion's version.
func (a *API) Delete(resource, key string) (version uint64) {
	a.change(func() {
		k := a.find(resource)
		o, exists := k.objects[key]
		if !exists {
			panic("apitest: no object " + key)
		}
		delete(k.objects, key)
		version = a.next()
		k.history = append(k.history, event{version, "DELETED", setVersion(o.json, version)})
	})
	return version
}

// DeleteTogether deletes objects in one revision, as etcd does when a lease ends, and returns its version.
// Kubernetes' Events end that way.
func (a *API) DeleteTogether(resource string, keys ...string) (version uint64) {
	a.change(func() {
		k := a.find(resource)
		version = a.next()
		for _, key := range keys {
			o, exists := k.objects[key]
			if !exists {
				panic("apitest: no object " + key)
			}
			delete(k.objects, key)
			k.history = append(k.history, event{version, "DELETED", setVersion(o.json, version)})
		}
	})
	return version
}

// Bookmark tells a kind's watches that nothing happened up to a new version, and returns that version.
func (a *API) Bookmark(resource string) (version uint64) {
	a.change(func() {
		k := a.find(resource)
		version = a.next()
		k.history = append(k.history, event{version, "BOOKMARK", k.bookmark(version)})
	})
	return version
}

// Compact forgets a kind's history: new watches from earlier versions get 410. Open watches go on.
func (a *API) Compact(resource string) {
	a.change(func() { a.find(resource).floor = a.version })
}

// DropWatches breaks off the open watches of a kind.
func (a *API) DropWatches(resource string) {
	a.change(func() { a.find(resource).epoch++ })
}

// Backup is what an API server has stored at some moment.
type Backup struct {
	version uint64
	objects map[string]map[string]object // by resource
}

// Backup returns what is stored now.
func (a *API) Backup() Backup {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.backup()
}

func (a *API) backup() Backup {
	b := Backup{version: a.version, objects: map[string]map[string]object{}}
	for _, k := range a.kinds {
		b.objects[k.Name] = maps.Clone(k.objects)
	}
	return b
}

// Restore takes the API server back to a backup, like a restored etcd: the version and the content. The history is gone, and
// all watches are broken off.
func (a *API) Restore(b Backup) { a.change(func() { a.restore(b) }) }

func (a *API) restore(b Backup) {
	a.version = b.version
	for _, k := range a.kinds {
		k.objects = map[string]object{}
		maps.Copy(k.objects, b.objects[k.Name])
		k.history, k.floor = nil, b.version
		k.epoch++
	}
}

// Rewind is Restore of a backup of an older version, but for the content, which stays as it is.
func (a *API) Rewind(version uint64) {
	a.change(func() {
		b := a.backup()
		b.version = version
		for _, objects := range b.objects {
			for key, o := range objects {
				o.version = min(o.version, version)
				o.json = setVersion(o.json, o.version)
				objects[key] = o
			}
		}
		a.restore(b)
	})
}

// Fail answers the requests for a resource, for an endpoint (discovery, reviews), or for Everything with a status; 0
// ends that. Open watches go on; see DropWatches.
func (a *API) Fail(what string, code int) { a.fault(what, fault{code: code}) }

// Hang leaves requests without an answer until Fail is called with 0, or the client has gone.
func (a *API) Hang(what string) { a.fault(what, fault{hang: true}) }

func (a *API) fault(what string, f fault) {
	a.change(func() {
		a.faults[what] = f
		if f == (fault{}) {
			delete(a.faults, what)
		}
	})
}

// Version is the newest version.
func (a *API) Version() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.version
}

// Served is the number of requests for a resource or an endpoint so far.
func (a *API) Served(what string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.served[what]
}

// AwaitWatches waits until a kind has exactly so many watches, or done is closed. It reports whether it has them.
func (a *API) AwaitWatches(resource string, n int, done <-chan struct{}) bool {
	for {
		a.mu.Lock()
		watches, changed := a.find(resource).watches, a.changed
		a.mu.Unlock()
		if watches == n {
			return true
		}
		select {
		case <-changed:
		case <-done:
			return false
		}
	}
}

func (a *API) next() uint64 {
	a.version++
	return a.version
}

// Keys are the keys of a kind's objects, in the order of Kubernetes' lists.
func (a *API) Keys(resource string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.find(resource).objects))
}

// Contents are a kind's objects as JSON, by key.
func (a *API) Contents(resource string) map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	contents := map[string]string{}
	for key, o := range a.find(resource).objects {
		contents[key] = string(o.json)
	}
	return contents
}
