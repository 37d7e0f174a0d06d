// Package mirror copies one kind of a cluster for the packages that decide permissions by it: roles, bindings,
// namespaces.
//
// A mirror is an informer on the same ListWatch that the cache uses, so it notices when versions went back, and lists
// everything anew. It keeps no more of an object than it is asked to. Objects are told in the order of their
// versions. After a list, the objects that it lacks are removed first, before those that it has are put.
package mirror

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

// State is the state of a mirror.
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

// Mirror is a mirror of one kind.
type Mirror struct {
	cluster *cluster.Cluster
	opts    Options

	attempted chan struct{} // closed when the first attempt has succeeded or failed
	attempt   func()

	mu    sync.Mutex // held to change the state
	state atomic.Pointer[State]
}

// New returns a mirror that does nothing before Run.
func New(c *cluster.Cluster, opts Options) *Mirror {
	m := &Mirror{cluster: c, opts: opts, attempted: make(chan struct{})}
	m.attempt = sync.OnceFunc(func() { close(m.attempted) })
	m.state.Store(&State{Since: time.Now()})
	return m
}

// Kind is the kind that is mirrored.
func (m *Mirror) Kind() cluster.Kind { return m.opts.Kind }

// Attempted is closed once the mirror is synced, or the first attempt has failed.
func (m *Mirror) Attempted() <-chan struct{} { return m.attempted }

// State is the mirror's state at this moment.
func (m *Mirror) State() State { return *m.state.Load() }

// Run mirrors until the context ends.
func (m *Mirror) Run(ctx context.Context) error {
	source := &listWatch{m.cluster.ListWatch(m.opts.Kind, (*health)(m)), func() { m.change(func(s *State) { s.Listed = time.Now() }) }}
	informer := toolscache.NewSharedIndexInformerWithOptions(source, &cluster.Object{},
		toolscache.SharedIndexInformerOptions{ObjectDescription: m.opts.Kind.String()})
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *toolscache.Reflector, error) {
		// Nothing: the ListWatch reports failures, and it also sees those after which the reflector tries again by
		// itself.
	}); err != nil {
		return err
	}
	if err := informer.SetTransform(m.transform); err != nil {
		return err
	}
	if _, err := informer.AddEventHandler((*handler)(m)); err != nil {
		return err
	}
	informer.RunWithContext(ctx)
	return nil
}

// transform trims an object to what is kept. It may be called twice for one object.
func (m *Mirror) transform(object any) (any, error) {
	o, ok := object.(*cluster.Object)
	if !ok || o.IsMarker() {
		return object, nil
	}
	return trim(o, m.opts.Keep)
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
func (m *Mirror) change(change func(*State)) (before, after State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before = *m.state.Load()
	after = before
	change(&after)
	if (before.Err == nil) != (after.Err == nil) {
		after.Since = time.Now()
	}
	m.state.Store(&after)
	if m.opts.Lost != nil && (before.Err == nil) != (after.Err == nil) {
		m.opts.Lost()
	}
	if after.Synced || after.Err != nil {
		m.attempt()
	}
	return before, after
}

// health is the mirror as its ListWatch's cluster.Health.
type health Mirror

func (h *health) Up(int64) {
	m := (*Mirror)(h)
	if before, _ := m.change(func(s *State) { s.Err = nil }); before.Err != nil {
		m.opts.Log.Info("watch stands", "cluster", m.cluster.Name(), "kind", m.opts.Kind.String())
	}
}

func (h *health) Down(err error) {
	m := (*Mirror)(h)
	before, after := m.change(func(s *State) { s.Err = err })
	if before.Err == nil || before.Refused() != after.Refused() {
		m.opts.Log.Warn("watch is lost", "cluster", m.cluster.Name(), "kind", m.opts.Kind.String(), "error", err)
	}
}

// handler is the mirror as its informer's event handler.
type handler Mirror

func (h *handler) OnAdd(object any, _ bool) { h.told(object.(*cluster.Object)) }

func (h *handler) OnUpdate(_, object any) { h.told(object.(*cluster.Object)) }

func (h *handler) OnDelete(object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	o, ok := object.(*cluster.Object)
	if !ok {
		panic(fmt.Sprintf("mirror: a tombstone of a %T", object)) // this informer holds nothing else
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
		(*Mirror)(h).change(func(s *State) { s.Synced = true })
		if h.opts.Synced != nil {
			h.opts.Synced()
		}
	}
}
