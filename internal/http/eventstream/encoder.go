package eventstream

import (
	"strconv"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/render"
	"github.com/kubecast/kubecast/internal/stream"
)

// Encoder is the form in which a client is told events: server-sent events, lines of text, or one of a Source's own.
type Encoder interface {
	// Encode appends an event to a buffer. It appends nothing if this form cannot express the event.
	Encode(buf []byte, e Event) []byte
	// Relists reports whether clients list again by themselves when they are told a reset. The
	// stream then ends with it.
	Relists() bool
}

// Event is one thing that a client is told. Which fields count depends on its kind.
type Event struct {
	Kind   EventKind
	Prefix string // of its name: "pods.", or "" where there is only one source

	Name string // of a named one; of a reset and a goodbye, the reason
	Data string // of a named one: JSON on one line

	Version uint64 // of synced and bookmark: up to which everything was told
	Count   int    // of synced: objects

	Change stream.Type
	Object *cluster.Object
	Cause  *cache.Event    // the event that made the change; nil: the object is part of a snapshot
	Base   *cluster.Object // what the client has of a modified object; nil: that is not known
	View   *Projection

	id    []byte        // the client's position behind this event; empty: it does not change
	after time.Duration // of a greeting and a retry: how long a client waits before it connects again
}

// EventKind says what an Event is.
type EventKind uint8

// The kinds of events. A source tells those that are exported; the last three carry no position.
const (
	KindNamed    EventKind = iota // an event with a name, which only server-sent events can express
	KindChange                    // an object as it is now, or as it last was
	KindSynced                    // a snapshot is complete
	KindReset                     // the client missed something
	KindBookmark                  // nothing else happened up to a version
	KindGoodbye                   // the stream ends

	kindGreeting  // what a stream begins with
	kindRetry     // when to connect again
	kindHeartbeat // the connection is still there
)

// isEvent reports whether it counts as an event, and carries the client's position.
func (k EventKind) isEvent() bool { return k < kindGreeting }

// Projection is how much of each object a client wants to be told; see ParseProjection.
type Projection struct {
	// fields is what is wanted of each object; nil: all.
	fields *render.Fields
	// deltas asks for merge patches in place of modified objects.
	deltas bool
}

// Key identifies what is told of objects.
func (v *Projection) Key() string {
	key := ""
	if v.fields != nil {
		key = v.fields.Variant
	}
	if v.deltas {
		key = "deltas " + key
	}
	return key
}

// IsPart reports whether the client wants less than whole objects.
func (v *Projection) IsPart() bool { return v.fields != nil }

// HasDeltas reports whether the client wants merge patches in place of modified objects.
func (v *Projection) HasDeltas() bool { return v.deltas }

// Cost is about how many bytes of an object have to be read to tell a change of it; 0 if it is sent as it is kept.
func (v *Projection) Cost(o *cluster.Object) (bytes int) {
	if v.fields != nil {
		bytes += o.Size()
	}
	if v.deltas {
		bytes += 2 * o.Size() // both the old and the new object are read
	}
	return bytes
}

// ServerSentEvents is the form for browsers. What is rendered for it is charged to a user.
func ServerSentEvents(memory *budget.Memory, quotaOwner string) Encoder {
	return &serverSentEvents{memory: memory, quotaOwner: quotaOwner}
}

// serverSentEvents is the form for browsers (WHATWG HTML, 9.2), with the events of docs/wire.md, "Event streams".
type serverSentEvents struct {
	// Renderings of objects are charged to this memory, and kept for others who want the same.
	// After a restart, thousands of clients want the same renderings of the same objects, and
	// making one costs much more than sending it.
	memory     *budget.Memory
	quotaOwner string
}

func (*serverSentEvents) Relists() bool { return false }

func (s *serverSentEvents) Encode(buf []byte, e Event) []byte {
	switch e.Kind {
	case kindGreeting:
		return appendRetry(append(buf, ": kubecast\n\n"...), e.after)
	case kindRetry:
		return appendRetry(buf, e.after)
	case kindHeartbeat:
		return append(buf, ": \n\n"...)
	case KindChange:
		e.Name, e.Data = s.changed(e)
	case KindSynced:
		e.Name = "synced"
		e.Data = `{"resourceVersion":"` + strconv.FormatUint(e.Version, 10) + `","count":` + strconv.Itoa(e.Count) + `}`
	case KindBookmark:
		e.Name, e.Data = "bookmark", quote("resourceVersion", strconv.FormatUint(e.Version, 10))
	case KindReset:
		e.Name, e.Data = "reset", quote("reason", e.Name)
	case KindGoodbye:
		e.Name, e.Data = "goodbye", quote("reason", e.Name)
	}
	return appendEvent(buf, e.Prefix, e.Name, e.id, e.Data)
}

// changed is the event of a change.
func (s *serverSentEvents) changed(e Event) (name, data string) {
	if e.Change == stream.Modified && e.View.deltas && e.Base != nil {
		if patched := s.patched(e); patched != "" {
			return "patched", patched
		}
	}
	if e.View.fields == nil { // whole objects are sent as they are kept, so nothing has to be rendered
		return e.Change.String(), e.Object.JSON()
	}
	return e.Change.String(), s.made(e.Object, e.View.fields.Variant, func() string { return e.View.fields.Of(e.Object) })
}

// patched is the data of an event of that name; "" if it is better to send the whole object.
func (s *serverSentEvents) patched(e Event) string {
	if e.Object.UID() == "" {
		return "" // the patch would not say which object it is for
	}
	variant := "patch"
	if e.Cause == nil || e.Base != e.Cause.Old { // some were conflated
		// The version alone does not name what the client has: a definition that changes gives its
		// objects other defaults.
		variant += " " + e.Base.GetResourceVersion() + "-" + strconv.FormatUint(uint64(e.Base.Sum()), 36)
	}
	if e.View.fields != nil {
		variant += " " + e.View.fields.Variant
	}
	return s.made(e.Object, variant, func() string {
		return render.Patched(e.View.fields, e.Base, e.Object)
	})
}

// made is a rendering of an object, either made now and charged to this user, or made earlier and found.
func (s *serverSentEvents) made(o *cluster.Object, variant string, make func() string) string {
	return o.Texts().Get(s.memory, s.quotaOwner, variant, make)
}

// appendEvent appends one event. The data must be on one line, as an Object's JSON is. An empty id leaves the client's
// position as it is.
func appendEvent(buf []byte, prefix, name string, id []byte, data string) []byte {
	buf = append(buf, "event: "...)
	buf = append(buf, prefix...)
	buf = append(buf, name...)
	if len(id) > 0 {
		buf = append(buf, "\nid: "...)
		buf = append(buf, id...)
	}
	buf = append(buf, "\ndata: "...)
	buf = append(buf, data...)
	return append(buf, "\n\n"...)
}

// appendRetry appends how long the client is to wait before it connects again.
func appendRetry(buf []byte, after time.Duration) []byte {
	buf = append(buf, "retry: "...)
	buf = strconv.AppendInt(buf, after.Milliseconds(), 10)
	return append(buf, "\n\n"...)
}

// quote is a JSON object with one string, which must be plain ASCII.
func quote(key, value string) string { return `{"` + key + `":` + strconv.Quote(value) + `}` }
