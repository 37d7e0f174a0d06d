// Package clustertest is an API server in memory, for tests. It has lists, watches, pages, bookmarks and discovery of
// any kinds, a history that can be compacted or taken back, and faults on demand.
//
// An API is an http.RoundTripper, so that a test can run the real clients against it within a synctest bubble. It is
// also an http.Handler, for tests that need a socket. It shares no code with what it tests but the type of kinds.
package clustertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Kinds for tests.
var (
	Pods    = cluster.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true, Watchable: true}
	Secrets = cluster.Kind{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true, Watchable: true}
	Nodes   = cluster.Kind{Version: "v1", Resource: "nodes", Kind: "Node", Watchable: true}
	Jobs    = cluster.Kind{Group: "batch", Version: "v1", Resource: "jobs", Kind: "Job", Namespaced: true, Watchable: true}

	Workloads = cluster.Kind{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "workloads", Kind: "Workload", Namespaced: true, Watchable: true}

	Definitions = cluster.Kind{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions", Kind: "CustomResourceDefinition", Watchable: true}
)

// API is the API server. Its methods may be called concurrently.
type API struct {
	mu        sync.Mutex
	kinds     []cluster.Kind
	stale     map[string]bool // groups whose discovery fails
	version   uint64
	objects   map[cluster.Kind]map[string]Object // by namespace/name
	history   []event
	compacted uint64 // watches from earlier versions are answered with 410
	pages     map[string][]string
	serial    int
	bookmarks int                            // how often bookmarks were asked for
	intercept func(*http.Request) *Intercept // nil: none
	mute      bool                           // no bookmarks before the end
	paged     bool                           // whether limits are heeded
	watches   map[*watch]bool
	requests  []string
	changed   chan struct{} // closed at the next change
}

// Object is an object as a test specifies it.
type Object struct {
	Namespace, Name string
	Labels          map[string]string
	Owners          []string       // uids
	Fields          map[string]any // members other than kind, apiVersion and metadata

	uid     string
	version uint64
}

type event struct {
	kind    cluster.Kind
	what    string // ADDED, MODIFIED or DELETED
	object  Object // with its version
	removed *Object
}

// New returns an API server at version 1000 that serves kinds and has no objects.
func New(kinds ...cluster.Kind) *API {
	a := &API{
		kinds:     kinds,
		stale:     map[string]bool{},
		version:   1000,
		compacted: 1000,
		objects:   map[cluster.Kind]map[string]Object{},
		pages:     map[string][]string{},
		watches:   map[*watch]bool{},
		changed:   make(chan struct{}),
	}
	for _, kind := range kinds {
		a.objects[kind] = map[string]Object{}
	}
	return a
}

// Connect returns a connection to the API server that needs no network.
func (a *API) Connect(t testing.TB) *cluster.Cluster { return a.ConnectAs(t, "test") }

// ConnectAs returns a connection with a user agent, by which Intercept may recognise its requests.
func (a *API) ConnectAs(t testing.TB, userAgent string) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Connect(cluster.Options{Name: "test", UserAgent: userAgent, Config: &rest.Config{Host: "http://api.test", Transport: a}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (o Object) key() string { return o.Namespace + "/" + o.Name }

// JSON is the object as the API server sends it.
func (o Object) JSON(kind cluster.Kind) string {
	metadata := map[string]any{"name": o.Name, "uid": o.uid, "resourceVersion": strconv.FormatUint(o.version, 10)}
	if o.Namespace != "" {
		metadata["namespace"] = o.Namespace
	}
	if o.Labels != nil {
		metadata["labels"] = o.Labels
	}
	var owners []map[string]string
	for _, uid := range o.Owners {
		owners = append(owners, map[string]string{"uid": uid})
	}
	if owners != nil {
		metadata["ownerReferences"] = owners
	}
	body := map[string]any{"kind": kind.Kind, "apiVersion": kind.APIVersion(), "metadata": metadata}
	maps.Copy(body, o.Fields)
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// tell wakes all watches.
func (a *API) tell() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// Put creates or replaces an object, and returns its version.
func (a *API) Put(kind cluster.Kind, o Object) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	old, exists := a.objects[kind][o.key()]
	what := "ADDED"
	o.version = a.version
	e := event{kind: kind}
	if exists {
		what, o.uid, e.removed = "MODIFIED", old.uid, &old
	} else {
		a.serial++
		o.uid = fmt.Sprintf("uid-%d", a.serial)
	}
	a.objects[kind][o.key()] = o
	e.what, e.object = what, o
	a.history = append(a.history, e)
	a.tell()
	return a.version
}

// Delete removes objects, all in one revision, as etcd does when a lease ends. Keys are namespace/name.
func (a *API) Delete(kind cluster.Kind, keys ...string) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	for _, key := range keys {
		o, exists := a.objects[kind][key]
		if !exists {
			panic("no object " + key)
		}
		delete(a.objects[kind], key)
		last := o
		o.version = a.version
		a.history = append(a.history, event{kind: kind, what: "DELETED", object: o, removed: &last})
	}
	a.tell()
	return a.version
}

// Objects returns the JSON of all objects of a kind, by namespace/name.
func (a *API) Objects(kind cluster.Kind) map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := map[string]string{}
	for key, o := range a.objects[kind] {
		found[key] = o.JSON(kind)
	}
	return found
}

// UID is that of an object; the key is namespace/name.
func (a *API) UID(kind cluster.Kind, key string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.objects[kind][key].uid
}

// At returns all objects of a kind as they were at a version, which must not be older than the last Rewind.
func (a *API) At(kind cluster.Kind, version uint64) map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at(kind, version)
}

// at is At for who holds the lock.
func (a *API) at(kind cluster.Kind, version uint64) map[string]string {
	state := map[string]Object{}
	for _, e := range a.history {
		switch {
		case e.kind != kind || e.object.version > version:
		case e.what == "DELETED":
			delete(state, e.object.key())
		default:
			state[e.object.key()] = e.object
		}
	}
	found := map[string]string{}
	for key, o := range state {
		found[key] = o.JSON(kind)
	}
	return found
}

// Version is the newest version.
func (a *API) Version() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.version
}

// Skip uses up versions, as changes of other kinds do.
func (a *API) Skip(versions uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version += versions
}

// Bookmark sends a bookmark on all watches.
func (a *API) Bookmark() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bookmarks++
	a.tell()
}

// Mute suppresses bookmarks before the end of a watch's time, as an API server does that does not keep the kind in
// memory.
func (a *API) Mute() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mute = true
}

// Compact forgets the history.
func (a *API) Compact() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.compacted = a.version
}

// Rewind takes everything back to an earlier version, like an etcd that is restored from a backup.
func (a *API) Rewind(version uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, e := range slices.Backward(a.history) {
		if e.object.version <= version {
			break
		}
		if e.removed != nil {
			a.objects[e.kind][e.object.key()] = *e.removed
		} else {
			delete(a.objects[e.kind], e.object.key())
		}
		a.history = a.history[:i]
	}
	a.version, a.compacted = version, version
}

// Serve makes the API server begin or cease to serve a kind, as when a CRD is installed or removed.
func (a *API) Serve(kind cluster.Kind, served bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kinds = slices.DeleteFunc(slices.Clone(a.kinds), func(k cluster.Kind) bool { return k == kind })
	if served {
		a.kinds = append(a.kinds, kind)
		if a.objects[kind] == nil {
			a.objects[kind] = map[string]Object{}
		}
	}
}

// Requests returns the methods, paths and queries of the requests since the last call.
func (a *API) Requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	requests := a.requests
	a.requests = nil
	return requests
}
