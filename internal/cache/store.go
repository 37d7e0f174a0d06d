package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// The types of package stream for the only type of object that there is.
type (
	Topic  = stream.Topic[*cluster.Object]
	Cursor = stream.Cursor[*cluster.Object]
	Event  = stream.Event[*cluster.Object]
	change = stream.Change[*cluster.Object]
)

// ErrNotSynced means that a store has no complete list yet.
var ErrNotSynced = errors.New("not synced")

// ErrRefused means that the API server does not let the gateway list or watch a kind; waiting does not help.
var ErrRefused = errors.New("refused by the API server")

// ErrVersions means that the versions of a kind are no numbers, so that it cannot be served; waiting does not help.
var ErrVersions = errors.New("its resourceVersions are no numbers")

// ErrNotServed means that a kind is no longer served: its definition is gone, or its cluster.
var ErrNotServed = errors.New("no longer served")

// Store is the state of one kind in one cluster, and its topic. Its methods may be called concurrently.
type Store struct {
	kind    cluster.Kind
	topic   *Topic
	restart func()       // begins another epoch when versions went back; called under the store's lock
	away    func() error // says why the cluster cannot be reached; a nil func: not known
	log     *slog.Logger
	lists   *cluster.ListWatch // from which the store is filled; nil before it runs
	listing func() []any       // what client-go holds: at least what the newest list brought; nil: not known

	// pending is what a list has brought so far; nil while no list is under way. Like arrived, it is used only by the
	// handler, which is one goroutine.
	pending map[string]*cluster.Object // by key; a nil object is one that the list lacks
	arrived []*cluster.Object          // the first list's objects in its order; one that came again is there twice

	mu       sync.Mutex
	state    state
	snapshot *Snapshot // of the present state; nil if none was taken since the last change
	revision *revision // of the snapshots that were taken at the present version; nil: none was
	began    uint64    // version of the first list; 0 before it
	open     bool      // more events of the head's revision may be to come; see listed
	changes  lastChanges
	advance  chan struct{} // closed when the version moves on; nil if nobody waits for that

	replacedBytes replacedBytes
	ringBytes     int64 // how many the ring may hold
	relists       atomic.Int64

	upstream *upstream
	catchUps *catchUps
	reaching *reaching
	gone     gone
}

func newStore(kind cluster.Kind, topic stream.Options, indexes []string, restart func(), log *slog.Logger) (*Store, error) {
	s := &Store{
		kind:      kind,
		topic:     stream.NewTopic[*cluster.Object](topic),
		ringBytes: topic.Bytes,
		restart:   restart,
		log:       log,
		pending:   map[string]*cluster.Object{},
		upstream:  newUpstream(),
		reaching:  newReaching(),
		gone:      gone{done: make(chan struct{})},
	}
	var err error
	if s.state, err = newState(indexes); err != nil {
		return nil, fmt.Errorf("index of %s: %w", kind, err)
	}
	return s, nil
}

// Kind is what the store holds.
func (s *Store) Kind() cluster.Kind { return s.kind }

// Warnings are what the API server says to each request for the kind, such as that it is deprecated.
func (s *Store) Warnings() []string {
	if s.lists == nil {
		return nil
	}
	return s.lists.Warnings()
}

// Form is how the API server lists the kind.
func (s *Store) Form() cluster.ListForm {
	if s.lists == nil {
		return cluster.ListForm{}
	}
	return s.lists.Form()
}

// Topic is the topic into which the store's changes go.
func (s *Store) Topic() *Topic { return s.topic }

// Snapshot is the content at this moment. It is shared by all callers between two changes. It is empty before the
// store is synced.
func (s *Store) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshotLocked()
}

func (s *Store) snapshotLocked() *Snapshot {
	head := s.topic.Head()
	switch {
	case s.snapshot == nil:
		s.snapshot = &Snapshot{Head: head, state: s.state.clone(), holds: s.replacedBytes.holds.Load(), replaced: s.replacedBytes.replaced.Load()}
	case s.snapshot.Head != head:
		// No object has changed, only the version up to which that is known.
		s.snapshot = &Snapshot{Head: head, state: s.snapshot.state, holds: s.snapshot.holds, replaced: s.snapshot.replaced}
	default:
		return s.snapshot
	}
	if s.revision == nil {
		s.revision = &revision{version: head.Version}
		s.revision.reaches(head.Revision())
	}
	s.snapshot.revision = s.revision
	return s.snapshot
}

// run fills the store from the API server until the context ends.
func (s *Store) run(ctx context.Context, lw *cluster.ListWatch) error {
	lw.Held = s.held
	informer := toolscache.NewSharedIndexInformerWithOptions(lw, &cluster.Object{}, toolscache.SharedIndexInformerOptions{
		ObjectDescription: s.kind.String(),
	})
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *toolscache.Reflector, error) {
		// Nothing: the ListWatch reports failures, and it also sees those after which the reflector tries again by
		// itself.
	}); err != nil {
		return err
	}
	if _, err := informer.AddEventHandler((*handler)(s)); err != nil {
		return err
	}
	s.listing = informer.GetStore().List
	var running sync.WaitGroup
	running.Go(func() { _ = s.topic.Run(ctx) })
	running.Go(func() { informer.RunWithContext(ctx) })
	running.Go(func() { s.catchUps.run(ctx, s) })
	running.Go(func() { s.reaching.run(ctx) })
	running.Wait()
	return nil
}

// held is the object of a name, or nil.
func (s *Store) held(namespace, name string) *cluster.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.get(namespace, name)
}

// handler is the store as the informer sees it. Its methods are called by one goroutine, in order. None of them waits
// for a reader.
type handler Store

func (h *handler) OnAdd(object any, _ bool) { (*Store)(h).told(object.(*cluster.Object)) }

func (h *handler) OnUpdate(_, object any) { (*Store)(h).told(object.(*cluster.Object)) }

// OnDelete implements toolscache.ResourceEventHandler. A tombstone means that a list lacks the object, and so that a
// list has replaced client-go's content. Each list causes at least one, since each lacks the progress marker.
func (h *handler) OnDelete(object any) {
	s := (*Store)(h)
	tombstone, relist := object.(toolscache.DeletedFinalStateUnknown)
	if relist {
		if s.pending == nil {
			s.pending = map[string]*cluster.Object{}
		}
		if gone, ok := tombstone.Obj.(*cluster.Object); !ok || !gone.IsMarker() {
			s.pending[tombstone.Key] = nil
		}
		return
	}
	gone := object.(*cluster.Object)
	if s.pending != nil {
		s.pending[gone.Key()] = nil
		return
	}
	s.change(gone.Version(), func() []change {
		old := s.state.get(gone.GetNamespace(), gone.GetName())
		if old == nil {
			return nil
		}
		s.state.remove(old)
		return []change{{Type: stream.Deleted, Object: gone, Old: old}}
	})
}

// told takes an object that exists, or a progress marker. What a marker proves counts once all that
// came before it is in the topic. So a reader that is told that the store is live finds in the
// topic what was missed.
func (s *Store) told(o *cluster.Object) {
	if o.IsMarker() {
		defer s.stands(o.Proves())
	}
	switch {
	case o.IsMarker() && s.pending != nil:
		s.listed(o.Version(), o.Proves())
	case o.IsMarker():
		s.mu.Lock()
		s.open = s.open && o.Version() <= s.topic.Head().Version
		s.topic.Progress(o.Version())
		s.advanced()
		s.mu.Unlock()
	case s.pending != nil:
		s.pending[o.Key()] = o
		if !s.upstream.isSynced() {
			s.arrived = append(s.arrived, o)
		}
	default:
		s.change(o.Version(), func() []change { return s.state.apply(o, nil) })
	}
}

// change applies what came live. A version lower than one seen before means that the cluster was restored, and begins
// a new history.
func (s *Store) change(version uint64, apply func() []change) {
	s.mu.Lock()
	changes := apply()
	if len(changes) == 0 {
		s.mu.Unlock()
		return
	}
	s.snapshot = nil
	s.replacedBytes.note(changes)
	wentBack := version < s.topic.Head().Version
	if wentBack {
		s.beginAnew(version)
		s.changes.begin(s.topic.Head().Revision())
	} else {
		for _, c := range changes {
			s.topic.Append(version, c)
		}
		s.changes.note(s.topic.Head().Revision(), changes)
	}
	s.open = changes[len(changes)-1].Type == stream.Deleted
	s.advanced()
	s.mu.Unlock()
	if wentBack {
		s.logBeginAnew(version)
	}
}

// listed ends a list: it appends the difference between the list and the state in one piece, at the list's version.
//
// The list is merged into a clone, which takes the state's place when it is complete. With many objects that takes
// long, and no reader is to wait for it. Only the handler changes the state, so nothing happens to the original in
// the meantime.
//
// A list at the very version up to which everything was seen must hold what was seen; if it differs, it is of another
// history. There is one exception: etcd deletes all that was bound to a lease in one revision, and a watch may break
// off in the midst of that (open).
func (s *Store) listed(version uint64, proves int64) {
	pending, arrived := s.pending, s.arrived
	s.pending, s.arrived = nil, nil

	s.mu.Lock()
	first, head, open := !s.upstream.isSynced(), s.topic.Head().Version, s.open
	next := s.state.clone()
	s.mu.Unlock()
	if !first {
		s.relists.Add(1)
	}

	var changes []change
	wentBack := false
	if first {
		arrived = slices.DeleteFunc(arrived, func(o *cluster.Object) bool { return pending[o.Key()] != o })
		next.load(arrived)
	} else {
		changes = next.differ(pending, version)
		wentBack = version < head || version == head && len(changes) > 0 && !open ||
			slices.ContainsFunc(changes, func(c change) bool { return rewritten(c, head) })
		if s.listing != nil {
			changes = next.amend(s.listing(), changes)
		}
		slices.SortStableFunc(changes, inHistory)
	}

	s.mu.Lock()
	s.state, s.snapshot = next, nil
	s.replacedBytes.note(changes)
	if first {
		for _, o := range pending {
			if o != nil {
				s.replacedBytes.holds.Add(int64(len(o.JSON())))
			}
		}
	}
	switch {
	case first:
		s.began = version
		s.topic.Begin(version)
	case wentBack:
		s.beginAnew(version)
	default:
		s.topic.AppendBurst(version, changes)
	}
	s.open = false
	s.changes.begin(s.topic.Head().Revision()) // what came and went since the last watch is not known
	s.advanced()
	s.mu.Unlock()

	switch {
	case first:
		s.stands(proves) // before, or whoever waits for the list would be told that it is stale
		s.upstream.setSynced()
		s.log.Info("kind is synced", "kind", s.kind.String(), "objects", len(pending), "version", version)
	case wentBack:
		s.logBeginAnew(version)
	default:
		s.log.Info("kind was listed again", "kind", s.kind.String(), "after", head, "version", version, "changes", len(changes))
	}
}

// beginAnew begins another history. The epoch changes first, since a reader that the topic wakes tells its client the
// epoch. The caller holds the lock until both are done, so that no snapshot of the old history is taken for one of
// the new epoch.
func (s *Store) beginAnew(version uint64) {
	s.restart()
	s.topic.Restart(version)
}

func (s *Store) logBeginAnew(version uint64) {
	s.log.Warn("versions went back: the cluster was restored; all clients begin anew", "kind", s.kind.String(), "version", version)
}

// Unservable is an ErrVersions if waiting for the first list does not help; nil if that is not known.
func (s *Store) Unservable() error { return s.upstream.get().unservable(s.kind) }

// WaitSynced waits for the first complete list, until the context ends. An error wraps ErrNotServed, ErrNotSynced,
// ErrVersions or ErrRefused, and the API server's reason if there was one.
func (s *Store) WaitSynced(ctx context.Context) error {
	return s.upstream.wait(ctx, s.kind, &s.gone, nil)
}

// WaitReachable is WaitSynced, but does not wait for a cluster that is away: the error then wraps
// cluster.ErrUnavailable.
func (s *Store) WaitReachable(ctx context.Context) error {
	return s.upstream.wait(ctx, s.kind, &s.gone, s.away)
}

// Upstream is the state of the store's own watch on the API server.
func (s *Store) Upstream() Upstream { return s.upstream.get() }

// Followed is up to when the kind was followed: now, or when its watch was lost.
func (s *Store) Followed() time.Time {
	if up := s.Upstream(); !up.Live {
		return up.Since
	}
	return time.Now()
}

// Up implements cluster.Health. That the watch stands is told when the marker comes that follows; see stands.
func (s *Store) Up(watch int64) {
	s.missing(nil)
	s.upstream.proved(watch)
}

// stands takes that a watch stands, and all that was missed is in the topic; 0 is no watch.
func (s *Store) stands(watch int64) {
	if s.upstream.stands(watch) {
		s.log.Info("watch is live", "kind", s.kind.String())
		s.topic.Notify()
	}
}

func (s *Store) Down(err error) {
	s.missing(err)
	if s.upstream.fails(err) {
		s.log.Warn("watch is lost", "kind", s.kind.String(), "error", err)
		s.topic.Notify()
	}
}
