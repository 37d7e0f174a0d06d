package http

import (
	"iter"
	"slices"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

type conflator = stream.Conflator[*cluster.Object]

// watch is one watch of a running stream.
type watch struct {
	watchRequest
	grant
	prefix string                     // of its events' names: "pods.", or "" on a stream of a single one
	match  func(*cluster.Object) bool // nil: everything in sight

	cursor  *cache.Cursor  // nil before the watch has begun
	past    []*cache.Event // caught up or not told yet, and to be told before what the cursor gives; of all namespaces
	version uint64         // up to which everything was read; 0 before a snapshot is complete
	burst   uint64         // version of a relist whose difference the client has not been told to the end; else 0
	held    *conflator     // nil unless modifications are conflated
	stale   bool           // the client has been told so

	told     *sight // what the client was last told that its caller may see
	resight  *sight // what its caller may see, if that is to become another
	outdated bool   // it is
	shifting bool   // and the client is being told, so that its position is of neither
}

func newWatch(req watchRequest, granted grant) *watch {
	w := &watch{watchRequest: req, grant: granted, match: req.selector.Match()}
	if req.name != "" {
		w.prefix = req.name + "."
	}
	if name := req.target.name; name != "" {
		selected := w.match
		w.match = func(o *cluster.Object) bool {
			return o.GetName() == name && (selected == nil || selected(o))
		}
	}
	return w
}

// objects are those of a snapshot that the client is to see.
func (w *watch) objects(snapshot *cache.Snapshot) iter.Seq[*cluster.Object] {
	if w.target.name == "" {
		return w.part().list(snapshot, w.selector, "", "")
	}
	return func(yield func(*cluster.Object) bool) {
		if o := snapshot.Get(w.target.namespace, w.target.name); o != nil && w.match(o) {
			yield(o)
		}
	}
}

// part is what the client sees, selected or not.
func (w *watch) part() part { return part{w.target, w.sight} }

// begin moves the watch to another cursor.
func (w *watch) begin(cursor *cache.Cursor, known stream.Known) {
	w.end()
	w.cursor, w.version = cursor, known.All
	if known.Some > known.All {
		w.burst = known.Some
	}
	if w.conflate > 0 {
		w.held = stream.NewConflator[*cluster.Object](w.conflate)
	}
}

// claim is what the client knows.
func (w *watch) claim() stream.Told {
	all := w.version
	if w.held != nil {
		all = w.held.Claim(all)
	}
	told := stream.Told{Known: stream.Known{All: all, Some: max(all, w.burst)}, Sight: w.sight.name()}
	if w.shifting {
		told.Sight = shiftingSight
	}
	return told
}

func (w *watch) end() {
	if w.cursor != nil {
		w.cursor.Disarm()
	}
	w.cursor, w.past, w.held, w.version, w.burst, w.shifting = nil, nil, nil, 0, 0, false
}

// inScope reports whether an object is one that the path names, whatever its labels and fields.
func (w *watch) inScope(o *cluster.Object) bool {
	return (w.target.namespace == "" || o.GetNamespace() == w.target.namespace) &&
		(w.target.name == "" || o.GetName() == w.target.name)
}

// waiting is what the watch has read, or caught up, and not told yet.
func (w *watch) waiting() []*cache.Event {
	return slices.DeleteFunc(slices.Clone(w.past), func(e *cache.Event) bool { return !w.inScope(e.Object) })
}

// next appends what follows to a batch, up to its capacity; see stream.Cursor.Next. It wakes the reader only once
// nothing is left of the past.
func (w *watch) next(batch []*cache.Event, reader stream.Waiter) (_ []*cache.Event, position uint64, err error) {
	if len(w.past) == 0 {
		return w.cursor.Next(batch, reader)
	}
	for len(w.past) > 0 && len(batch) < cap(batch) {
		event := w.past[0]
		w.past = w.past[1:]
		position = event.ID
		if w.inScope(event.Object) {
			batch = append(batch, event)
		}
	}
	if len(w.past) == 0 {
		w.past = nil // it is shared, and large
	}
	return batch, position, nil
}

// unread puts events back that were read and not told.
func (w *watch) unread(events []*cache.Event) {
	if len(events) > 0 {
		w.past = slices.Concat(events, w.past)
	}
}

func (w *watch) close() {
	w.end()
	w.release()
}
