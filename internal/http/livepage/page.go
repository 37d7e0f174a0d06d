package livepage

import (
	"context"
	"slices"
	"strconv"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/livequery"
	"github.com/kubecast/kubecast/internal/stream"
)

// page is the eventstream.Source of what stands on some places of a sorted selection.
type page struct {
	source
	shown           []*cluster.Object // what the client has
	order           []*cluster.Object // what it was told last to stand on the places
	total           int               // likewise, of the selection
	pageSent        bool              // it was told that
	moved           bool              // something entered or left since
	possiblyPartial bool              // the client may have been told a part of what came then, by another replica that has seen more
}

// Find implements eventstream.Source. If nothing of the selection has changed since the client's
// position, the client holds the page, and is told nothing. Else it is told the page anew: nobody
// knows what stood on its places then.
//
// The position is the same within the batch that follows the page. So the client may have been told
// a part of that, by a replica that had seen more than this one has. Then the next change makes
// this the page anew.
func (p *page) Find(ctx context.Context, from eventstream.From) {
	p.from, p.told, p.claim, p.shown, p.pageSent = from, livequery.Ref{}, stream.Claim{}, nil, false
	known := from.Claim.Known
	if from.Reset != "" || !from.Named || from.Claim.Visibility != p.mark(p.Visible) {
		return
	}
	if access.AwaitVersion(ctx, p.in.Store, known.Some) != nil { // another replica had seen more
		return
	}
	p.asked.Refresh()
	if p.asked.Ready(ctx) != nil {
		return // Read finds out why
	}
	view, err := p.asked.Snapshot(nil, nil)
	if err != nil || view.Void() || !unchanged(view, known) {
		return
	}
	p.shown = p.window().Of(view)
	p.order, p.total, p.pageSent, p.possiblyPartial = p.shown, view.Ranking.Len(), true, true
	p.told, p.claim = view.Ref, from.Claim
}

// unchanged reports whether a view is what a client knows that was told one before. Of a version
// that came in parts, the client may have been told the first only, though its position does not
// say so.
func unchanged(view *livequery.Snapshot, known stream.Known) bool {
	changed := view.Changed
	return known.Some <= view.Version && (changed.Version < known.All || changed.Version == known.All && changed.Part == 1)
}

func (p *page) window() livequery.Window { return livequery.Window{Offset: p.offset, Limit: p.limit} }

// change is what became of an object on the page.
type change struct {
	what   stream.Type
	object *cluster.Object
	base   *cluster.Object // of a modified one: as the client has it
}

func (p *page) Read(_ context.Context, to eventstream.Sink) eventstream.ReadResult {
	return p.progress(p.read(to))
}

func (p *page) read(to eventstream.Sink) eventstream.ReadResult {
	window := p.window()
	wanted := &window
	if p.possiblyPartial {
		wanted = nil
	}
	view, outcome := p.look(to, wanted)
	switch {
	case view == nil:
		return eventstream.ReadResult{Outcome: outcome}
	case view.Ref == p.told && !p.anew:
		p.tellLive(to, view)
		return eventstream.ReadResult{}
	}
	shown := window.Of(view)
	to.Step(64 * (len(shown) + len(p.shown)))
	total := view.Ranking.Len()
	if p.possiblyPartial && (p.anew || view.Changed != p.told.Changed || view.Void() != p.told.Void()) {
		p.shown, p.pageSent, p.possiblyPartial = nil, false, false
	}
	var changes []change
	if !slices.Equal(p.shown, shown) {
		changes = difference(p.shown, shown)
	}
	changed := !p.pageSent || p.anew || p.moved || total != p.total || !slices.EqualFunc(p.order, shown, isSame) ||
		slices.ContainsFunc(changes, func(c change) bool { return c.what != stream.Modified })
	for i, c := range changes {
		if !changed && i == len(changes)-1 { // no page ends the batch
			p.claims(view)
		}
		p.tell(to, c, view)
		outcome := to.Relay()
		if outcome != eventstream.GoOn || p.Outdated() || !to.Step(c.object.Size()) {
			p.shown = apply(p.shown, changes[:i+1])
			p.moved = changed
			return eventstream.ReadResult{More: true, At: view.At, Outcome: outcome}
		}
	}
	p.shown, p.moved = shown, false
	p.complete(view, changed || len(changes) > 0)
	if changed {
		p.order, p.total, p.pageSent = shown, total, true
		p.emit(to, "page", p.pageData(view))
	}
	p.tellLive(to, view)
	if changed || len(changes) > 0 {
		return eventstream.ReadResult{More: p.last, At: view.At, Outcome: to.Relay()}
	}
	return eventstream.ReadResult{}
}

// tell tells the client of a change.
func (p *page) tell(to eventstream.Sink, c change, view *livequery.Snapshot) {
	if c.what != stream.Deleted {
		to.Emit(eventstream.Event{
			Kind: eventstream.KindChange, Prefix: p.prefix, Change: c.what, Object: c.object, Base: c.base, View: &p.view,
		}, p.claim)
		return
	}
	lost := eventstream.LostObjectOf(p.in.Store.Kind(), c.object, view.Version)
	if p.isSelected(c.object, view) {
		lost.Reason = "moved"
	}
	p.emit(to, stream.Deleted.String(), reply.MustJSON(lost))
}

// isSelected reports whether an object that has left the page is still selected. If the view cannot say so, the store says what
// is so now.
func (p *page) isSelected(o *cluster.Object, view *livequery.Snapshot) bool {
	if left, ok := view.Left(o, p.told); ok {
		return !left
	}
	still := p.in.Store.Snapshot().Get(o.GetNamespace(), o.GetName())
	return still != nil && isSame(still, o) && p.asked.Selects(still)
}

// pageData is the data of the event page.
func (p *page) pageData(view *livequery.Snapshot) string {
	places := struct {
		UIDs            []string `json:"uids"`
		Offset          int      `json:"offset"`
		Total           int      `json:"total"`
		ResourceVersion string   `json:"resourceVersion"`
	}{make([]string, len(p.order)), p.offset, p.total, strconv.FormatUint(view.Version, 10)}
	for i, o := range p.order {
		if places.UIDs[i] = o.UID(); places.UIDs[i] == "" { // some aggregated API servers give none
			places.UIDs[i] = o.Key()
		}
	}
	return reply.MustJSON(places)
}

// isSame reports whether two states are of one object.
func isSame(a, b *cluster.Object) bool {
	return a == b || a.UID() == b.UID() && a.GetName() == b.GetName() && a.GetNamespace() == b.GetNamespace()
}

// difference is what leads from what a client has to what it is to have: first what leaves, then the rest in order.
func difference(from, to []*cluster.Object) (changes []change) {
	if slices.EqualFunc(from, to, isSame) { // most changes move nothing
		for i, o := range to {
			if old := from[i]; old != o && old.JSON() != o.JSON() {
				changes = append(changes, change{what: stream.Modified, object: o, base: old})
			}
		}
		return changes
	}
	stays := make(map[cluster.ObjectIdentity]bool, len(to))
	for _, o := range to {
		stays[o.Identity()] = true
	}
	had := make(map[cluster.ObjectIdentity]*cluster.Object, len(from))
	for _, o := range from {
		if id := o.Identity(); stays[id] {
			had[id] = o
		} else {
			changes = append(changes, change{what: stream.Deleted, object: o})
		}
	}
	for _, o := range to {
		switch old := had[o.Identity()]; {
		case old == nil:
			changes = append(changes, change{what: stream.Added, object: o})
		case old != o && old.JSON() != o.JSON():
			changes = append(changes, change{what: stream.Modified, object: o, base: old})
		}
	}
	return changes
}

// apply is what a client has that was told some changes.
func apply(shown []*cluster.Object, changes []change) []*cluster.Object {
	has := make(map[cluster.ObjectIdentity]*cluster.Object, len(changes))
	for _, c := range changes {
		if has[c.object.Identity()] = c.object; c.what == stream.Deleted {
			has[c.object.Identity()] = nil
		}
	}
	var now []*cluster.Object
	for _, o := range shown {
		id := o.Identity()
		changed, is := has[id]
		if delete(has, id); !is {
			changed = o
		}
		if changed != nil {
			now = append(now, changed)
		}
	}
	for _, o := range has {
		if o != nil {
			now = append(now, o)
		}
	}
	return now
}
