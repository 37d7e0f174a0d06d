package eventstream

import (
	"strconv"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/stream"
)

// dialect is the language in which a session tells its client what happens. What it says is collected; nothing waits.
type dialect interface {
	// greet is what a stream begins with.
	greet(ss *session)
	// state is one object of a snapshot.
	state(ss *session, w *watch, o *cluster.Object)
	// synced is the end of a snapshot of so many objects.
	synced(ss *session, w *watch, count int)
	// change is an event as it concerns this client: see stream.Event.For.
	change(ss *session, w *watch, event *cache.Event, kind stream.Type, o *cluster.Object)
	// modified is a change of an object that the client knows, and of what it knows if that is known.
	modified(ss *session, w *watch, event *cache.Event, base *cluster.Object)
	// reset says that the client has missed something. Either a snapshot may follow, or the stream ends.
	reset(ss *session, w *watch, reason string) (stop string)
	// bookmark says up to where the client has been told everything.
	bookmark(ss *session, w *watch)
	// shift is called before the client is told that its caller's sight has changed; it may end the stream instead.
	shift(ss *session) (stop string)
	// sight says what the caller may see, narrowed or widened; what he sees no more, and what is new to him, follows.
	sight(ss *session, w *watch, name string, now *access.Visibility)
	// lost is an object that the caller may not see any more, as of a version.
	lost(ss *session, w *watch, o *cluster.Object, version uint64)
	// upstream says whether the watch on the API server stands.
	upstream(ss *session, w *watch, u cache.Upstream)
	// expiring says that the caller's token ends soon.
	expiring(ss *session)
	// heartbeat shows that the connection stands.
	heartbeat(ss *session)
	// goodbye is what a stream ends with.
	goodbye(ss *session, reason string)
}

// serverSentEvents is the dialect of browsers (WHATWG HTML, 9.2), with the events of docs/wire.md, "Event streams".
type serverSentEvents struct{}

func (serverSentEvents) greet(ss *session) {
	retry := ss.hub.opts.Times.Retry
	ss.out.comment("kubecast")
	ss.out.retry(between(retry, 2*retry))
}

func (serverSentEvents) state(ss *session, w *watch, o *cluster.Object) {
	ss.send(w, stream.Added.String(), ss.projected(w.fields, o))
}

func (serverSentEvents) synced(ss *session, w *watch, count int) {
	ss.send(w, "synced", `{"resourceVersion":"`+strconv.FormatUint(w.known.All, 10)+`","count":`+strconv.Itoa(count)+`}`)
}

func (serverSentEvents) change(ss *session, w *watch, event *cache.Event, kind stream.Type, o *cluster.Object) {
	ss.send(w, kind.String(), ss.projected(w.fields, o))
}

func (serverSentEvents) modified(ss *session, w *watch, event *cache.Event, base *cluster.Object) {
	if w.deltas && base != nil {
		if patched := ss.patched(w, event, base); patched != "" {
			ss.send(w, "patched", patched)
			return
		}
	}
	ss.send(w, stream.Modified.String(), ss.projected(w.fields, event.Object))
}

func (serverSentEvents) reset(ss *session, w *watch, reason string) (stop string) {
	ss.send(w, "reset", quote("reason", reason))
	return ""
}

func (serverSentEvents) bookmark(ss *session, w *watch) {
	ss.send(w, "bookmark", quote("resourceVersion", strconv.FormatUint(w.claim().All, 10)))
}

func (serverSentEvents) shift(*session) (stop string) { return "" }

func (serverSentEvents) sight(ss *session, w *watch, name string, now *access.Visibility) {
	ss.send(w, name, reply.MustJSON(now.Summary()))
}

func (serverSentEvents) lost(ss *session, w *watch, o *cluster.Object, version uint64) {
	ss.send(w, stream.Deleted.String(), reply.MustJSON(identityOf(w.Store.Kind(), o, version)))
}

func (serverSentEvents) upstream(ss *session, w *watch, u cache.Upstream) {
	name := "live"
	if !u.Live {
		name = "stale"
	}
	ss.send(w, name, `{"since":`+strconv.Quote(u.Since.UTC().Format(time.RFC3339Nano))+`,"reason":`+strconv.Quote(reply.UpstreamReason(u))+`}`)
}

func (serverSentEvents) expiring(ss *session) {
	ss.out.event("", "expiring", ss.knownPosition(), quote("at", ss.id.ExpiresAt.UTC().Format(time.RFC3339)))
}

func (serverSentEvents) heartbeat(ss *session) { ss.out.comment("") }

func (serverSentEvents) goodbye(ss *session, reason string) {
	switch reason {
	case goodbyeDrain: // all streams of this replica end, so they are to come back spread
		retry := ss.hub.opts.Times.Retry
		ss.out.retry(between(retry, 3*retry))
		ss.bookmarks()
	case goodbyeAge, goodbyeExpired:
		ss.bookmarks()
	}
	ss.out.event("", "goodbye", ss.knownPosition(), quote("reason", reason))
}

// quote is a JSON object with one string, which must be plain ASCII.
func quote(key, value string) string { return `{"` + key + `":` + strconv.Quote(value) + `}` }
