package eventstream

import (
	"context"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/stream"
)

// shiftingSight names, in positions, a watch whose client is being told that its sight has changed. It is nobody's: whoever
// comes back with it has been told of a part of that, and is sent the state anew.
const shiftingSight = "x"

// tellSight says what the watch's caller may see.
func (ss *session) tellSight(w *watch, name string, now *access.Visibility) {
	w.told = now
	ss.dialect.sight(ss, w, name, now)
}

// adopt lets a watch that is about to begin anew show what its caller may see now.
func (w *watch) adopt() {
	if w.outdated {
		w.Visible, w.resight, w.outdated = w.resight, nil, false
	}
}

// shift brings a watch's client from what its caller might see to what he may see now, at one version: what he still sees
// and has happened is told, then what he sees no more as deleted, and what he sees from now on as added. It returns a
// reason if the stream has to end.
func (ss *session) shift(ctx context.Context, w *watch) (stop string) {
	if stop := ss.dialect.shift(ss); stop != "" {
		return stop
	}
	s := shift{session: ss, watch: w, next: w.resight, snapshot: w.Store.Snapshot()}
	events, err := w.cursor.Until(s.snapshot.Head)
	switch {
	case err != nil:
		return ss.restart(ctx, w, resetReason(err))
	case w.claim().Some > s.snapshot.Version(): // told by another replica, which had seen more
		return ss.restart(ctx, w, resetEpoch)
	}
	s.events, w.shifting = events, true
	ss.out.outgrown = func() bool { return w.Store.Outgrown(s.snapshot) }
	defer func() { ss.out.outgrown = nil }()
	for _, tell := range []func() string{s.tellHeld, s.tellSeen, s.tellLost, s.tellNew} {
		if stop := tell(); stop != "" {
			return stop
		}
		if s.overtaken() {
			return ss.restart(ctx, w, resetEpoch)
		}
	}
	w.adopt()
	w.begin(w.Store.Topic().From(s.snapshot.Head, w.part().Scope()), s.snapshot.Head.Known())
	ss.dialect.bookmark(ss, w)
	return ""
}

// shift is the way from one sight to the next.
type shift struct {
	*session
	watch    *watch
	next     *access.Visibility
	events   []*cache.Event // up to the snapshot, that the client has not been told
	snapshot *cache.Snapshot
}

// overtaken reports whether permissions have changed again.
func (s *shift) overtaken() bool { return !s.watch.outdated || !s.watch.resight.Same(s.next) }

// goOn flushes if there is much, and reports whether to go on.
func (s *shift) goOn() (stop string, on bool) {
	if !s.out.full() {
		return "", true
	}
	stop = s.sendOn()
	return stop, stop == "" && !s.overtaken()
}

// tellHeld tells the modifications that were held back.
func (s *shift) tellHeld() (stop string) {
	w := s.watch
	if w.held == nil {
		return ""
	}
	for h := w.held.Due(ever); h != nil; h = w.held.Due(ever) {
		if !s.next.Sees(h.Event.Object) {
			continue
		}
		s.dialect.modified(s.session, w, h.Event, h.Base)
		if stop, on := s.goOn(); !on {
			return stop
		}
	}
	return ""
}

// tellSeen tells what has happened to what was seen and still is.
func (s *shift) tellSeen() (stop string) {
	w := s.watch
	for _, event := range s.events {
		if !w.Visible.Sees(event.Object) || !s.next.Sees(event.Object) {
			continue
		}
		switch kind, object, tell := event.For(w.match); {
		case !tell:
			continue
		case kind == stream.Modified:
			s.dialect.modified(s.session, w, event, w.base(event))
		default:
			s.dialect.change(s.session, w, event, kind, object)
		}
		if stop, on := s.goOn(); !on {
			return stop
		}
	}
	return ""
}

// tellLost tells that what is seen no more is deleted: who it is and no more, and only of what the client knows.
func (s *shift) tellLost() (stop string) {
	w := s.watch
	if s.next.Covers(w.Visible) {
		return ""
	}
	s.tellSight(w, "narrowed", s.next)
	lost := s.lost()
	if s.task.Err() != nil {
		return endLeft
	}
	for _, o := range lost {
		s.dialect.lost(s.session, w, o, s.snapshot.Version())
		if stop, on := s.goOn(); !on {
			return stop
		}
	}
	return ""
}

// lost is what the client knows and may not see any more. What came after what it was told, it does not know.
func (s *shift) lost() []*cluster.Object {
	w := s.watch
	var lost []*cluster.Object
	since := map[string]bool{} // keys of what has changed since
	for _, event := range s.events {
		o := event.Object
		if !w.inScope(o) || !w.Visible.Sees(o) || s.next.Sees(o) || since[o.Key()] {
			continue
		}
		since[o.Key()] = true
		again := event.Pos <= w.known.Some // may have been told
		switch {
		case event.Type == stream.Added && !again:
		case event.Old == nil || w.match == nil || w.match(event.Old):
			lost = append(lost, o)
		}
	}
	for o := range w.objects(s.snapshot, s.task.Step) {
		if !s.next.Sees(o) && !since[o.Key()] {
			lost = append(lost, o)
		}
	}
	return lost
}

// tellNew tells what was not seen before.
func (s *shift) tellNew() (stop string) {
	w := s.watch
	if w.Visible.Covers(s.next) {
		return ""
	}
	s.tellSight(w, "widened", s.next)
	for o := range (access.Part{Target: w.target, Visible: s.next}).List(s.snapshot, w.selector.Stepping(s.task.Step), "", "") {
		if w.Visible.Sees(o) {
			continue
		}
		s.dialect.state(s.session, w, o)
		if stop, on := s.goOn(); !on {
			return stop
		}
	}
	if s.task.Err() != nil {
		return endLeft
	}
	return ""
}
