package objectstream

import (
	"context"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

var batches = sync.Pool{New: func() any { return new([eventstream.BatchSize]*cache.Event) }}

func (w *watch) Read(_ context.Context, to eventstream.Sink) eventstream.ReadResult {
	p := w.read(to)
	p.Claim = w.claim()
	if w.held != nil {
		p.Due = w.held.Next()
	}
	return p
}

func (w *watch) read(to eventstream.Sink) eventstream.ReadResult {
	if !w.begun {
		w.begun = true
		w.introduce(to)
	}
	switch {
	case w.cursor != nil && !w.outdated:
		return w.follow(to)
	case to.NonBlocking(): // the state may be long
		return eventstream.ReadResult{More: true, Outcome: eventstream.WouldBlock}
	case w.cursor == nil:
		return w.state(to)
	}
	return w.changeVisibility(to)
}

// introduce tells the client what its caller may see, if that is not everything, or was not when the client's position
// was made.
func (w *watch) introduce(to eventstream.Sink) {
	switch {
	case w.Visible != nil:
		w.emitVisible(to, "narrowed", w.Visible)
	case w.from.Claim.Visibility != "":
		w.emitVisible(to, "widened", nil)
	}
	w.from = eventstream.From{}
}

// state tells the current state. The watch then goes on from there.
func (w *watch) state(to eventstream.Sink) eventstream.ReadResult {
	snapshot := w.first()
	w.adopt()
	switch {
	case w.announced.Same(w.Visible):
	case w.Visible.Covers(w.announced):
		w.emitVisible(to, "widened", w.Visible)
	default:
		w.emitVisible(to, "narrowed", w.Visible)
	}
	to.Outgrowing(func() bool { return w.Store.Outgrown(snapshot) })
	defer to.Outgrowing(nil)
	count := 0
	for o := range w.objects(snapshot, to.Step) {
		if w.view.IsPart() && !to.Step(o.Size()) {
			break
		}
		to.Emit(w.change(stream.Added, o), w.claim())
		count++
		if outcome := to.Relay(); outcome != eventstream.GoOn {
			return eventstream.ReadResult{More: true, Outcome: outcome}
		}
		if w.outdated { // some of what was just told may not be seen any more
			return w.miss(eventstream.ResetEpoch)
		}
	}
	if !to.Step(0) {
		return eventstream.ReadResult{More: true, Outcome: eventstream.ClientGone}
	}
	w.begin(w.Store.Topic().From(snapshot.Head, w.visibleTarget().Namespaces()), snapshot.Head.Known())
	to.Emit(eventstream.Event{Kind: eventstream.KindSynced, Prefix: w.prefix, Version: w.known.All, Count: count}, w.claim())
	return eventstream.ReadResult{More: true}
}

// follow tells one batch of what has happened since.
func (w *watch) follow(to eventstream.Sink) (p eventstream.ReadResult) {
	p.More = true
	// This is looked up before the ring is read: what was appended before the kind ended is then in the ring.
	gone := w.Store.Err() != nil
	if p.Outcome = w.release(to, time.Now()); p.Outcome != eventstream.GoOn || w.outdated {
		return p
	}
	space := batches.Get().(*[eventstream.BatchSize]*cache.Event)
	defer batches.Put(space)
	before := w.Store.Upstream()
	batch, position, err := w.cursor.Next(space[:0], to)
	defer clear(batch)        // the pool must not keep objects alive
	now := w.Store.Upstream() // only now, since from here on a change wakes the session
	if !now.Live {
		w.freshness.Tell(to, w.prefix, now, w.claim)
	}
	if err != nil {
		if to.NonBlocking() { // a snapshot has to follow, and may be long
			p.Outcome = eventstream.WouldBlock
			return p
		}
		return w.miss(resetReason(err))
	}
	if w.relistEnds && w.cursor.MeetsRelist() { // the batch may have it
		to.Emit(eventstream.Event{Kind: eventstream.KindReset, Name: resetRelist}, w.claim())
		p.Outcome = eventstream.AfterError
		return p
	}
	for i, event := range batch {
		if i > 0 && !to.Step(w.cost(batch[i-1])) {
			w.cursor.Back(batch[i:])
			return p
		}
		if !w.Visible.Sees(event.Object) {
			continue
		}
		kind, object, concerns := event.For(w.match)
		if !concerns {
			continue
		}
		if p.At.IsZero() {
			p.At = event.At // zero for events that were caught up from the API server
		}
		w.emit(to, event, kind, object)
		if p.Outcome = to.Relay(); p.Outcome != eventstream.GoOn || w.outdated {
			w.cursor.Back(batch[i+1:])
			return p
		}
	}
	if w.passes(position) {
		// Only now may the client claim what it was told last. Without a bookmark it would be told a relist again.
		w.Bookmark(to)
	}
	if p.More = len(batch) == cap(batch); !p.More && now.Live && w.freshness.IsStale() {
		// All that was there when the watch became live is told, if it was live before the ring was read.
		if p.More = !before.Live; !p.More {
			if p.Outcome = w.releaseAll(to); p.Outcome != eventstream.GoOn || w.outdated {
				return p
			}
			w.freshness.Tell(to, w.prefix, now, w.claim)
		}
	}
	if p.More || !gone {
		// The kind may have ended before the cursor was armed. Then the end woke nobody.
		p.More = p.More || w.Store.Err() != nil
		return p
	}
	if p.Outcome = w.releaseAll(to); p.Outcome == eventstream.GoOn && !w.outdated {
		p.Outcome = eventstream.Gone // everything that was known has been told
	}
	return p
}

// emit tells an event as it concerns this client (see stream.Event.For), or holds it back if modifications are
// conflated.
func (w *watch) emit(to eventstream.Sink, event *cache.Event, kind stream.Type, object *cluster.Object) {
	if kind != stream.Modified {
		if w.held != nil {
			w.held.Drop(object)
		}
		w.advance(event, true)
		e := w.change(kind, object)
		e.Cause = event
		to.Emit(e, w.claim())
		return
	}
	base := w.base(event)
	now := w.held == nil || w.held.Offer(event, base, time.Now())
	w.advance(event, now)
	if now {
		to.Emit(w.modified(event, base), w.claim())
	}
}

type held = stream.Held[*cluster.Object]

// release tells the modifications that were held back and whose time has come.
func (w *watch) release(to eventstream.Sink, now time.Time) eventstream.Outcome {
	if w.held == nil {
		return eventstream.GoOn
	}
	return w.emitHeld(to, func() *held { return w.held.Due(now) })
}

// releaseAll tells all modifications that were held back.
func (w *watch) releaseAll(to eventstream.Sink) eventstream.Outcome {
	if w.held == nil {
		return eventstream.GoOn
	}
	return w.emitHeld(to, func() *held { return w.held.Early(time.Now()) })
}

func (w *watch) emitHeld(to eventstream.Sink, next func() *held) eventstream.Outcome {
	for h := next(); h != nil; h = next() {
		w.advance(h.Event, true)
		to.Emit(w.modified(h.Event, h.Base), w.claim())
		if outcome := to.Relay(); outcome != eventstream.GoOn || w.outdated {
			return outcome
		}
	}
	return eventstream.GoOn
}

func (w *watch) change(kind stream.Type, o *cluster.Object) eventstream.Event {
	return eventstream.Event{Kind: eventstream.KindChange, Prefix: w.prefix, Change: kind, Object: o, View: &w.view}
}

func (w *watch) modified(event *cache.Event, base *cluster.Object) eventstream.Event {
	e := w.change(stream.Modified, event.Object)
	e.Cause, e.Base = event, base
	return e
}

// miss gives up the watch's cursor, because the client has missed something.
func (w *watch) miss(reason string) eventstream.ReadResult {
	w.end()
	return eventstream.ReadResult{More: true, Missed: reason}
}

// emitVisible tells what the watch's caller may see.
func (w *watch) emitVisible(to eventstream.Sink, name string, now *visibility.Visibility) {
	w.announced = now
	to.Emit(eventstream.Event{Prefix: w.prefix, Name: name, Data: reply.MustJSON(now.Summary())}, w.claim())
}
