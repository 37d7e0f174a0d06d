package http

import (
	"strconv"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// tell collects an event in the form that the watch's client asked for, or holds it back if it is to be conflated.
func (ss *session) tell(w *watch, event *cache.Event, kind stream.Type, object *cluster.Object) {
	if kind != stream.Modified {
		if w.held != nil {
			w.held.Settle(object.UID())
		}
		ss.dialect.change(ss, w, event, kind, object)
		return
	}
	if w.held == nil || w.held.Offer(object.UID(), event, time.Now()) {
		ss.dialect.modified(ss, w, event, event.Old)
	}
}

// tellHeld collects the modifications that were held back for long enough. It returns a reason if the stream has to
// end.
func (ss *session) tellHeld(w *watch) (reason string) {
	if w.held == nil {
		return ""
	}
	now := time.Now()
	for h := w.held.Due(now); h != nil; h = w.held.Due(now) {
		ss.dialect.modified(ss, w, h.Event, h.Base)
		if ss.out.full() {
			if reason := ss.sendOn(); reason != "" || w.outdated {
				return reason
			}
		}
	}
	return ""
}

// render is an object as the client wants it. What most want of an event's own object is made once for all of them.
func (w *watch) render(event *cache.Event, object *cluster.Object) string {
	if w.fields == nil || object != event.Object {
		return w.fields.of(object.JSON())
	}
	return event.Render(w.fields.variant, func() string { return w.fields.of(object.JSON()) })
}

// patched is the data of an event of that name; "" if the object is better told whole.
func (w *watch) patched(event *cache.Event, base *cluster.Object) string {
	diff := func() string {
		patch := mergePatch(w.fields.of(base.JSON()), w.fields.of(event.Object.JSON()))
		if patch == "" {
			return ""
		}
		return `{"uid":` + strconv.Quote(event.Object.UID()) + `,"resourceVersion":"` + event.Object.GetResourceVersion() +
			`","patch":` + patch + `}`
	}
	if base != event.Old {
		return diff() // of what was conflated for this client alone
	}
	variant := "patch"
	if w.fields != nil {
		variant += " " + w.fields.variant
	}
	return event.Render(variant, diff)
}
