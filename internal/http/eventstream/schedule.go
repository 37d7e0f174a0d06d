package eventstream

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/kubecast/kubecast/internal/http/scheduler"
)

// schedule says when something is due on a stream. Each time is spread, so that streams that began together do not act
// together. All times are read on the monotonic clock, so nothing is late because the wall clock was set.
type schedule struct {
	alarm    *scheduler.Alarm
	entry    scheduler.AlarmEntry
	due      [tasks]time.Time // zero: never
	first    time.Time        // the first of the due times; zero: it has to be looked for
	interval time.Duration    // of heartbeats
	bookmark time.Duration    // likewise, of bookmarks
	ends     time.Time        // when the caller's token ends, by the wall clock; zero: never
	draining bool             // the stream knows that the server is draining
	moving   bool             // likewise, that it is to end before its time
}

// What can be due.
const (
	dueHeartbeat = iota
	dueBookmark
	dueExpiring
	dueExpiry
	dueAge
	dueDrain
	dueBegin // by when one of the sources must have begun; see await
	tasks
)

const (
	bookmarkEvery = 55 * time.Second // docs/wire.md, rule 6: at least every 60 s
	// expiringAhead is how long before its end the end of the caller's token is announced. For a
	// token that has little time left from the start, it is a third of that time. If such a client
	// were told at once, it would renew its token, and be told at once again.
	expiringAhead = time.Minute
)

func newSchedule(ss *session) *schedule {
	opts := ss.hub.opts.Times
	s := &schedule{alarm: ss.hub.alarm, entry: scheduler.AlarmEntry{Wake: ss.Wake}, interval: opts.Heartbeat}
	if ss.heartbeat > 0 {
		s.interval = ss.heartbeat
	}
	s.about(dueHeartbeat, scheduler.Between(s.interval/2, s.interval))
	s.bookmark = cmp.Or(ss.bookmark, bookmarkEvery)
	s.about(dueBookmark, scheduler.Between(s.bookmark/2, s.bookmark))
	s.in(dueAge, scheduler.Between(opts.MaxAge*8/10, opts.MaxAge))
	if ss.age > 0 && ss.age < opts.MaxAge {
		s.in(dueAge, ss.age)
	}
	if s.ends = ss.id.ExpiresAt; !s.ends.IsZero() {
		left := time.Until(s.ends)
		s.in(dueExpiry, left)
		s.in(dueExpiring, left-min(expiringAhead, left/3))
	}
	s.set(s.next())
	return s
}

// in puts a task on the schedule for a time.
func (s *schedule) in(task int, after time.Duration) { s.at(task, time.Now().Add(after)) }

// about does the same for a task that may be done a little earlier, together with those of other streams.
func (s *schedule) about(task int, after time.Duration) { s.at(task, s.alarm.Gathered(after)) }

func (s *schedule) at(task int, at time.Time) { s.due[task], s.first = at, time.Time{} }

// next is when the first task is due. It is asked for with each event, and seldom changes.
func (s *schedule) next() time.Time {
	if s.first.IsZero() {
		for _, t := range s.due {
			if !t.IsZero() && (s.first.IsZero() || t.Before(s.first)) {
				s.first = t
			}
		}
	}
	return s.first
}

// take reports whether a task is due, and takes it off the schedule if so.
func (s *schedule) take(task int, now time.Time) bool {
	t := s.due[task]
	if t.IsZero() || t.After(now) {
		return false
	}
	s.at(task, time.Time{})
	return true
}

// set makes the alarm ring at a time.
func (s *schedule) set(at time.Time) { s.alarm.Keep(&s.entry, at) }

// stop makes sure that the alarm rings no more.
func (s *schedule) stop() { s.alarm.Remove(&s.entry) }

// isDueAlone reports whether a task is due, and nothing else could end the session's turn otherwise than that task does.
func (ss *session) isDueAlone(task int, now time.Time) bool {
	times := ss.times
	if times.due[task].IsZero() || times.due[task].After(now) {
		return false
	}
	for other, at := range times.due {
		if other != task && !at.IsZero() && !at.After(now) {
			return false
		}
	}
	for _, due := range ss.dues {
		if !due.IsZero() && !due.After(now) {
			return false
		}
	}
	return !ss.gone.Load() && !ss.revoked.Load() && !ss.permission.HasAnswer() && ss.hub.draining.Err() == nil && ss.moves.Load() == 0
}

// nextDue is when the session is to be woken at the latest.
func (ss *session) nextDue() time.Time {
	next := ss.times.next()
	for _, due := range ss.dues {
		if !due.IsZero() && due.Before(next) {
			next = due
		}
	}
	return next
}

// due does what is due now, for which the stream may have to end. It does not wait. What it collects is sent together
// with what the sources have.
func (ss *session) due() Outcome {
	if ss.gone.Load() {
		return ClientGone
	}
	if ss.revoked.Load() {
		return endRevoked
	}
	if outcome := ss.checkPermission(); outcome != GoOn {
		return outcome
	}
	if !ss.times.draining && ss.hub.draining.Err() != nil {
		ss.times.draining = true
		ss.times.in(dueDrain, rand.N(max(ss.hub.opts.Drain*8/10, time.Millisecond)))
	}
	if !ss.times.moving && ss.moves.Load() > 0 {
		ss.times.moving = true
		ss.times.in(dueAge, min(time.Duration(ss.moves.Load()), time.Until(ss.times.due[dueAge])))
	}
	now := time.Now()
	if now.Before(ss.times.next()) {
		return GoOn
	}
	return ss.onTime(now)
}

// onTime does what is due by time. Tasks that end the stream come first.
func (ss *session) onTime(now time.Time) Outcome {
	times := ss.times
	switch {
	case times.take(dueExpiry, now), !times.ends.IsZero() && !now.Round(0).Before(times.ends): // a machine's monotonic clock stands still while the machine sleeps
		return endExpired
	case times.take(dueDrain, now):
		return endDrain
	case times.take(dueAge, now):
		return endAge
	}
	if times.take(dueExpiring, now) {
		ss.emit(Event{Name: "expiring", Data: quote("at", ss.id.ExpiresAt.UTC().Format(time.RFC3339))})
	}
	if times.take(dueBookmark, now) {
		times.about(dueBookmark, scheduler.Between(times.bookmark*8/10, times.bookmark))
		ss.bookmarkDue = true
	}
	if times.take(dueHeartbeat, now) {
		// Events put the heartbeat off, unless that would make little difference.
		if last := ss.out.sentAt; now.Sub(last) < times.interval/2 {
			times.about(dueHeartbeat, times.interval-now.Sub(last))
		} else {
			times.about(dueHeartbeat, times.interval)
			ss.emit(Event{Kind: kindHeartbeat})
		}
	}
	return GoOn
}
