package eventstream

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/http/scheduler"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/tracing"
)

// session is one running event stream: it reads its sources, and writes what they give. There is no queue between a
// source and the connection. serve.go says who does that.
//
// The memory of ten thousand idle streams is mostly that of their sessions. So a session keeps nothing of the request
// that it does not need.
type session struct {
	hub      *Hub
	number   uint64 // its name among the open streams
	taken    bool   // its connection is its own, and not with net/http; set when it is added to openStreams
	id       auth.Identity
	request  string // its id, for the log
	path     string
	address  string       // of the client, as it is counted
	shared   *conn.Shared // its connection, if that is not its own; may be nil
	counts   int          // how many sources count against the quota; 0: the stream does not count, either
	began    time.Time
	audit    *auditrecord.Record // nil: nothing is audited
	span     *tracing.Span       // of the request, until the stream has begun; nil: there is none
	position string              // the position that the client sent, until some of the sources have begun

	heartbeat time.Duration // as the client asked for; 0: the server's
	bookmark  time.Duration // likewise, the time between two bookmarks
	age       time.Duration // likewise, after which the stream ends

	encoder  Encoder
	out      frames
	sources  []Source  // in the place of each that has not begun stands a *beginning
	openings []opening // how each is opened
	several  bool      // there may be several sources, so events have their names
	finite   bool      // the answer is complete only if it ends with its source

	scheduler.QueueEntry              // in the run queue of its user
	task                 *budget.Task // in which it is served; nil while it is not
	at                   int          // the source that is read first, since the turn before did not get to it

	scheduler.RunState
	member  membership
	wakes   *stream.WakeChannel // for which its own goroutine waits; nil: it is parked when it is idle
	parks   bool                // its connection allows it to have no goroutine
	gone    atomic.Bool         // the client has left
	revoked atomic.Bool         // what the caller signed in with counts no more
	placed  atomic.Bool         // its client has had a position of all that it asked for
	moves   atomic.Int64        // it ends after so many nanoseconds, since other replicas have fewer streams; 0: it does not
	cancel  atomic.Pointer[context.CancelFunc]

	counted     counted // in the metrics
	times       *schedule
	permission  permission.Subscription
	unconfirmed bool   // the stream is to end, since nobody can say what is permitted
	bookmarkDue bool   // a bookmark is to be sent once the sources were read
	behind      []bool // of the sources: it goes on from the client's position, and what was missed is not all told; empty: of none

	names   []string       // of the sources; nil before the session has begun
	claims  []stream.Claim // the client's positions in the sources, each with its epoch
	dues    []time.Time    // when each source has to be read at the latest; zero: never
	reading int            // the source that is telling something
	eventID []byte         // scratch
}

// counted is what was sent.
type counted struct{ events, bytes int64 }

func (ss *session) logger() *slog.Logger { return ss.hub.opts.Log.With("request", ss.request) }

// begun reports whether the session has begun. Some of its sources may not have.
func (ss *session) begun() bool { return ss.names != nil }

// Emit implements Sink, for the source that is being read.
func (ss *session) Emit(e Event, claim stream.Claim) {
	ss.moveTo(ss.reading, claim)
	ss.emit(e)
}

// moveTo notes the client's position in a source.
func (ss *session) moveTo(source int, claim stream.Claim) {
	claim.Epoch = ss.claims[source].Epoch
	ss.claims[source] = claim
}

// emit collects an event, with the client's position.
func (ss *session) emit(e Event) {
	if e.Kind.isEvent() {
		e.id = ss.claim()
	}
	ss.out.add(ss.encoder, e)
}

// Relay implements Sink. In the middle of something long, it also looks whether something is due.
func (ss *session) Relay() Outcome {
	if !ss.out.full() {
		return GoOn
	}
	if outcome := ss.flush(); outcome != GoOn {
		return outcome
	}
	return ss.due()
}

func (ss *session) Step(bytes int) bool { return ss.task.Step(bytes) }

func (ss *session) NonBlocking() bool { return ss.out.nonBlocking }

func (ss *session) Spawn(do func(context.Context)) context.CancelFunc { return ss.hub.aside(do) }

func (ss *session) Outgrowing(outgrown func() bool) { ss.out.outgrown = outgrown }

// sayGoodbye tells the client why the stream ends. It returns the outcome under which that is counted.
func (ss *session) sayGoodbye(end Outcome) Outcome {
	if end == ClientGone || ss.flush() != GoOn {
		return ClientGone
	}
	if ss.times == nil { // refused at once
		ss.greet()
	}
	if !end.hasGoodbye() {
		return end
	}
	if after := ss.comesBackAfter(end); after > 0 {
		ss.emit(Event{Kind: kindRetry, after: after})
	}
	if end.isPlanned() {
		ss.bookmarks()
		ss.goesAway()
	}
	ss.emit(Event{Kind: KindGoodbye, Name: end.String()})
	if ss.complete(end) {
		ss.out.complete()
	}
	if ss.flush() != GoOn {
		return ClientGone
	}
	return end
}

// How long a client waits whose stream ends at a moment that was chosen at random: its end is spread already, so there is
// nothing that a longer wait would be good for.
const (
	soonest = 100 * time.Millisecond
	soon    = 500 * time.Millisecond
)

// comesBackAfter is how long the client is to wait before it connects again; 0: as long as it was
// told at the beginning.
func (ss *session) comesBackAfter(end Outcome) time.Duration {
	retry := ss.hub.opts.Times.Retry
	switch {
	case end == endAge, end == endDrain && ss.times != nil && ss.times.draining:
		return scheduler.Between(min(soonest, retry), min(soon, retry))
	case end == endDrain: // it came here although this replica drains, and may be sent here again until that is known
		return scheduler.Between(retry, 3*retry)
	}
	return 0
}

// complete reports whether a stream that ends so is to look complete.
func (ss *session) complete(end Outcome) bool {
	return end != ClientGone && !ss.out.failed && (end == Gone || !ss.finite)
}

// greet tells what a stream begins with.
func (ss *session) greet() {
	retry := ss.hub.opts.Times.Retry
	ss.emit(Event{Kind: kindGreeting, after: scheduler.Between(retry, 2*retry)})
}

// flush sends what was collected.
func (ss *session) flush() Outcome {
	ss.out.pack(ss.out.to) // within the turn, as it may be long work
	if ss.task != nil && !ss.out.nonBlocking {
		ss.task.Rest() // it may have to wait for the client
	}
	before := ss.counted
	err := ss.out.flush()
	ss.counted = counted{ss.out.events, ss.out.bytes}
	ss.hub.metrics.events.Add(float64(ss.counted.events - before.events))
	ss.hub.metrics.bytes.Add(float64(ss.counted.bytes - before.bytes))
	switch err {
	case nil:
		if known := ss.out.known; !known.IsZero() {
			ss.out.known = time.Time{}
			ss.hub.metrics.latency.Observe(time.Since(known).Seconds())
		}
		return GoOn
	case errBusy:
		return WouldBlock
	case conn.ErrOutgrown:
		ss.logger().Info("stream is cut in its snapshot", "path", ss.path, "user", ss.id.Username, "error", err)
	}
	return ClientGone
}

// readCost is what looking into a source counts, in bytes, beside what it tells.
const readCost = 4 << 10

// pump sends a batch of each source. It reports whether there may be more.
func (ss *session) pump(ctx context.Context) (more bool, outcome Outcome) {
	var oldest time.Time
	first := ss.at
	ss.at = 0
	for i := range ss.sources {
		progress := ss.read(ctx, (first+i)%len(ss.sources))
		if progress.Outcome != GoOn {
			return false, progress.Outcome
		}
		if at := progress.At; !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
		more = more || progress.More
		if !progress.More && !progress.Behind {
			ss.caughtUp((first + i) % len(ss.sources))
		}
		if len(ss.sources) > 1 && !ss.task.Step(readCost) { // the turn is over
			ss.at, more = (first+i+1)%len(ss.sources), true
			break
		}
	}
	if ss.bookmarkDue {
		ss.bookmarkDue = false
		ss.bookmarks()
	}
	if outcome := ss.flush(); outcome != GoOn {
		return false, outcome
	}
	if !ss.placed.Load() && ss.hasPlace() {
		ss.placed.Store(true)
	}
	if !oldest.IsZero() {
		ss.hub.metrics.latency.Observe(time.Since(oldest).Seconds())
	}
	return more, GoOn
}

// caughtUp tells the client of a source that went on from its position that it has all that it had missed. That is the
// first bookmark, and the client waits for it: what it shows until then is as old as its position.
func (ss *session) caughtUp(source int) {
	if len(ss.behind) == 0 || !ss.behind[source] || !ss.claims[source].IsPlaced() {
		return
	}
	ss.behind[source] = false
	ss.tellBookmark(source)
}

// read sends one batch of a source.
func (ss *session) read(ctx context.Context, source int) ReadResult {
	if b, waits := ss.sources[source].(*beginning); waits {
		if outcome := ss.tryToBegin(source, b); outcome != GoOn {
			return ReadResult{Outcome: outcome}
		}
	}
	ss.reading = source
	progress := ss.sources[source].Read(ctx, ss)
	ss.moveTo(source, progress.Claim)
	ss.dues[source] = progress.Due
	gone := progress.Outcome == Gone
	switch {
	case (gone || progress.Outcome == Unavailable && !ss.unconfirmed) && ss.reads() > 1:
		ss.giveUp(source, errAway, gone)
		return ReadResult{More: true}
	case gone && ss.count((*beginning).isGone) < len(ss.sources)-1: // the others may be back
		progress.Outcome = Unavailable
	case progress.Missed != "" && progress.Outcome == GoOn:
		progress.Outcome = ss.restart(ctx, source, progress.Missed)
	}
	return progress
}

// reads is how many sources have begun.
func (ss *session) reads() (n int) {
	for _, s := range ss.sources {
		if _, waits := s.(*beginning); !waits {
			n++
		}
	}
	return n
}

// restart tells the client of a source that has given up its place to begin anew from the current
// state. If another history has begun, it concerns no other source: these have epochs of their own.
func (ss *session) restart(ctx context.Context, source int, reason string) Outcome {
	s := ss.sources[source]
	if reason == ResetEpoch {
		epoch, err := s.Epoch(ctx)
		if err != nil {
			ss.logger().Warn("stream ends: its cluster cannot be identified", "path", ss.path, "error", err)
			return Unavailable
		}
		ss.claims[source].Epoch = epoch
	}
	return ss.reset(s, reason)
}

// reset tells the client of a source that it has missed something. The state follows, unless clients of this form ask
// for it themselves.
func (ss *session) reset(s Source, reason string) Outcome {
	ss.hub.metrics.resets.WithLabelValues(reason).Inc()
	prefix := ""
	if ss.several {
		prefix = prefixOf(s.Name())
	}
	ss.emit(Event{Kind: KindReset, Prefix: prefix, Name: reason})
	if ss.encoder.Relists() {
		return AfterError
	}
	return GoOn
}

// hasPlace reports whether the client could go on with all that it is told. Within a snapshot it could not.
func (ss *session) hasPlace() bool {
	for i, s := range ss.sources {
		_, waits := s.(*beginning)
		_, isWhole := s.(ToldWhole)
		if !waits && !isWhole && !ss.claims[i].IsPlaced() {
			return false
		}
	}
	return true
}

// claim is the event id that names where all sources stand; nil if the client has no position. Of
// those that have not begun, it is the position that the client sent, so that the client keeps it.
func (ss *session) claim() []byte {
	if !ss.begun() || ss.position != "" {
		if _, err := stream.ParsePosition(ss.position); err == nil {
			return []byte(ss.position)
		}
		return nil
	}
	ss.eventID = stream.AppendID(ss.eventID[:0], ss.names, ss.claims)
	return ss.eventID
}

// bookmarks moves the client's position past versions of which there was nothing to tell.
func (ss *session) bookmarks() {
	for i := range ss.sources {
		ss.tellBookmark(i)
	}
}

func (ss *session) tellBookmark(source int) {
	ss.reading = source
	ss.sources[source].Bookmark(ss)
}
