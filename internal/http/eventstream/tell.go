package eventstream

import (
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/render"
	"github.com/kubecast/kubecast/internal/stream"
)

// tell collects an event in the form that the watch's client asked for, or holds it back if it is to be conflated.
func (ss *session) tell(w *watch, event *cache.Event, kind stream.Type, object *cluster.Object) {
	if kind != stream.Modified {
		if w.held != nil {
			w.held.Settle(object)
		}
		w.reaches(event, true)
		ss.dialect.change(ss, w, event, kind, object)
		return
	}
	base := w.base(event)
	tell := w.held == nil || w.held.Offer(event, base, time.Now())
	w.reaches(event, tell)
	if tell {
		ss.dialect.modified(ss, w, event, base)
	}
}

// ever is later than anything that is held back is due.
var ever = time.Unix(1<<40, 0)

// tellHeld collects the modifications that were held back and are due by a time. It returns a reason if the stream has to
// end.
func (ss *session) tellHeld(w *watch, by time.Time) (reason string) {
	if w.held == nil {
		return ""
	}
	for h := w.held.Due(by); h != nil; h = w.held.Due(by) {
		w.reaches(h.Event, true)
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
	if event.Object.UID() == "" {
		return "" // the patch would not say of what it is
	}
	variant := "patch"
	if base != event.Old { // some were conflated
		variant += " " + base.GetResourceVersion()
	}
	if w.fields != nil {
		variant += " " + w.fields.Variant
	}
	return ss.made(event.Object, variant, func() string {
		o := event.Object
		return render.Patched(w.fields, o.UID(), o.GetResourceVersion(), base.JSON(), o.JSON())
	})
}
