package eventstream

import (
	"time"

	"github.com/kubecast/kubecast/internal/http/permission"
)

// Permission implements permission.Subscriber.
func (ss *session) Permission() *permission.Subscription { return &ss.permission }

// sharePermission has the session told from now on what its caller may see.
func (ss *session) sharePermission() { ss.hub.opts.Permissions.Join(ss, ss.id, ss.questions()) }

// permitAlso does the same for other questions, because its sources are others. Of what was asked for at a time, no earlier answer
// counts.
func (ss *session) permitAlso(asked time.Time) {
	ss.hub.opts.Permissions.Rejoin(ss, ss.id, ss.questions(), asked)
}

func (ss *session) questions() []permission.Question {
	questions := make([]permission.Question, len(ss.sources))
	for i, s := range ss.sources {
		questions[i] = s.Question()
	}
	return questions
}

// checkPermission takes the answer, if there is one, for which the stream may have to end.
func (ss *session) checkPermission() Outcome {
	answer := ss.permission.Take()
	if answer == nil {
		return GoOn
	}
	verdict := ss.permission.Judge(answer)
	if verdict == permission.Revoked {
		return endRevoked
	}
	for i, s := range ss.sources {
		if visible, known := answer.Visible(i); known {
			s.Permit(visible)
		}
	}
	if err := answer.Err(); err != nil {
		ss.logger().Warn("a stream's permission could not be checked", "path", ss.path, "error", err)
	}
	if verdict == permission.Unknown {
		ss.unconfirmed = true
		return Unavailable
	}
	return GoOn
}

// endRevoked ends the streams of callers who were revoked.
func (h *Hub) endRevoked() {
	for _, ss := range h.open.all() {
		ss.checkRevoked()
	}
}

// checkRevoked makes the session end if its caller was revoked. It may be called by any goroutine, at any time.
func (ss *session) checkRevoked() {
	if ss.hub.opts.Permissions.Revoked(ss.id) != nil {
		ss.revoked.Store(true)
		ss.Wake()
	}
}
