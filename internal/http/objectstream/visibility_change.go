package objectstream

import (
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// changingVisibility stands in positions for the visibility of a watch whose client is just being told that its
// visibility has changed. No watch has this name. So a client that comes back with it, and has been told a part of the
// change, gets the whole state.
const changingVisibility = "x"

// adopt makes a watch that is about to begin anew show what its caller may see now.
func (w *watch) adopt() {
	if w.outdated {
		w.Visible, w.permitted, w.outdated = w.permitted, nil, false
	}
}

// changeVisibility brings a watch's client from one visibility to another, at one version. First it
// tells what happened to objects that the caller still sees. Then it tells the objects that they
// see no more as deleted, and those that they see from now on as added.
func (w *watch) changeVisibility(to eventstream.Sink) eventstream.ReadResult {
	if w.lists {
		// They find what their caller may see now. Single deletions and additions would not do,
		// since a position in Kubernetes' own form does not say under which permissions it was made.
		to.Emit(eventstream.Event{Kind: eventstream.KindReset, Name: resetPermissions}, w.claim())
		return eventstream.ReadResult{Outcome: eventstream.AfterError}
	}
	c := visibilityChange{to: to, watch: w, next: w.permitted, snapshot: w.Store.Snapshot()}
	events, err := w.cursor.Until(c.snapshot.Head)
	switch {
	case err != nil:
		return w.miss(resetReason(err))
	case w.claim().Some > c.snapshot.Version(): // another replica, which had seen more, told the client
		return w.miss(eventstream.ResetEpoch)
	}
	c.events, w.changing = events, true
	to.Outgrowing(func() bool { return w.Store.Outgrown(c.snapshot) })
	defer to.Outgrowing(nil)
	for _, emit := range []func() eventstream.Outcome{c.emitHeld, c.emitSeen, c.emitLost, c.emitNew} {
		if outcome := emit(); outcome != eventstream.GoOn {
			return eventstream.ReadResult{More: true, Outcome: outcome}
		}
		if c.overtaken() {
			return w.miss(eventstream.ResetEpoch)
		}
	}
	w.adopt()
	w.begin(w.Store.Topic().From(c.snapshot.Head, w.visibleTarget().Namespaces()), c.snapshot.Head.Known())
	w.Bookmark(to)
	return eventstream.ReadResult{More: true}
}

// visibilityChange is the way from one visibility to the next.
type visibilityChange struct {
	to       eventstream.Sink
	watch    *watch
	next     *visibility.Visibility
	events   []*cache.Event // events up to the snapshot that the client has not been told
	snapshot *cache.Snapshot
}

// overtaken reports whether permissions have changed again.
func (c *visibilityChange) overtaken() bool {
	return !c.watch.outdated || !c.watch.permitted.Same(c.next)
}

// emitHeld tells the modifications that were held back.
func (c *visibilityChange) emitHeld() eventstream.Outcome {
	w := c.watch
	if w.held == nil {
		return eventstream.GoOn
	}
	for h := w.held.Early(time.Now()); h != nil; h = w.held.Early(time.Now()) {
		if !c.next.Sees(h.Event.Object) {
			continue
		}
		c.to.Emit(w.modified(h.Event, h.Base), w.claim())
		if outcome := c.to.Relay(); outcome != eventstream.GoOn || c.overtaken() {
			return outcome
		}
	}
	return eventstream.GoOn
}

// emitSeen tells what happened to objects that the caller saw and still sees.
func (c *visibilityChange) emitSeen() eventstream.Outcome {
	w := c.watch
	for _, event := range c.events {
		if !w.Visible.Sees(event.Object) || !c.next.Sees(event.Object) {
			continue
		}
		switch kind, object, concerns := event.For(w.match); {
		case !concerns:
			continue
		case kind == stream.Modified:
			c.to.Emit(w.modified(event, w.base(event)), w.claim())
		default:
			e := w.change(kind, object)
			e.Cause = event
			c.to.Emit(e, w.claim())
		}
		if outcome := c.to.Relay(); outcome != eventstream.GoOn || c.overtaken() {
			return outcome
		}
	}
	return eventstream.GoOn
}

// emitLost tells objects that the caller sees no more as deleted. It tells which objects these are and nothing else of
// them, and only of objects that the client knows.
func (c *visibilityChange) emitLost() eventstream.Outcome {
	w := c.watch
	if c.next.Covers(w.Visible) {
		return eventstream.GoOn
	}
	w.emitVisible(c.to, "narrowed", c.next)
	lost := c.lost()
	if !c.to.Step(0) {
		return eventstream.ClientGone
	}
	for _, o := range lost {
		data := reply.MustJSON(eventstream.LostObjectOf(w.Store.Kind(), o, c.snapshot.Version()))
		c.to.Emit(eventstream.Event{Prefix: w.prefix, Name: stream.Deleted.String(), Data: data}, w.claim())
		if outcome := c.to.Relay(); outcome != eventstream.GoOn || c.overtaken() {
			return outcome
		}
	}
	return eventstream.GoOn
}

// lost are the objects that the client knows and may not see any more. An object that came after what the client was
// told is not among them, since the client does not know it.
func (c *visibilityChange) lost() []*cluster.Object {
	w := c.watch
	var lost []*cluster.Object
	type identity struct{ key, uid string } // of one that was made anew, the client may know either
	identityOf := func(o *cluster.Object) identity { return identity{o.Key(), o.UID()} }
	since := map[identity]bool{} // the objects that have changed since
	for _, event := range c.events {
		o := event.Object
		if !w.inScope(o) || !w.Visible.Sees(o) || c.next.Sees(o) || since[identityOf(o)] {
			continue
		}
		since[identityOf(o)] = true
		again := event.Pos <= w.known.Some // the client may have been told this event
		switch {
		case event.Type == stream.Added && !again:
		case event.Old == nil || w.match == nil || w.match(event.Old):
			lost = append(lost, o)
		}
	}
	for o := range w.objects(c.snapshot, c.to.Step) {
		if !c.next.Sees(o) && !since[identityOf(o)] {
			lost = append(lost, o)
		}
	}
	return lost
}

// emitNew tells objects that the caller did not see before.
func (c *visibilityChange) emitNew() eventstream.Outcome {
	w := c.watch
	if w.Visible.Covers(c.next) {
		return eventstream.GoOn
	}
	w.emitVisible(c.to, "widened", c.next)
	for o := range (visibility.VisibleTarget{Target: w.target, Visible: c.next}).List(c.snapshot, w.selector.Stepping(c.to.Step), "", "") {
		if w.Visible.Sees(o) {
			continue
		}
		c.to.Emit(w.change(stream.Added, o), w.claim())
		if outcome := c.to.Relay(); outcome != eventstream.GoOn || c.overtaken() {
			return outcome
		}
	}
	if !c.to.Step(0) {
		return eventstream.ClientGone
	}
	return eventstream.GoOn
}
