package eventstream

import (
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/internal/http/access"
)

// permission is what a stream knows of what its caller may see. It is asked for again when the authorizer says that
// something has changed. It is also asked for from time to time, since not every change is announced. An authorizer may
// take its time, so the stream goes on meanwhile. sharedPermission does the asking.
type permission struct {
	stop    func()                           // ends the notifications of changes
	changed atomic.Bool                      // permissions may have changed before there was a sharedPermission
	shared  atomic.Pointer[sharedPermission] // nil before the stream has begun
	answer  atomic.Pointer[permissionAnswer] // the newest answer that is meant for this session
	// asked is when the stream's permission was first asked for. A later answer counts only if it was asked for after
	// that.
	asked time.Time
	// confirmed is when the newest answer for all sources that the stream was told of had been asked for.
	confirmed time.Time

	// Guarded by permissions.mu.
	index int  // its index in sharedPermission.streams
	owed  bool // no answer has come since the stream joined the sharedPermission
}

type permissionAnswer struct {
	asked     time.Time
	confirmed time.Time       // when all sources were last confirmed
	revoked   bool            // what the caller signed in with counts no more, or they may see nothing of some source
	ended     bool            // what was permitted counts no more, since it could not be confirmed for too long
	visible   []visibleAnswer // by source
	err       error           // why the answer for at least one source is not known, although that source's cluster can be reached
}

type visibleAnswer struct {
	known   bool
	visible *access.Visibility
}

const (
	// answerWithin is how long one question may take at least.
	answerWithin = 10 * time.Second
	// askAgain is how soon a stream asks again if permissions change all the time.
	askAgain = 100 * time.Millisecond
)

// follow subscribes to changes of the caller's permissions. It comes before the first question, so that no change is
// missed.
func (ss *session) follow() {
	p := &ss.permission
	p.asked = time.Now()
	p.confirmed = p.asked
	p.stop = ss.hub.opts.Authorizer.Changes(ss.id, func() {
		p.changed.Store(true)
		if shared := p.shared.Load(); shared != nil {
			shared.askSoon()
		}
	})
}

// checkPermission takes the answer, if there is one.
func (ss *session) checkPermission() Outcome {
	if answer := ss.permission.answer.Swap(nil); answer != nil {
		return ss.judge(answer)
	}
	return GoOn
}

// judge takes an answer, for which the stream may have to end.
func (ss *session) judge(answer *permissionAnswer) Outcome {
	if answer.revoked {
		return endRevoked
	}
	for i, s := range ss.sources {
		if a := answer.visible[i]; a.known {
			s.Permit(a.visible)
		}
	}
	if answer.confirmed.After(ss.permission.confirmed) {
		ss.permission.confirmed = answer.confirmed
	}
	if answer.err == nil {
		return GoOn
	}
	ss.logger().Warn("a stream's permission could not be checked", "path", ss.path, "error", answer.err)
	if answer.ended || time.Since(ss.permission.confirmed) >= access.UnconfirmedFor {
		ss.unconfirmed = true
		return Unavailable
	}
	return GoOn
}
