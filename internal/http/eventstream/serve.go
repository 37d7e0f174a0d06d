package eventstream

import (
	"context"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/tracing"
)

// An idle session is served by nobody. A session that is woken is served by a worker, which does
// what can be done without waiting. When there is something to wait for, the session gets a
// goroutine of its own:
//
//   - at its beginning and at its end;
//   - while a client takes no more;
//   - for each write to a connection that stays with net/http, which may wait at any time;
//   - until its end, if a connection of its own cannot be written to without waiting, or does not
//     say when the client leaves.
//
// Whichever goroutine serves a session owns it. A worker that serves a group owns each of its idle
// members for the moment in which it writes to it. The exceptions are what this file and package
// permission share by atomics, or guard by a mutex.

// Wake implements stream.Waiter: the session is to look what there is to tell or to do.
func (ss *session) Wake() {
	if ss.Woken() {
		ss.beServed()
	}
}

// beServed arranges that the session is served, for whoever owns it.
func (ss *session) beServed() {
	if ss.wakes != nil {
		ss.wakes.Wake()
	} else {
		ss.hub.workers.Push(ss)
	}
}

// sleep lets the session's own goroutine wait until the session is woken or something is due.
func (ss *session) sleep() {
	if ss.wakes == nil {
		ss.wakes = stream.NewWakeChannel()
	}
	ss.times.set(ss.nextDue())
	if ss.Idle() {
		ss.task.Rest()
		<-ss.wakes.C
	}
}

// leave says that the client has left. It may be called by anybody, at any time.
func (ss *session) leave() {
	ss.gone.Store(true)
	if cancel := ss.cancel.Load(); cancel != nil {
		(*cancel)()
	}
	ss.Wake()
}

// start serves a session to its end, or until it goes on without the request.
func (h *Hub) start(r *http.Request, ss *session, refusal Outcome) {
	h.metrics.streams.Inc()
	ss.span = tracing.Of(r.Context())
	ss.span.Keep()
	ss.Queue = h.workers.Join(ss.id.QuotaOwner())
	reads := auditReads(ss.sources)
	ss.audit.Began(reads, len(reads) < len(ss.sources))
	served, stays := ss.out.to.(*conn.Served)
	if stays { // also one that ends at once, which must not look complete
		served.Keep(ss.leave)
	}
	if !h.open.add(ss) { // the server has ended
		ss.out.failed = true
		ss.finish(ClientGone)
		return
	}
	ss.checkRevoked() // it may have been between the request and now
	ss.parks = stays
	if !stays {
		own := ss.out.to.(*conn.Direct)
		if ss.parks = own.Waitless() && h.noticeDisconnect(own, ss); !ss.parks {
			own.Watch(ss.leave)
		}
	}
	h.goroutines.Go(func() { ss.run(refusal) })
}

// noticeDisconnect arranges that leave is called when the client leaves. It is false if that could not be arranged, and
// somebody has to read from the connection.
func (h *Hub) noticeDisconnect(own *conn.Direct, ss *session) bool {
	if own.NotifyGone(ss.leave) {
		return true
	}
	d, err := h.disconnects()
	return err == nil && d.Add(own, ss.number) == nil
}

func (h *Hub) watchDisconnects() (*conn.Disconnects, error) {
	d, err := conn.NewDisconnects()
	if err != nil {
		h.opts.Log.Warn("each stream needs two goroutines, since it cannot be told which clients leave", "error", err)
		return nil, err
	}
	h.goroutines.Go(func() {
		if err := d.Run(h.serving, h.open.left, h.open.heard); err != nil {
			h.opts.Log.Error("clients that leave are only noticed when something is sent to them", "error", err)
		}
	})
	return d, nil
}

// Work serves the session for a worker, whose task it may use meanwhile. It reports whether that took a whole slice.
func (ss *session) Work(task *budget.Task) (long bool) {
	defer ss.recover()
	if !ss.taken {
		ss.hub.goroutines.Go(func() { ss.run(GoOn) })
		return false
	}
	ss.out.nonBlocking = true
	*task = budget.Slice()
	ss.task = task
	again := false
	done, outcome := ss.beat()
	if !done {
		again, outcome = ss.turn(ss.hub.serving)
	}
	long = task.Err() != nil
	ss.out.nonBlocking, ss.task = false, nil
	switch {
	case outcome == ClientGone:
		ss.finish(ClientGone)
	case outcome != GoOn:
		ss.hub.goroutines.Go(func() { ss.run(outcome) })
	case again || !ss.park():
		ss.beServed()
	}
	return long
}

// park makes the session idle, without a goroutine.
func (ss *session) park() bool {
	due := ss.nextDue()
	ss.times.set(due)
	if ss.member.group != nil {
		ss.member.due = due
	} else {
		ss.joinGroup(due)
	}
	return ss.Idle()
}

// run serves the session in a goroutine of its own, until it can be parked, or to its end if there
// is a reason for that.
func (ss *session) run(outcome Outcome) {
	defer ss.recover()
	ctx, cancel := context.WithCancel(ss.hub.serving)
	defer cancel()
	for {
		ss.cancel.Store(&cancel)
		if ss.gone.Load() {
			cancel()
		}
		ss.task = budget.NewTask(ctx, ss.hub.opts.Processors, ss.id.QuotaOwner())
		if !outcome.ends() {
			outcome = ss.serve(ctx)
		}
		ss.cancel.Store(nil)
		if outcome.ends() {
			ss.finish(ss.sayGoodbye(outcome))
			return
		}
		ss.task.Rest()
		ss.task = nil
		if ss.wakes = nil; ss.park() {
			return
		}
	}
}

// serve tells what there is to tell, until the session can be parked or there is a reason for it to end.
func (ss *session) serve(ctx context.Context) Outcome {
	if !ss.begun() {
		outcome := ss.begin(ctx)
		ss.endSpan(outcome)
		if outcome != GoOn {
			return outcome
		}
	} else if outcome := ss.flush(); outcome != GoOn { // what a worker had to leave
		return outcome
	}
	for {
		again, outcome := ss.turn(ctx)
		switch {
		case outcome != GoOn:
			return outcome
		case ss.task.Err() != nil:
			return ClientGone
		case again:
		case ss.parks:
			return GoOn
		default:
			ss.sleep()
		}
	}
}

// turn does what is due, and tells a batch of what there is to tell. It reports whether there may
// be more; if not, the session is woken once there is. What is due is not put off, however much
// there is to tell: the token of a client that is always behind ends, too.
func (ss *session) turn(ctx context.Context) (again bool, outcome Outcome) {
	ss.leaveGroup()
	if outcome := ss.due(); outcome != GoOn {
		return false, outcome
	}
	return ss.pump(ctx)
}

// recover ends a session whose serving panicked, and lets the others go on.
func (ss *session) recover() {
	cause := recover()
	if cause == nil {
		return
	}
	ss.logger().Error("panic", "path", ss.path, "error", cause, "stack", string(debug.Stack()))
	ss.out.failed = true // what was sent must not look complete
	ss.finish(endPanic)
}

// finish ends the session. It waits for nobody unless there is an end to be sent.
func (ss *session) finish(end Outcome) {
	ss.End()
	if ss.task != nil {
		ss.task.Rest()
	}
	if ss.times != nil {
		ss.times.stop()
	}
	ss.leavePeers()
	ss.out.to.Close(ss.complete(end))
	ss.hub.workers.Leave(ss.Queue)
	closeAll(ss.sources)
	ss.hub.opts.Permissions.Leave(ss)
	ss.leaveQuota()
	ss.hub.metrics.streams.Dec()
	ss.hub.metrics.ended.WithLabelValues(end.String()).Inc()
	ss.logger().Info("stream ended", "path", ss.path, "user", ss.id.Username, "reason", end.String(),
		"after", time.Since(ss.began).Round(time.Millisecond), "events", ss.out.events, "bytes", ss.out.bytes)
	ss.endSpan(end)
	ss.audit.Ended(end.String(), ss.out.events)
	ss.hub.open.remove(ss)
}

// endSpan ends the span of the stream's request, once the stream has begun or cannot begin.
func (ss *session) endSpan(outcome Outcome) {
	if ss.span == nil {
		return
	}
	ss.span.SetInt("http.response.status_code", http.StatusOK)
	ss.span.SetInt("kubecast.sources", len(ss.sources))
	if outcome.ends() {
		ss.span.Set("kubecast.ended", outcome.String())
	}
	if outcome == Unavailable || outcome == endPanic {
		ss.span.Fail(outcome.String())
	}
	ss.span.End()
	ss.span = nil
}

// auditReads is the sources that are open, as the audit log names them.
func auditReads(sources []Source) (reads []auditrecord.Read) {
	for _, s := range sources {
		if _, waits := s.(*beginning); !waits {
			reads = append(reads, s.AuditRead())
		}
	}
	return reads
}
