package http

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"
)

// schedule says when something is due on a stream that waits. All times share one timer, since ten thousand idle
// streams are mostly what they hold; and each is spread, so that streams which began together do not act together.
type schedule struct {
	timer    *time.Timer
	due      [tasks]time.Time // zero: never
	interval time.Duration    // of heartbeats
	draining <-chan struct{}  // nil once the stream knows
}

// What can be due.
const (
	dueHeartbeat = iota
	dueBookmark
	dueCheck // of the caller's permissions
	dueExpiring
	dueExpiry
	dueAge
	dueDrain
	tasks
)

const (
	bookmarkEvery = 55 * time.Second // the contract says 60
	expiringAhead = time.Minute
)

func newSchedule(ss *session) *schedule {
	opts := ss.server.opts.Stream
	s := &schedule{interval: opts.Heartbeat, draining: ss.server.draining.Done()}
	if ss.request.heartbeat > 0 {
		s.interval = ss.request.heartbeat
	}
	s.in(dueHeartbeat, between(s.interval/2, s.interval))
	s.in(dueBookmark, between(bookmarkEvery/2, bookmarkEvery))
	s.in(dueCheck, between(opts.Reauthorize/2, opts.Reauthorize))
	s.in(dueAge, between(opts.MaxAge*8/10, opts.MaxAge))
	if end := ss.id.ExpiresAt; !end.IsZero() {
		s.due[dueExpiry] = end
		s.due[dueExpiring] = end.Add(-expiringAhead)
	}
	s.timer = time.NewTimer(time.Until(s.next()))
	return s
}

func (s *schedule) in(task int, after time.Duration) { s.due[task] = time.Now().Add(after) }

func (s *schedule) next() (next time.Time) {
	for _, t := range s.due {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	return next
}

// take reports whether a task is due, and takes it off the schedule if so.
func (s *schedule) take(task int, now time.Time) bool {
	t := s.due[task]
	if t.IsZero() || t.After(now) {
		return false
	}
	s.due[task] = time.Time{}
	return true
}

// wait returns when there may be something to read or to send, or with the reason for which the stream ends.
func (ss *session) wait(ctx context.Context, times *schedule) string {
	for _, w := range ss.watches {
		if w.stale == w.store.Upstream().Live || !w.cursor.Arm(ss.waiter) {
			return ""
		}
	}
	next := times.next()
	for _, w := range ss.watches {
		if w.held == nil {
			continue
		}
		if due := w.held.Next(); !due.IsZero() && due.Before(next) {
			next = due
		}
	}
	times.timer.Reset(time.Until(next))
	select {
	case <-ss.waiter.C:
		return ""
	case <-ctx.Done():
		return endGone
	case <-times.draining:
		times.draining = nil
		times.in(dueDrain, rand.N(max(ss.server.opts.Drain*8/10, time.Millisecond)))
		return ""
	case now := <-times.timer.C:
		return ss.onTime(ctx, times, now)
	}
}

// onTime does what is due, or returns the reason to say goodbye with. What ends the stream comes first.
func (ss *session) onTime(ctx context.Context, times *schedule, now time.Time) string {
	opts := ss.server.opts.Stream
	switch {
	case times.take(dueExpiry, now):
		return goodbyeExpired
	case times.take(dueDrain, now):
		return goodbyeDrain
	case times.take(dueAge, now):
		return goodbyeAge
	}
	if times.take(dueCheck, now) {
		times.in(dueCheck, between(opts.Reauthorize*8/10, opts.Reauthorize))
		if !ss.stillAllowed(ctx) {
			return goodbyeRevoked
		}
	}
	if times.take(dueExpiring, now) {
		ss.out.event("", "expiring", ss.knownPosition(), `{"at":`+strconv.Quote(ss.id.ExpiresAt.UTC().Format(time.RFC3339))+`}`)
	}
	if times.take(dueBookmark, now) {
		times.in(dueBookmark, between(bookmarkEvery*8/10, bookmarkEvery))
		ss.bookmarkDue = true
	}
	if times.take(dueHeartbeat, now) {
		// Traffic puts the heartbeat off, so that there is never more silence than the interval.
		silence := now.Sub(ss.out.sentAt)
		if silence >= times.interval {
			ss.out.comment("")
			silence = 0
		}
		times.in(dueHeartbeat, times.interval-silence)
	}
	return "" // what was collected goes out with what the cursors have
}

// stillAllowed asks for the caller's permission again. An authorizer that cannot answer is asked again the next time:
// while the API server is away, permissions do not change there.
func (ss *session) stillAllowed(ctx context.Context) bool {
	for _, w := range ss.watches {
		decision, err := ss.server.opts.Authorizer.Authorize(ctx, ss.id, w.target.request(w.kinds.Cluster().Name(), "watch"))
		if err != nil {
			ss.log.Warn("a stream's permission could not be checked", "path", ss.path, "error", err)
		} else if !decision.Allowed {
			return false
		}
	}
	return true
}
