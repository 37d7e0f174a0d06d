package eventstream

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/trail"
	"github.com/kubecast/kubecast/internal/stream"
)

// session is one running event stream: it reads its cursors, and writes what they give. There is no queue between the
// ring and the connection. serve.go says who does that.
//
// Ten thousand idle streams are mostly what a session holds, so it keeps nothing of the request that it does not need.
type session struct {
	hub      *Hub
	number   uint64 // names it among those that are open
	id       auth.Identity
	request  string // its id, for the log
	path     string
	address  string // of the client, as it is counted
	placed   int    // watches that are counted; 0: it is not, either
	began    time.Time
	trail    *trail.Trail // nil: nothing is audited
	position string       // the client's own, until the watches have begun

	heartbeat time.Duration // that the client asked for; 0: the server's
	age       time.Duration // likewise, after which the stream ends

	dialect dialect
	out     frames
	watches []*watch

	line *line        // of its user
	next *session     // behind it in that
	task *budget.Task // in which it is served; nil while it is not
	at   int          // the watch that is read first: the turn before did not come to it

	state   atomic.Int32
	bell    *stream.Bell // its carrier waits for; nil: it is parked when it is idle
	parks   bool         // it can do without a carrier
	gone    atomic.Bool  // the client has left
	revoked atomic.Bool  // what the caller signed in with counts no more
	cancel  atomic.Pointer[context.CancelFunc]

	counted     counted // in the metrics
	times       *schedule
	permission  permission
	bookmarkDue bool // once the cursors were read

	epoch   string
	names   []string      // of the watches; nil before they have begun
	told    []stream.Told // scratch
	eventID []byte        // scratch
}

// counted is what was sent.
type counted struct{ events, bytes int64 }

// BatchSize is how many events of a watch are read at a time.
const BatchSize = 128

var batches = sync.Pool{New: func() any { return new([BatchSize]*cache.Event) }}

func (ss *session) logger() *slog.Logger { return ss.hub.opts.Log.With("request", ss.request) }

// begun reports whether the watches have their places.
func (ss *session) begun() bool { return ss.names != nil }

// sayGoodbye tells the client the reason for which the stream ends, and returns for which it did.
func (ss *session) sayGoodbye(reason string) string {
	if reason == endLeft || ss.flush() != "" {
		return endLeft
	}
	if ss.times == nil { // refused at once
		ss.dialect.greet(ss)
	}
	if reason == endTold {
		return endTold
	}
	ss.dialect.goodbye(ss, reason)
	if ss.flush() != "" {
		return endLeft
	}
	return reason
}

// flush sends what was collected.
func (ss *session) flush() (stop string) {
	if ss.task != nil && !ss.out.prompt {
		ss.task.Rest() // it may have to wait for the client
	}
	before := ss.counted
	err := ss.out.flush()
	ss.counted = counted{ss.out.events, ss.out.bytes}
	ss.hub.metrics.events.Add(float64(ss.counted.events - before.events))
	ss.hub.metrics.bytes.Add(float64(ss.counted.bytes - before.bytes))
	switch err {
	case nil:
		return ""
	case errBusy:
		return turnOver
	case conn.ErrOutgrown:
		ss.logger().Info("stream is cut in its snapshot", "path", ss.path, "user", ss.id.Username, "cause", err)
	}
	return endLeft
}

// sendOn flushes in the middle of something long, which is also when to look whether something is due.
func (ss *session) sendOn() (stop string) {
	if stop := ss.flush(); stop != "" {
		return stop
	}
	return ss.due()
}

// reset tells a watch's client that it has missed something; a snapshot is to follow, unless the stream has to end.
func (ss *session) reset(w *watch, reason string) (stop string) {
	w.end()
	ss.hub.metrics.resets.WithLabelValues(reason).Inc()
	return ss.dialect.reset(ss, w, reason)
}

// snapshot sends the current state, and puts the watch behind it. It returns a reason if the stream has to end before.
func (ss *session) snapshot(ctx context.Context, w *watch) string {
	w.adopt()
	switch {
	case w.told.Same(w.Visible):
	case w.Visible.Covers(w.told):
		ss.tellSight(w, "widened", w.Visible)
	default:
		ss.tellSight(w, "narrowed", w.Visible)
	}
	snapshot := w.Store.Snapshot()
	ss.out.outgrown = func() bool { return w.Store.Outgrown(snapshot) }
	defer func() { ss.out.outgrown = nil }()
	count := 0
	for o := range w.objects(snapshot, ss.task.Step) {
		if w.fields != nil && !ss.task.Step(o.Size()) {
			break
		}
		ss.dialect.state(ss, w, o)
		count++
		if ss.out.full() {
			if reason := ss.sendOn(); reason != "" {
				return reason
			}
			if w.outdated { // some of it may not be seen any more, and has been told
				return ss.restart(ctx, w, resetEpoch)
			}
		}
	}
	if ss.task.Err() != nil {
		return endLeft
	}
	w.begin(w.Store.Topic().From(snapshot.Head, w.part().Scope()), snapshot.Head.Known())
	ss.dialect.synced(ss, w, count)
	return ""
}

// watchCost is as what looking into a watch counts, in bytes, beside what is told of it.
const watchCost = 4 << 10

// pump sends a batch of each cursor. It reports whether there may be more, and returns a reason if the stream has to
// end.
func (ss *session) pump(ctx context.Context) (more bool, reason string) {
	var oldest time.Time
	first := ss.at
	ss.at = 0
	for i := range ss.watches {
		w := ss.watches[(first+i)%len(ss.watches)]
		at, again, reason := ss.read(ctx, w)
		if reason != "" {
			return false, reason
		}
		if !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
		more = more || again
		if len(ss.watches) > 1 && !ss.task.Step(watchCost) { // the turn is over
			ss.at, more = (first+i+1)%len(ss.watches), true
			break
		}
	}
	if ss.bookmarkDue {
		ss.bookmarkDue = false
		ss.bookmarks()
	}
	if stop := ss.flush(); stop != "" {
		return false, stop
	}
	if !oldest.IsZero() {
		ss.hub.metrics.latency.Observe(time.Since(oldest).Seconds())
	}
	return more, ""
}

// read sends one batch of a watch. It says when the batch's first event was appended, and whether there may be more.
func (ss *session) read(ctx context.Context, w *watch) (at time.Time, more bool, stop string) {
	if w.outdated {
		if ss.out.prompt { // there may be much to tell
			return at, true, turnOver
		}
		return at, true, ss.shift(ctx, w)
	}
	// What was appended before the end of the kind is in the ring; so the end is looked for first.
	gone := w.Store.Err() != nil
	if stop := ss.tellHeld(w, time.Now()); stop != "" || w.outdated {
		return at, true, stop
	}
	space := batches.Get().(*[BatchSize]*cache.Event)
	defer batches.Put(space)
	batch, position, err := w.cursor.Next(space[:0], ss)
	defer clear(batch) // the pool must not keep objects alive
	ss.tellUpstream(w) // only now: from here on a change wakes
	if err != nil {
		if ss.out.prompt { // a snapshot is due, and may be long
			return at, true, turnOver
		}
		return at, true, ss.restart(ctx, w, resetReason(err))
	}
	for i, event := range batch {
		if i > 0 && !ss.task.Step(w.cost(batch[i-1])) {
			w.cursor.Back(batch[i:])
			return at, true, ""
		}
		if !w.Visible.Sees(event.Object) {
			continue
		}
		kind, object, tell := event.For(w.match)
		if !tell {
			continue
		}
		if at.IsZero() {
			at = event.At // zero for what was caught up
		}
		ss.tell(w, event, kind, object)
		if ss.out.full() {
			if stop := ss.sendOn(); stop != "" || w.outdated {
				w.cursor.Back(batch[i+1:])
				return at, true, stop
			}
		}
	}
	if w.passes(position) {
		// Only now may the client claim what it was told last; else it would be told a relist again.
		ss.dialect.bookmark(ss, w)
	}
	if more = len(batch) == cap(batch); more || !gone {
		// The end may have come before the cursor was armed, and then has woken nobody.
		return at, more || w.Store.Err() != nil, ""
	}
	if stop := ss.tellHeld(w, ever); stop != "" || w.outdated {
		return at, true, stop
	}
	return at, false, goodbyeGone // everything was told that was known
}

// restart sends a watch's client to the current state.
//
// If another history has begun, it does so for all watches whose places are in the old one, and all of these are reset
// before the first is told its state: an id of the new epoch must not name a version of the old history. A client that
// is cut off would come back with it, and miss what happened in the new history up to that version.
func (ss *session) restart(ctx context.Context, w *watch, reason string) string {
	anew := []*watch{w}
	if reason == resetEpoch {
		var err error
		if ss.epoch, err = epoch(ctx, ss.watches); err != nil {
			ss.logger().Warn("stream ends: its cluster cannot be identified", "path", ss.path, "error", err)
			return goodbyeUnavailable
		}
		for _, other := range ss.watches {
			if other != w && other.cursor != nil && other.cursor.Void() {
				anew = append(anew, other)
			}
		}
	}
	for _, w := range anew {
		w.end()
	}
	for _, w := range anew {
		if stop := ss.reset(w, reason); stop != "" {
			return stop
		}
	}
	for _, w := range anew {
		if stop := ss.snapshot(ctx, w); stop != "" {
			return stop
		}
	}
	return ""
}

// tellUpstream tells whether what the client sees is still fresh, when that has changed.
func (ss *session) tellUpstream(w *watch) {
	upstream := w.Store.Upstream()
	if upstream.Live != w.stale {
		return
	}
	w.stale = !upstream.Live
	ss.dialect.upstream(ss, w, upstream)
}

// send collects an event of a watch, with the position after it.
func (ss *session) send(w *watch, name, data string) {
	ss.out.event(w.prefix, name, ss.where(), data)
}

// where is the event id for where all watches stand.
func (ss *session) where() []byte {
	for i, w := range ss.watches {
		ss.told[i] = w.claim()
	}
	ss.eventID = stream.AppendID(ss.eventID[:0], ss.epoch, ss.names, ss.told)
	return ss.eventID
}

// knownPosition is the position; before the watches have begun it is the client's own, so that it keeps it.
func (ss *session) knownPosition() []byte {
	if ss.begun() {
		return ss.where()
	}
	if _, err := stream.ParsePosition(ss.position); err == nil {
		return []byte(ss.position)
	}
	return nil
}

// bookmarks moves the client's position over what it was not told.
func (ss *session) bookmarks() {
	for _, w := range ss.watches {
		if w.known.All > 0 {
			ss.dialect.bookmark(ss, w)
		}
	}
}
