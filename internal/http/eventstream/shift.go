package eventstream

import (
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/stream"
)

// shiftingVisibility stands in positions for the visibility of a watch whose client is just being told that its
// visibility has changed. No watch has this name. So a client that comes back with it, and has been told a part of the
// change, gets the whole state.
const shiftingVisibility = "x"

// adopt makes a watch that is about to begin anew show what its caller may see now.
func (w *watch) adopt() {
	if w.outdated {
		w.Visible, w.permitted, w.outdated = w.permitted, nil, false
	}
}

// shift brings a watch's client from one visibility to another, at one version. First it tells what happened to objects
// that the caller still sees. Then it tells the objects that they see no more as deleted, and those that they see from
// now on as added.
func (w *watch) shift(to Sink) Progress {
	if to.relists() {
		// This form's clients list again, and find what their caller may see now. Single deletions and additions would not
		// do, since a position in this form does not say under which permissions it was made.
		to.emit(message{kind: msgReset, name: resetPermissions})
		return Progress{Outcome: endAfterError}
	}
	s := shift{to: to, watch: w, next: w.permitted, snapshot: w.Store.Snapshot()}
	events, err := w.cursor.Until(s.snapshot.Head)
	switch {
	case err != nil:
		return w.miss(resetReason(err))
	case w.Claim().Some > s.snapshot.Version(): // another replica, which had seen more, told the client
		return w.miss(ResetEpoch)
	}
	s.events, w.shifting = events, true
	to.outgrowing(func() bool { return w.Store.Outgrown(s.snapshot) })
	defer to.outgrowing(nil)
	for _, emit := range []func() Outcome{s.emitHeld, s.emitSeen, s.emitLost, s.emitNew} {
		if outcome := emit(); outcome != GoOn {
			return Progress{More: true, Outcome: outcome}
		}
		if s.overtaken() {
			return w.miss(ResetEpoch)
		}
	}
	w.adopt()
	w.begin(w.Store.Topic().From(s.snapshot.Head, w.part().Scope()), s.snapshot.Head.Known())
	w.Bookmark(to)
	return Progress{More: true}
}

// shift is the way from one visibility to the next.
type shift struct {
	to       Sink
	watch    *watch
	next     *access.Visibility
	events   []*cache.Event // events up to the snapshot that the client has not been told
	snapshot *cache.Snapshot
}

// overtaken reports whether permissions have changed again.
func (s *shift) overtaken() bool { return !s.watch.outdated || !s.watch.permitted.Same(s.next) }

// emitHeld tells the modifications that were held back.
func (s *shift) emitHeld() Outcome {
	w := s.watch
	if w.held == nil {
		return GoOn
	}
	for h := w.held.Early(time.Now()); h != nil; h = w.held.Early(time.Now()) {
		if !s.next.Sees(h.Event.Object) {
			continue
		}
		s.to.emit(w.modified(h.Event, h.Base))
		if outcome := s.to.Relay(); outcome != GoOn || s.overtaken() {
			return outcome
		}
	}
	return GoOn
}

// emitSeen tells what happened to objects that the caller saw and still sees.
func (s *shift) emitSeen() Outcome {
	w := s.watch
	for _, event := range s.events {
		if !w.Visible.Sees(event.Object) || !s.next.Sees(event.Object) {
			continue
		}
		switch kind, object, concerns := event.For(w.match); {
		case !concerns:
			continue
		case kind == stream.Modified:
			s.to.emit(w.modified(event, w.base(event)))
		default:
			m := w.change(kind, object)
			m.event = event
			s.to.emit(m)
		}
		if outcome := s.to.Relay(); outcome != GoOn || s.overtaken() {
			return outcome
		}
	}
	return GoOn
}

// emitLost tells objects that the caller sees no more as deleted. It tells which objects these are and nothing else of
// them, and only of objects that the client knows.
func (s *shift) emitLost() Outcome {
	w := s.watch
	if s.next.Covers(w.Visible) {
		return GoOn
	}
	w.emitVisible(s.to, "narrowed", s.next)
	lost := s.lost()
	if !s.to.Step(0) {
		return endClientGone
	}
	for _, o := range lost {
		s.to.Emit(w.prefix, stream.Deleted.String(), reply.MustJSON(IdentityOf(w.Store.Kind(), o, s.snapshot.Version())))
		if outcome := s.to.Relay(); outcome != GoOn || s.overtaken() {
			return outcome
		}
	}
	return GoOn
}

// lost are the objects that the client knows and may not see any more. An object that came after what the client was
// told is not among them, since the client does not know it.
func (s *shift) lost() []*cluster.Object {
	w := s.watch
	var lost []*cluster.Object
	type identity struct{ key, uid string } // of one that was made anew, the client may know either
	identityOf := func(o *cluster.Object) identity { return identity{o.Key(), o.UID()} }
	since := map[identity]bool{} // the objects that have changed since
	for _, event := range s.events {
		o := event.Object
		if !w.inScope(o) || !w.Visible.Sees(o) || s.next.Sees(o) || since[identityOf(o)] {
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
	for o := range w.objects(s.snapshot, s.to.Step) {
		if !s.next.Sees(o) && !since[identityOf(o)] {
			lost = append(lost, o)
		}
	}
	return lost
}

// emitNew tells objects that the caller did not see before.
func (s *shift) emitNew() Outcome {
	w := s.watch
	if w.Visible.Covers(s.next) {
		return GoOn
	}
	w.emitVisible(s.to, "widened", s.next)
	for o := range (access.Part{Target: w.target, Visible: s.next}).List(s.snapshot, w.selector.Stepping(s.to.Step), "", "") {
		if w.Visible.Sees(o) {
			continue
		}
		s.to.emit(w.change(stream.Added, o))
		if outcome := s.to.Relay(); outcome != GoOn || s.overtaken() {
			return outcome
		}
	}
	if !s.to.Step(0) {
		return endClientGone
	}
	return GoOn
}
