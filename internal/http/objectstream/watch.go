package objectstream

import (
	"context"
	"fmt"
	"iter"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

type conflator = stream.Conflator[*cluster.Object]

// watch is the eventstream.Source of the objects that a path names: those that are there, and what becomes of
// them. This file has its cursor and what it shows; resume.go finds the resume point, read.go
// reads on from it, and visibility_change.go goes over to other permissions.
type watch struct {
	watchRequest
	access.Grant
	access *access.Access
	prefix string                     // of its events' names: "pods.", or "" on a stream of a single one
	match  func(*cluster.Object) bool // nil: everything that the caller may see

	caller *auth.Identity  // until it has begun
	pinned *cache.Snapshot // with which it begins; nil: with the newest, once it is read

	from  eventstream.From // where the client comes from
	found *resumePoint     // what Find has found; nil once Begin took it
	begun bool             // something was read

	cursor *cache.Cursor // nil before the watch has begun
	known  stream.Known  // up to which everything was told or is held, and up to which something was told
	open   bool          // All and Some differ only because a deletion's revision may have more events
	before uint64        // another stream, or a snapshot, may have told the client events up to this version
	retold bool          // it was told something from before Some last, which takes back what it was told of Some
	held   *conflator    // nil if modifications are not conflated

	freshness eventstream.Freshness

	announced *visibility.Visibility // what the client was last told that its caller may see
	permitted *visibility.Visibility // what its caller may see now; it counts only if outdated is set
	outdated  bool                   // announced is not what the caller may see now
	changing  bool                   // the client is just being told of that, so its position is of neither visibility
}

func newWatch(a *access.Access, id *auth.Identity, req watchRequest, granted access.Grant) *watch {
	w := &watch{watchRequest: req, Grant: granted, access: a, caller: id, match: req.selector.Match()}
	if req.name != "" {
		w.prefix = req.name + "."
	}
	if name := req.target.Name; name != "" {
		selected := w.match
		w.match = func(o *cluster.Object) bool {
			return o.GetName() == name && (selected == nil || selected(o))
		}
	}
	return w
}

// pin has the watch begin with what there is now, however late it is read. Clients of Kubernetes'
// own watch may change something as soon as they are answered, and are to be told of that as a
// change.
func (w *watch) pin() { w.pinned = w.Store.Snapshot() }

// first takes the snapshot with which the watch begins: a newer one than was pinned if its caller
// may see something else by now, or if that one is too old to be kept.
func (w *watch) first() *cache.Snapshot {
	pinned := w.pinned
	w.pinned = nil
	if pinned == nil || w.outdated || w.Store.Outgrown(pinned) {
		return w.Store.Snapshot()
	}
	return pinned
}

// Upstream is how the watch of the kind is.
func (w *watch) Upstream() cache.Upstream { return w.Store.Upstream() }

func (w *watch) Name() string { return w.name }

func (w *watch) AuditRead() auditrecord.Read {
	read := access.ReadVisible(w.visibleTarget(), "watch")
	read.Watch = w.name
	return read
}

func (w *watch) Question() permission.Question {
	kinds, store, target := w.Kinds, w.Store, w.target
	return permission.Question{
		Key: fmt.Sprintf("%p %p %#v", kinds, store, target),
		See: func(ctx context.Context, id auth.Identity) (*visibility.Visibility, bool, error) {
			return w.access.See(ctx, kinds, id, target, store.Kind(), "watch")
		},
		Live: func() bool { return store.Upstream().Live },
	}
}

func (w *watch) Permit(visible *visibility.Visibility) {
	w.permitted, w.outdated = visible, !visible.Same(w.Visible)
}

func (w *watch) Close() {
	w.end()
	w.Release()
}

// cost is about how many bytes have to be read to tell an event; 0 if it is sent as it is kept.
func (w *watch) cost(event *cache.Event) (bytes int) {
	if w.match != nil {
		bytes += 2 * w.selector.Cost(event.Object)
	}
	return bytes + w.view.Cost(event.Object)
}

// objects are the objects of a snapshot that the client is to see. If step is not nil, it bounds the work: see
// cache.Selector.Stepping.
func (w *watch) objects(snapshot *cache.Snapshot, step func(bytes int) bool) iter.Seq[*cluster.Object] {
	if w.target.Name == "" {
		return w.visibleTarget().List(snapshot, w.selector.Stepping(step), "", "")
	}
	return func(yield func(*cluster.Object) bool) {
		if o := snapshot.Get(w.target.Namespace, w.target.Name); o != nil && w.match(o) {
			yield(o)
		}
	}
}

// visibleTarget is what the caller may see of what the path names, whatever the selectors are.
func (w *watch) visibleTarget() visibility.VisibleTarget {
	return visibility.VisibleTarget{Target: w.target, Visible: w.Visible}
}

// inScope reports whether an object is one that the path names, whatever its labels and fields.
func (w *watch) inScope(o *cluster.Object) bool {
	return (w.target.Namespace == "" || o.GetNamespace() == w.target.Namespace) &&
		(w.target.Name == "" || o.GetName() == w.target.Name)
}

// begin moves the watch to another cursor, for a client that knows something.
func (w *watch) begin(cursor *cache.Cursor, known stream.Known) {
	w.end()
	w.cursor, w.known, w.before, w.retold = cursor, known, known.Some, false
	w.open = known.All+1 == known.Some
	if w.conflate > 0 {
		w.held = stream.NewConflator[*cluster.Object](w.conflate)
	}
}

// end gives up the watch's cursor.
func (w *watch) end() {
	if w.cursor != nil {
		w.cursor.Disarm()
	}
	w.cursor, w.held, w.known, w.before, w.changing = nil, nil, stream.Known{}, 0, false
}

// claim is the client's position. All is everything below the lowest version that the client was not told, and Some is the
// highest version of which it was told anything.
//
// Who knows some of the very next version is not told the only event of it again (stream.Cursor). That is wrong for a
// client that was told older ones since, so its position stays before the last of those.
func (w *watch) claim() stream.Claim {
	all := w.known.All
	if w.held != nil {
		all = w.held.Claim(all)
	}
	if w.retold && all+1 == w.known.Some {
		all--
	}
	claim := stream.Claim{Known: stream.Known{All: all, Some: max(all, w.known.Some)}, Visibility: w.Visible.Name()}
	if w.changing {
		claim.Visibility = changingVisibility
	}
	return claim
}

// Bookmark implements Source. It moves the client's position past versions of which there was nothing to tell.
func (w *watch) Bookmark(to eventstream.Sink) {
	if w.known.All > 0 {
		claim := w.claim()
		to.Emit(eventstream.Event{Kind: eventstream.KindBookmark, Prefix: w.prefix, Version: claim.All}, claim)
	}
}

// advance moves the client's position to an event that is told, or held back, now.
func (w *watch) advance(event *cache.Event, emitted bool) {
	w.known.All = max(w.known.All, event.ID)
	if emitted {
		w.retold = event.Pos < w.known.Some
		w.known.Some = max(w.known.Some, event.Pos)
		_, found := event.FromRelist()
		w.open = !found && !w.retold && w.known.All+1 == w.known.Some
	}
}

// passes moves the client's position past all that was read, up to a version. It reports whether the client had been
// told more than its position said, and now has not, so that a bookmark is worth sending. Behind a deletion it is not
// worth it: the next event has the position as well, and there would be as many bookmarks as deletions.
func (w *watch) passes(version uint64) (complete bool) {
	partly := w.known.Some > w.known.All && !w.open
	w.known.All = max(w.known.All, version)
	return partly && w.known.All >= w.known.Some
}

// base is the object as the client has it before an event, if that is known. It is not known for events before the end
// of the client's position, since it may have been told more recent ones.
func (w *watch) base(event *cache.Event) *cluster.Object {
	if event.Pos <= w.before {
		return nil
	}
	return event.Old
}
