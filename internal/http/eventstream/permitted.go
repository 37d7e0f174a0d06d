package eventstream

import (
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/reply"
)

// Permitted is what the client of a source was told that its caller may see. A source embeds it, and with it Source.Permit, if it can go
// over from one visibility to another at once. A watch cannot: it has objects to tell.
type Permitted struct {
	Visible *access.Visibility // what the client was told

	next     *access.Visibility // what may be seen, if that is to become another
	outdated bool               // it is
}

// Permit implements Source.
func (p *Permitted) Permit(visible *access.Visibility) {
	p.next, p.outdated = visible, !visible.Same(p.Visible)
}

// Outdated reports whether something else may be seen than the client was told.
func (p *Permitted) Outdated() bool { return p.outdated }

// Next is what may be seen instead of what the client was told, if it is Outdated.
func (p *Permitted) Next() *access.Visibility { return p.next }

// Adopt goes over to what may be seen now. It returns the event that says so.
func (p *Permitted) Adopt() (event string) {
	before := p.Visible
	p.Visible, p.next, p.outdated = p.next, nil, false
	if p.Visible.Covers(before) {
		return "widened"
	}
	return "narrowed"
}

// EmitVisible tells the client what may be seen, as an event of a name.
func (p *Permitted) EmitVisible(to Sink, prefix, event string) {
	to.Emit(prefix, event, reply.MustJSON(p.Visible.Summary()))
}
