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

// encoder is the form in which a client is told messages: server-sent events, or Kubernetes' watch events.
type encoder interface {
	// encode appends a message to a buffer. It appends nothing if this form cannot express the message.
	encode(buf []byte, m message) []byte
	// relists reports whether clients list again by themselves when they are told a reset. The
	// stream then ends with it.
	relists() bool
}

// message is one thing that a client is told. Which fields count depends on its kind.
type message struct {
	kind   messageKind
	prefix string // of the event's name: "pods.", or "" where there is only one source
	id     []byte // the client's position after this message; empty: it does not change

	name string // of an event; of a reset and a goodbye, the reason
	data string // of an event: JSON on one line

	after   time.Duration // of a greeting and a retry: how long a client waits before it connects again
	version uint64        // of synced and bookmark: up to which everything was told
	count   int           // of synced: objects

	change stream.Type
	object *cluster.Object
	event  *cache.Event    // the event that made the change; nil: the object is part of a snapshot
	base   *cluster.Object // what the client has of a modified object; nil: that is not known
	view   *View
}

type messageKind uint8

const (
	msgGreeting  messageKind = iota // what a stream begins with
	msgRetry                        // when to connect again
	msgHeartbeat                    // the connection is still there
	msgEvent                        // an event with a name, which only server-sent events can express
	msgChange                       // an object as it is now, or as it last was
	msgSynced                       // a snapshot is complete
	msgReset                        // the client missed something
	msgBookmark                     // nothing else happened up to a version
	msgGoodbye                      // the stream ends
)

// isEvent reports whether a message counts as an event, and carries the client's position.
func (k messageKind) isEvent() bool { return k > msgHeartbeat }

// View is how much of each object a client wants to be told; see ParseView.
type View struct {
	// fields is what is wanted of each object; nil: all.
	fields *render.Fields
	// deltas asks for merge patches in place of modified objects.
	deltas bool
}

// Key identifies what is told of objects.
func (v *View) Key() string {
	key := ""
	if v.fields != nil {
		key = v.fields.Variant
	}
	if v.deltas {
		key = "deltas " + key
	}
	return key
}

// serverSentEvents is the form for browsers (WHATWG HTML, 9.2), with the events of docs/wire.md, "Event streams".
type serverSentEvents struct {
	// Renderings of objects are charged to this memory, and kept for others who want the same.
	// After a restart, thousands of clients want the same renderings of the same objects, and
	// making one costs much more than sending it.
	memory     *budget.Memory
	quotaOwner string
}

func (*serverSentEvents) relists() bool { return false }

func (e *serverSentEvents) encode(buf []byte, m message) []byte {
	switch m.kind {
	case msgGreeting:
		return appendRetry(append(buf, ": kubecast\n\n"...), m.after)
	case msgRetry:
		return appendRetry(buf, m.after)
	case msgHeartbeat:
		return append(buf, ": \n\n"...)
	case msgChange:
		m.name, m.data = e.changed(m)
	case msgSynced:
		m.name = "synced"
		m.data = `{"resourceVersion":"` + strconv.FormatUint(m.version, 10) + `","count":` + strconv.Itoa(m.count) + `}`
	case msgBookmark:
		m.name, m.data = "bookmark", quote("resourceVersion", strconv.FormatUint(m.version, 10))
	case msgReset:
		m.name, m.data = "reset", quote("reason", m.name)
	case msgGoodbye:
		m.name, m.data = "goodbye", quote("reason", m.name)
	}
	return appendEvent(buf, m.prefix, m.name, m.id, m.data)
}

// changed is the event of a change.
func (e *serverSentEvents) changed(m message) (name, data string) {
	if m.change == stream.Modified && m.view.deltas && m.base != nil {
		if patched := e.patched(m); patched != "" {
			return "patched", patched
		}
	}
	if m.view.fields == nil { // whole objects are sent as they are kept, so nothing has to be rendered
		return m.change.String(), m.object.JSON()
	}
	return m.change.String(), e.made(m.object, m.view.fields.Variant, func() string { return m.view.fields.Of(m.object) })
}

// patched is the data of an event of that name; "" if it is better to send the whole object.
func (e *serverSentEvents) patched(m message) string {
	if m.object.UID() == "" {
		return "" // the patch would not say which object it is for
	}
	variant := "patch"
	if m.event == nil || m.base != m.event.Old { // some were conflated
		// The version alone does not name what the client has: a definition that changes gives its
		// objects other defaults.
		variant += " " + m.base.GetResourceVersion() + "-" + strconv.FormatUint(uint64(m.base.Sum()), 36)
	}
	if m.view.fields != nil {
		variant += " " + m.view.fields.Variant
	}
	return e.made(m.object, variant, func() string {
		return render.Patched(m.view.fields, m.base, m.object)
	})
}

// made is a rendering of an object, either made now and charged to this user, or made earlier and found.
func (e *serverSentEvents) made(o *cluster.Object, variant string, make func() string) string {
	return o.Texts().Get(e.memory, e.quotaOwner, variant, make)
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
