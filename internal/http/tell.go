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

// patched is the data of an event of that name; "" if the object is better told whole. Those who had the same and want the
// same have it made once.
func (ss *session) patched(w *watch, event *cache.Event, base *cluster.Object) string {
	variant := "patch"
	if base != event.Old { // some were conflated
		variant += " " + base.GetResourceVersion()
	}
	if w.fields != nil {
		variant += " " + w.fields.variant
	}
	return ss.made(event.Object, variant, func() string {
		patch := mergePatch(w.fields.of(base.JSON()), w.fields.of(event.Object.JSON()))
		if patch == "" {
			return ""
		}
		return `{"uid":` + strconv.Quote(event.Object.UID()) + `,"resourceVersion":"` + event.Object.GetResourceVersion() +
			`","patch":` + patch + `}`
	})
}
