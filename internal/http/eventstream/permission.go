package eventstream

import (
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/internal/http/access"
)

// permission is what a stream knows of what its caller may see. It is asked for again when the stream is told that something
// has changed, and from time to time, since not all changes are told; beside the stream, which goes on meanwhile: an
// authorizer may take its time. See sharedPermission for who asks.
type permission struct {
	stop    func()                           // being told of changes
	changed atomic.Bool                      // before it was shared
	shared  atomic.Pointer[sharedPermission] // nil before the stream has begun
	answer  atomic.Pointer[permissionAnswer] // to the session
	// asked is when it was first; a later answer counts only if it was asked for since.
	asked time.Time
	// confirmed is when it was last asked and answered for all sources, as far as the stream was told.
	confirmed time.Time

	// Guarded by permissions.mu.
	place int  // among those it is shared with
	owed  bool // no answer has come since it is shared
}

type permissionAnswer struct {
	asked     time.Time
	confirmed time.Time       // when all was, the last time
	revoked   bool            // one source at least shows nothing that may be seen
	ended     bool            // nothing counts any more that was permitted: it cannot be confirmed
	visible   []visibleAnswer // by source
	err       error           // why it is not known for one source at least, though that one's events come in
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

// follow begins to follow the permissions of the session's caller. It comes before the first question, so that no change
// is missed.
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

// judge takes an answer. The stream may have to end for it.
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
		return Unavailable
	}
	return GoOn
}
