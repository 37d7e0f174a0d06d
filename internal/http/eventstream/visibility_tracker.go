package eventstream

import (
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// VisibilityTracker knows what the client of a source was told that its caller may see, and whether
// that has changed. A source that can go over from one visibility to another at once embeds it, and
// Source.Permit with it. A watch cannot: it has objects to tell.
type VisibilityTracker struct {
	Visible *visibility.Visibility // what the client was told

	next     *visibility.Visibility // what may be seen, if that is to become another
	outdated bool                   // it is
}

func (t *VisibilityTracker) Permit(visible *visibility.Visibility) {
	t.next, t.outdated = visible, !visible.Same(t.Visible)
}

// Outdated reports whether something else may be seen than the client was told.
func (t *VisibilityTracker) Outdated() bool { return t.outdated }

// Next is what may be seen instead of what the client was told, if it is Outdated.
func (t *VisibilityTracker) Next() *visibility.Visibility { return t.next }

// Adopt goes over to what may be seen now. It returns the event that says so.
func (t *VisibilityTracker) Adopt() (event string) {
	before := t.Visible
	t.Visible, t.next, t.outdated = t.next, nil, false
	if t.Visible.Covers(before) {
		return "widened"
	}
	return "narrowed"
}

// EmitVisible tells the client what may be seen, as an event of a name.
func (t *VisibilityTracker) EmitVisible(to Sink, prefix, event string, claim stream.Claim) {
	to.Emit(Event{Prefix: prefix, Name: event, Data: reply.MustJSON(t.Visible.Summary())}, claim)
}
