package table

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
)

// eventFields are the paths of an event's members. They differ between the two groups that serve events.
type eventFields struct{ object, message, component, host, controller, first, last, count string }

var (
	coreEvent = eventFields{
		object: "involvedObject", message: "message", component: "source.component", host: "source.host",
		controller: "reportingComponent", first: "firstTimestamp", last: "lastTimestamp", count: "count",
	}
	newEvent = eventFields{
		object: "regarding", message: "note", component: "deprecatedSource.component", host: "deprecatedSource.host",
		controller: "reportingController", first: "deprecatedFirstTimestamp", last: "deprecatedLastTimestamp", count: "deprecatedCount",
	}
)

func printEvent(f eventFields) func(r *row, o *cluster.Object) {
	return func(r *row, o *cluster.Object) {
		e := gjson.Parse(o.JSON())
		begun := moment(e.Get(f.first))
		if begun.IsZero() {
			begun = moment(e.Get("eventTime"))
		}
		seen := moment(e.Get(f.last))
		if seen.IsZero() {
			seen = begun
		}
		count := e.Get(f.count).Int()
		if series := e.Get("series"); isSet(series) {
			seen, count = moment(series.Get("lastObservedTime")), series.Get("count").Int()
		} else if count == 0 {
			count = 1
		}
		object := e.Get(f.object)
		about := strings.ToLower(object.Get("kind").Str)
		if name := object.Get("name").Str; name != "" {
			about += "/" + name
		}
		source := or(e.Get(f.component).Str, e.Get(f.controller).Str)
		if host := or(e.Get(f.host).Str, e.Get("reportingInstance").Str); host != "" {
			source += ", " + host
		}
		r.text(r.since(seen))
		r.text(e.Get("type").Str)
		r.text(e.Get("reason").Str)
		r.text(about)
		r.text(object.Get("fieldPath").Str)
		r.text(source)
		r.text(strings.TrimSpace(e.Get(f.message).Str))
		r.text(r.since(begun))
		r.number(count)
		r.name(o)
	}
}
