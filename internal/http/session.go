package http

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/stream"
)

// session is one running event stream. Everything in it belongs to the request's goroutine.
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
	epoch   string
	began   time.Time
	path    string

	bookmarkDue bool // once all that is there was read

	names    []string // of the watches; nil before they have begun
	versions []uint64 // scratch
	eventID  []byte   // scratch
}

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
	if ss.out.flush() != nil {
		return endGone
	}
	if refusal != "" {
		return ss.goodbye(refusal)
	}
	times := newSchedule(ss)
	defer times.timer.Stop()
	if reason := ss.begin(ctx, times); reason != "" {
		return reason
	}
	for {
		if reason := ss.pump(ctx); reason != "" {
			return reason
		}
		switch reason := ss.wait(ctx, times); reason {
		case "":
		case endGone:
			return reason
		case goodbyeRevoked: // not a byte more
			return ss.goodbye(reason)
		case goodbyeDrain:
			ss.out.retry(between(retry, 3*retry))
			ss.bookmarks()
			return ss.goodbye(reason)
		default:
			ss.bookmarks()
			return ss.goodbye(reason)
		}
	}
}

// snapshot sends the current state, and puts the watch behind it. It reports false if the client has gone.
func (ss *session) snapshot(w *watch, reset string) bool {
	w.end()
	if reset != "" {
		ss.server.metrics.resets.WithLabelValues(reset).Inc()
		ss.send(w, "reset", quote("reason", reset))
	}
	snapshot := w.store.Snapshot()
	count := 0
	for o := range w.objects(snapshot) {
		ss.send(w, stream.Added.String(), w.fields.of(o.JSON()))
		count++
		if ss.out.full() && ss.out.flush() != nil {
			return false
		}
	}
	w.begin(w.store.Topic().From(snapshot.Head, w.target.scope()), snapshot.Version())
	ss.send(w, "synced", `{"resourceVersion":"`+strconv.FormatUint(w.version, 10)+`","count":`+strconv.Itoa(count)+`}`)
	return true
}

// pump sends everything that the cursors have. It returns a reason if the stream has ended.
func (ss *session) pump(ctx context.Context) string {
	for more := true; more; {
		more = false
		var oldest time.Time
		for _, w := range ss.watches {
			at, again, err := ss.read(ctx, w)
			if err != nil {
				return endGone
			}
			if !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
				oldest = at
			}
			more = more || again
		}
		if ss.bookmarkDue && !more {
			ss.bookmarkDue = false
			ss.bookmarks()
		}
		if ss.out.flush() != nil {
			return endGone
		}
		if !oldest.IsZero() {
			ss.server.metrics.latency.Observe(time.Since(oldest).Seconds())
		}
		if ctx.Err() != nil {
			return endGone
		}
	}
	return ""
}

// read sends one batch of a watch. It says when the batch's first event was appended, and whether there may be more.
func (ss *session) read(ctx context.Context, w *watch) (at time.Time, more bool, err error) {
	ss.tellUpstream(w)
	space := batches.Get().(*[batchSize]*cache.Event)
	defer batches.Put(space)
	batch, position, err := w.next(space[:0])
	if err != nil {
		return at, true, ss.restart(ctx, w, resetReason(err))
	}
	defer clear(batch) // the pool must not keep objects alive
	ss.tellHeld(w)
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
			if err := ss.out.flush(); err != nil {
				return at, false, err
			}
		}
	}
	w.version = max(w.version, position)
	if w.burst > 0 && w.version >= w.burst {
		// Only now may the client claim the list's version; else it would be told the burst again.
		w.burst = 0
		ss.bookmark(w)
	}
	return at, len(batch) == cap(batch) || len(w.past) > 0, nil
}

// restart sends a watch's client to the current state.
func (ss *session) restart(ctx context.Context, w *watch, reason string) error {
	if reason == resetEpoch {
		var err error
		if ss.epoch, err = epoch(ctx, ss.watches); err != nil {
			return err
		}
	}
	if !ss.snapshot(w, reason) {
		return context.Canceled
	}
	return nil
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
		ss.versions[i] = w.claim()
	}
	ss.eventID = stream.AppendID(ss.eventID[:0], ss.epoch, ss.names, ss.versions)
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
	ss.send(w, "bookmark", quote("resourceVersion", strconv.FormatUint(w.claim(), 10)))
}

// bookmarks moves the client's position over what it was not told.
func (ss *session) bookmarks() {
	for _, w := range ss.watches {
		if w.version > 0 {
			ss.bookmark(w)
		}
	}
}

// goodbye ends the stream as planned, at a frame's boundary. The client keeps its position, or gets the newest.
func (ss *session) goodbye(reason string) string {
	ss.out.event("", "goodbye", ss.knownPosition(), quote("reason", reason))
	if ss.out.flush() != nil {
		return endGone
	}
	return reason
}

// quote is a JSON object with one string.
func quote(key, value string) string {
	text, err := json.Marshal(map[string]string{key: value})
	if err != nil {
		panic(err) // a map of strings
	}
	return string(text)
}
