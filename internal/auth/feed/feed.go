// Package feed mirrors one kind of a cluster for the packages that decide permissions by it: roles, bindings,
// namespaces.
//
// A feed is an informer on the same ListWatch that the cache uses, so it notices when versions went back, and lists
// everything anew. It keeps no more of an object than it is asked to. Objects are told in the order of their
// versions. After a list, the objects that it lacks are removed first, before those that it has are put.
package feed

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Options say what is mirrored, and which functions are told. All fields are required but Keep, Synced and Lost.
type Options struct {
	Kind cluster.Kind
	Keep []string // top-level fields to keep, besides the object's name, namespace, uid and version
	// Put is called for an object that is new or has changed, Remove for one that is gone. One goroutine calls both.
	// Put may be called again with a version that it was told before.
	Put    func(*cluster.Object)
	Remove func(namespace, name string)
	Synced func() // called once all of the first list has been told; may be nil
	Lost   func() // called whenever the watch is lost or back; must return at once; may be nil
	Log    *slog.Logger
}

// State is the state of a feed.
type State struct {
	Synced bool      // the first list is complete, and all of it has been told
	Err    error     // why there is no watch; nil while there is one, and before the first attempt has ended
	Since  time.Time // when the watch was lost, or came back
	Listed time.Time // when the whole kind was last listed, which may succeed also while there is no watch
}

// Refused reports whether the API server answered that the gateway may not watch the kind, or that there is no such
// kind.
func (s State) Refused() bool {
	return apierrors.IsForbidden(s.Err) || apierrors.IsUnauthorized(s.Err) || apierrors.IsNotFound(s.Err) ||
		apierrors.IsMethodNotSupported(s.Err)
}

// Feed is a mirror of one kind.
type Feed struct {
	cluster *cluster.Cluster
	opts    Options

	settled chan struct{} // closed when the first attempt has succeeded or failed
	settle  func()

	mu    sync.Mutex // held to change the state
	state atomic.Pointer[State]
}

// New returns a feed that does nothing before Run.
func New(c *cluster.Cluster, opts Options) *Feed {
	f := &Feed{cluster: c, opts: opts, settled: make(chan struct{})}
	f.settle = sync.OnceFunc(func() { close(f.settled) })
	f.state.Store(&State{Since: time.Now()})
	return f
}

// Kind is the kind that is mirrored.
func (f *Feed) Kind() cluster.Kind { return f.opts.Kind }

// Settled is closed once the feed is synced, or the first attempt has failed.
func (f *Feed) Settled() <-chan struct{} { return f.settled }

// State is the feed's state at this moment.
func (f *Feed) State() State { return *f.state.Load() }

// Run mirrors until the context ends.
func (f *Feed) Run(ctx context.Context) error {
	source := &patient{f.cluster.ListWatch(f.opts.Kind, (*health)(f)), func() { f.change(func(s *State) { s.Listed = time.Now() }) }}
	informer := toolscache.NewSharedIndexInformerWithOptions(source, &cluster.Object{},
		toolscache.SharedIndexInformerOptions{ObjectDescription: f.opts.Kind.String()})
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *toolscache.Reflector, error) {
		// Nothing: the ListWatch reports failures, and it also sees those after which the reflector tries again by
		// itself.
	}); err != nil {
		return err
	}
	if err := informer.SetTransform(f.transform); err != nil {
		return err
	}
	if _, err := informer.AddEventHandler((*handler)(f)); err != nil {
		return err
	}
	informer.RunWithContext(ctx)
	return nil
}

// transform trims an object to what is kept. It may be called twice for one object.
func (f *Feed) transform(object any) (any, error) {
	o, ok := object.(*cluster.Object)
	if !ok || o.IsMarker() {
		return object, nil
	}
	return trim(o, f.opts.Keep)
}

// trim copies the JSON of what it keeps unchanged, since names of roles may have almost any character.
func trim(o *cluster.Object, keep []string) (*cluster.Object, error) {
	var b strings.Builder
	member := func(open, key, raw string) {
		if raw != "" {
			b.WriteString(open + `"` + key + `":` + raw)
		}
	}
	member(`{"metadata":{`, "name", o.Path("metadata.name").Raw)
	for _, field := range []string{"namespace", "uid", "resourceVersion"} {
		member(",", field, o.Path("metadata."+field).Raw)
	}
	b.WriteByte('}')
	for _, field := range keep {
		member(",", field, o.Path(field).Raw)
	}
	b.WriteByte('}')
	return cluster.NewObject(b.String())
}

// change replaces the state.
func (f *Feed) change(change func(*State)) (before, after State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before = *f.state.Load()
	after = before
	change(&after)
	if (before.Err == nil) != (after.Err == nil) {
		after.Since = time.Now()
	}
	f.state.Store(&after)
	if f.opts.Lost != nil && (before.Err == nil) != (after.Err == nil) {
		f.opts.Lost()
	}
	if after.Synced || after.Err != nil {
		f.settle()
	}
	return before, after
}

// health is the feed as its ListWatch's cluster.Health.
type health Feed

// Up implements cluster.Health.
func (h *health) Up() {
	f := (*Feed)(h)
	if before, _ := f.change(func(s *State) { s.Err = nil }); before.Err != nil {
		f.opts.Log.Info("watch stands", "cluster", f.cluster.Name(), "kind", f.opts.Kind.String())
	}
}

// Down implements cluster.Health.
func (h *health) Down(err error) {
	f := (*Feed)(h)
	before, after := f.change(func(s *State) { s.Err = err })
	if before.Err == nil || before.Refused() != after.Refused() {
		f.opts.Log.Warn("watch is lost", "cluster", f.cluster.Name(), "kind", f.opts.Kind.String(), "error", err)
	}
}

// handler is the feed as its informer's event handler.
type handler Feed

// OnAdd implements toolscache.ResourceEventHandler.
func (h *handler) OnAdd(object any, _ bool) { h.told(object.(*cluster.Object)) }

// OnUpdate implements toolscache.ResourceEventHandler.
func (h *handler) OnUpdate(_, object any) { h.told(object.(*cluster.Object)) }

// OnDelete implements toolscache.ResourceEventHandler.
func (h *handler) OnDelete(object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	o, ok := object.(*cluster.Object)
	if !ok {
		panic(fmt.Sprintf("feed: a tombstone of a %T", object)) // this informer holds nothing else
	}
	if !o.IsMarker() {
		h.opts.Remove(o.GetNamespace(), o.GetName())
	}
}

func (h *handler) told(o *cluster.Object) {
	switch {
	case !o.IsMarker():
		h.opts.Put(o)
	case !h.state.Load().Synced: // the first marker follows the first list
		(*Feed)(h).change(func(s *State) { s.Synced = true })
		if h.opts.Synced != nil {
			h.opts.Synced()
		}
	}
}
