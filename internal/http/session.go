package http

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/stream"
)

// session is one running event stream. What changes in it belongs to the request's goroutine.
//
// It reads its cursors, writes what they give, and waits until one of them has more or a time has come. There is no
// queue between the ring and the connection.
type session struct {
	server  *Server
	request streamRequest
	id      auth.Identity
	log     *slog.Logger
	out     *frames
	watches []*watch
	waiter  *stream.Waiter
	began   time.Time
	path    string

	counted     counted // in the metrics
	times       *schedule
	permission  permission
	bookmarkDue bool // once the cursors were read

	epoch   string
	names   []string       // of the watches; nil before they have begun
	known   []stream.Known // scratch
	eventID []byte         // scratch
}

// counted is what was sent.
type counted struct{ events, bytes int64 }

// endGone is why a stream ended that the server did not end.
const endGone = "gone"

// batchSize is how many events are read from a cursor at a time.
const batchSize = 128

var batches = sync.Pool{New: func() any { return new([batchSize]*cache.Event) }}

// run serves the stream to its end and says why it ended. A refusal ends it at once.
func (ss *session) run(ctx context.Context, refusal string) string {
	retry := ss.server.opts.Stream.Retry
	ss.out.comment("kubecast")
	ss.out.retry(between(retry, 2*retry))
	if ss.flush() != nil {
		return endGone
	}
	reason := refusal
	if reason == "" {
		reason = ss.serve(ctx)
	}
	switch reason {
	case endGone:
		return endGone
	case goodbyeDrain: // all streams of this replica end, so they are to come back spread
		ss.out.retry(between(retry, 3*retry))
		ss.bookmarks()
	case goodbyeAge, goodbyeExpired:
		ss.bookmarks()
	}
	ss.out.event("", "goodbye", ss.knownPosition(), quote("reason", reason))
	if ss.flush() != nil {
		return endGone
	}
	return reason
}

// serve tells what there is to tell, until there is a reason to say goodbye with or the client has gone.
func (ss *session) serve(ctx context.Context) string {
	ctx, cancel := context.WithCancel(ctx)
	defer ss.permission.wait()
	defer cancel()
	ss.times = newSchedule(ss)
	defer ss.times.timer.Stop()
	if reason := ss.begin(ctx); reason != "" {
		return reason
	}
	for {
		more, reason := ss.pump(ctx)
		if reason == "" {
			reason = ss.wait(ctx, more)
		}
		if reason != "" {
			return reason
		}
	}
}

// flush sends what was collected.
func (ss *session) flush() error {
	before := ss.counted
	err := ss.out.flush()
	ss.counted = counted{ss.out.events, ss.out.bytes}
	ss.server.metrics.events.Add(float64(ss.counted.events - before.events))
	ss.server.metrics.bytes.Add(float64(ss.counted.bytes - before.bytes))
	return err
}

// sendOn flushes in the middle of something long, which is also when to look whether something is due.
func (ss *session) sendOn(ctx context.Context) string {
	if ss.flush() != nil {
		return endGone
	}
	return ss.due(ctx)
}

// reset tells a watch's client that it has missed something; a snapshot is to follow.
func (ss *session) reset(w *watch, reason string) {
	w.end()
	ss.server.metrics.resets.WithLabelValues(reason).Inc()
	ss.send(w, "reset", quote("reason", reason))
}

// snapshot sends the current state, and puts the watch behind it. It returns a reason if the stream has to end before.
func (ss *session) snapshot(ctx context.Context, w *watch) string {
	snapshot := w.store.Snapshot()
	count := 0
	for o := range w.objects(snapshot) {
		ss.send(w, stream.Added.String(), w.fields.of(o.JSON()))
		count++
		if ss.out.full() {
			if reason := ss.sendOn(ctx); reason != "" {
				return reason
			}
		}
	}
	w.begin(w.store.Topic().From(snapshot.Head, w.target.scope()), stream.UpTo(snapshot.Version()))
	ss.send(w, "synced", `{"resourceVersion":"`+strconv.FormatUint(w.version, 10)+`","count":`+strconv.Itoa(count)+`}`)
	return ""
}

// pump sends a batch of each cursor. It reports whether there may be more, and returns a reason if the stream has to
// end.
func (ss *session) pump(ctx context.Context) (more bool, reason string) {
	var oldest time.Time
	for _, w := range ss.watches {
		at, again, reason := ss.read(ctx, w)
		if reason != "" {
			return false, reason
		}
		if !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
		more = more || again
	}
	if ss.bookmarkDue {
		ss.bookmarkDue = false
		ss.bookmarks()
	}
	if ss.flush() != nil {
		return false, endGone
	}
	if !oldest.IsZero() {
		ss.server.metrics.latency.Observe(time.Since(oldest).Seconds())
	}
	return more, ""
}

// read sends one batch of a watch. It says when the batch's first event was appended, and whether there may be more.
func (ss *session) read(ctx context.Context, w *watch) (at time.Time, more bool, reason string) {
	ss.tellUpstream(w)
	space := batches.Get().(*[batchSize]*cache.Event)
	defer batches.Put(space)
	batch, position, err := w.next(space[:0])
	if err != nil {
		return at, true, ss.restart(ctx, w, resetReason(err))
	}
	defer clear(batch) // the pool must not keep objects alive
	if reason := ss.tellHeld(ctx, w); reason != "" {
		return at, false, reason
	}
	for _, event := range batch {
		if event.ID < event.Pos {
			w.burst = event.Pos
		}
		kind, object, tell := event.For(w.match)
		if !tell {
			continue
		}
		if at.IsZero() {
			at = event.At // zero for what was caught up
		}
		w.version = max(w.version, event.ID)
		ss.tell(w, event, kind, object)
		if ss.out.full() {
			if reason := ss.sendOn(ctx); reason != "" {
				return at, false, reason
			}
		}
	}
	w.version = max(w.version, position)
	if w.burst > 0 && w.version >= w.burst {
		// Only now may the client claim the list's version; else it would be told the burst again.
		w.burst = 0
		ss.bookmark(w)
	}
	return at, len(batch) == cap(batch) || len(w.past) > 0, ""
}

// restart sends a watch's client to the current state.
func (ss *session) restart(ctx context.Context, w *watch, reason string) string {
	if reason == resetEpoch {
		var err error
		if ss.epoch, err = epoch(ctx, ss.watches); err != nil {
			ss.log.Warn("stream ends: its cluster cannot be identified", "path", ss.path, "error", err)
			return goodbyeUnavailable
		}
	}
	ss.reset(w, reason)
	return ss.snapshot(ctx, w)
}

// tellUpstream tells whether what the client sees is still fresh, when that has changed.
func (ss *session) tellUpstream(w *watch) {
	upstream := w.store.Upstream()
	if upstream.Live != w.stale {
		return
	}
	w.stale = !upstream.Live
	name := "live"
	if w.stale {
		name = "stale"
	}
	ss.send(w, name, `{"since":`+strconv.Quote(upstream.Since.UTC().Format(time.RFC3339Nano))+
		`,"reason":`+strconv.Quote(upstreamReason(upstream))+`}`)
}

// send collects an event of a watch, with the position after it.
func (ss *session) send(w *watch, name, data string) {
	ss.out.event(w.prefix, name, ss.position(), data)
}

// position is the event id for where all watches stand.
func (ss *session) position() []byte {
	for i, w := range ss.watches {
		ss.known[i] = w.claim()
	}
	ss.eventID = stream.AppendID(ss.eventID[:0], ss.epoch, ss.names, ss.known)
	return ss.eventID
}

// knownPosition is the position; before the watches have begun it is the client's own, so that it keeps it.
func (ss *session) knownPosition() []byte {
	if ss.names != nil {
		return ss.position()
	}
	if _, err := stream.ParsePosition(ss.request.position); err == nil {
		return []byte(ss.request.position)
	}
	return nil
}

func (ss *session) bookmark(w *watch) {
	ss.send(w, "bookmark", quote("resourceVersion", strconv.FormatUint(w.claim().All, 10)))
}

// bookmarks moves the client's position over what it was not told.
func (ss *session) bookmarks() {
	for _, w := range ss.watches {
		if w.version > 0 {
			ss.bookmark(w)
		}
	}
}

// quote is a JSON object with one string, which must be plain ASCII.
func quote(key, value string) string { return `{"` + key + `":` + strconv.Quote(value) + `}` }
