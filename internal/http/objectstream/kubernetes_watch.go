package objectstream

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/render"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/shards"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// watchEvents is the form for kubectl and client-go: Kubernetes' watch events, one JSON object a
// line. It cannot express most of what server-sent events can. A client that has missed something
// is told 410, and lists again.
//
// Its clients take the version of the object that they were told last as their position. What a relist found is ordered
// by version, with the deletions first. These deletions are told with a version as old as the state before the relist.
// So a client that is cut off among them comes back with a version from before the list, and gets all of it again. A gateway, which
// gives versions on as positions, is told none of it: see cluster.RelistHeader.
type watchEvents struct {
	printer   *render.Printer
	bookmarks bool // the client wants bookmarks
	initial   bool // the end of the snapshot is to be marked
	freshness bool // see cluster.FreshnessHeader
	told      bool // something was told already: a table's columns are told once
}

var watchEventTypes = [...]string{stream.Added: "ADDED", stream.Modified: "MODIFIED", stream.Deleted: "DELETED"}

// Reasons of a reset that only watchEvents tells.
const (
	resetPermissions = "permissions" // the caller's permissions have changed
	resetRelist      = "relist"      // see cluster.RelistHeader
)

func (*watchEvents) Relists() bool { return true }

func (w *watchEvents) Encode(buf []byte, e eventstream.Event) []byte {
	switch e.Kind {
	case eventstream.KindChange:
		o := e.Object
		if e.Cause != nil && e.Change == stream.Deleted {
			if before, is := e.Cause.FromRelist(); is {
				o = o.WithVersion(before)
			}
		}
		buf = appendWatchEvent(buf, watchEventTypes[e.Change], w.printer.Event(o, !w.told))
		w.told = true
	case eventstream.KindSynced:
		if w.initial {
			buf = w.appendBookmark(buf, e.Version, `,"annotations":{"`+metav1.InitialEventsAnnotationKey+`":"true"}`)
		}
	case eventstream.KindBookmark:
		if w.bookmarks {
			buf = w.appendBookmark(buf, e.Version, "")
		}
	case eventstream.KindReset:
		err := reply.Expired(tooOld(e.Name), "")
		if e.Name == resetRelist { // client-go asks again from where it is, and lists only if it is told 410 then
			err = reply.TooManyRequests("the gateway has listed anew; it will look up what has happened meanwhile", nil)
		}
		buf = appendFailure(buf, err)
	case eventstream.KindNamed:
		if is := map[string]string{"stale": cluster.StaleEvent, "live": cluster.LiveEvent}[e.Name]; is != "" && w.freshness {
			buf = appendWatchEvent(buf, is, []byte(e.Data))
		}
	case eventstream.KindGoodbye:
		if e.Name == eventstream.Unavailable.String() {
			buf = appendFailure(buf, reply.Unavailable("the cluster cannot be reached, or permissions not be checked", time.Second, nil))
		}
	}
	return buf
}

// bookmarkOfShards is the time between two bookmarks to an edge that merges shards: an event of another shard waits for one.
const bookmarkOfShards = 200 * time.Millisecond

// tooOld says why a client has to list again.
func tooOld(reason string) string {
	switch reason {
	case eventstream.ResetAhead:
		return "too large resource version: the cluster has none like it"
	case eventstream.ResetEpoch:
		return "the cluster was restored to another history"
	case resetPermissions:
		return "the caller's permissions have changed"
	}
	return "too old resource version: the history does not reach back so far"
}

func (w *watchEvents) appendBookmark(buf []byte, version uint64, more string) []byte {
	meta := `{"resourceVersion":"` + strconv.FormatUint(version, 10) + `"` + more + `}`
	buf = appendWatchEvent(buf, "BOOKMARK", w.printer.Bookmark([]byte(meta), !w.told))
	w.told = true
	return buf
}

// appendFailure appends an event of type ERROR.
func appendFailure(buf []byte, err error) []byte {
	object, failed := json.Marshal(reply.To(err).Status())
	if failed != nil {
		return buf // plain fields
	}
	return appendWatchEvent(buf, "ERROR", object)
}

func appendWatchEvent(buf []byte, kind string, object []byte) []byte {
	buf = append(buf, `{"type":"`...)
	buf = append(buf, kind...)
	buf = append(buf, `","object":`...)
	buf = append(buf, object...)
	return append(buf, "}\n"...)
}

// Watch answers a list or an object that is watched in Kubernetes' own form, as one of the streams of a Hub.
func (h *Handler) Watch(streams *eventstream.Hub, w http.ResponseWriter, r *http.Request, id auth.Identity, t visibility.Target, accepted reply.Form) error {
	query, err := request.Query(r)
	if err != nil {
		return err
	}
	req, err := parseKubernetesWatch(t, query, accepted)
	if err != nil {
		return err
	}
	if streams.Draining() {
		// client-go lists again when a watch is answered with 503, but goes on with its watch when that is 429.
		return reply.TooManyRequests("the gateway is about to end; another one will answer", nil)
	}
	if conn.SharedOf(r).IsLeft() {
		return reply.TooManyRequests("other replicas of the gateway have fewer watches; one will answer on another connection", nil)
	}
	return streams.Serve(w, r, id, func() (eventstream.SingleSourceStream, error) { return h.answer(w, r, id, req) })
}

// answer opens a watch in Kubernetes' own form.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, id auth.Identity, req kubernetesWatchRequest) (a eventstream.SingleSourceStream, err error) {
	granted, err := h.opts.Access.OpenSynced(r.Context(), id, req.watch.target, "watch")
	if err != nil {
		return a, err
	}
	a = eventstream.SingleSourceStream{Media: "application/json", Age: req.timeout}
	if a.Encoder, err = newWatchEvents(r, req, granted); err != nil {
		granted.Release()
		return a, err
	}
	req.watch.lists = true
	req.watch.relistEnds = r.Header.Get(cluster.RelistHeader) == cluster.RelistEnds
	watch := newWatch(h.opts.Access, &id, req.watch, granted)
	watch.pin()
	if a.Position, err = historyOf(w, r, req.watch.after, watch); err != nil {
		granted.Release()
		return a, err
	}
	if id.Gateway && r.Header.Get(shards.Header) != "" {
		a.Bookmarks = bookmarkOfShards
	}
	a.Source = watch
	reply.Warn(w, granted.Store.Warnings())
	return a, nil
}

// historyOf tells a client that is a gateway of which history the watch is. If the client says of which one the version is
// after which it watches on, it returns the position that this makes: in any other history, the version counts for nothing.
func historyOf(w http.ResponseWriter, r *http.Request, after uint64, watch *watch) (position string, err error) {
	epoch, err := watch.Epoch(r.Context())
	claimed := r.Header.Get(cluster.HistoryHeader)
	if claimed == "" || after == 0 {
		if err == nil {
			w.Header().Set(cluster.HistoryHeader, watch.History(epoch))
		}
		return "", nil
	}
	if err != nil {
		return "", err
	}
	w.Header().Set(cluster.HistoryHeader, watch.History(epoch))
	position, visibility, _ := strings.Cut(claimed, "-")
	position += "." + strconv.FormatUint(after, 10)
	if visibility != "" {
		position += "-" + visibility
	}
	return position, nil
}

// newWatchEvents is the form in which a watch is told, once its store is as new as it has to be.
func newWatchEvents(r *http.Request, req kubernetesWatchRequest, granted access.Grant) (eventstream.Encoder, error) {
	if err := access.AwaitVersion(r.Context(), granted.Store, req.notBefore); err != nil {
		return nil, err
	}
	printer := render.NewPrinter(r.Context(), granted.Kinds.Cluster(), granted.Store.Kind(), req.view)
	freshness := r.Header.Get(cluster.FreshnessHeader) == cluster.FreshnessTold
	return &watchEvents{printer: printer, bookmarks: req.bookmarks, initial: req.initial, freshness: freshness}, nil
}

// kubernetesWatchRequest is what a client asks of a watch in Kubernetes' own form.
type kubernetesWatchRequest struct {
	watch     watchRequest
	view      render.View
	bookmarks bool
	initial   bool          // the state comes first, and its end is marked
	notBefore uint64        // the state must be of this version or a later one
	timeout   time.Duration // 0: as long as any stream
}

// parseKubernetesWatch reads a watch's parameters as Kubernetes defines them (API concepts, "Efficient detection of
// changes" and "Streaming lists"). As at the API server, unknown parameters are ignored.
func parseKubernetesWatch(t visibility.Target, query url.Values, accepted reply.Form) (req kubernetesWatchRequest, err error) {
	req.watch.target = t
	if req.view, err = render.ParseView(t.Paths(), query, accepted); err != nil {
		return req, err
	}
	for _, key := range []string{"sort", "countBy"} {
		if query.Get(key) != "" {
			return req, reply.BadRequest("%s: has no meaning for a watch", key)
		}
	}
	if req.watch.selector, err = t.Paths().Selector(query.Get("labelSelector"), query.Get("fieldSelector")); err != nil {
		return req, reply.BadSelector(err)
	}
	req.watch.selector = req.watch.selector.Search(query.Get("search"))
	version := uint64(0)
	if text := query.Get("resourceVersion"); text != "" {
		if version, err = cluster.ParseVersion(text); err != nil {
			return req, reply.InvalidVersion(text, err)
		}
	}
	if text := query.Get("timeoutSeconds"); text != "" {
		seconds, err := reply.Number("timeoutSeconds", text)
		if err != nil {
			return req, err
		}
		req.timeout = time.Duration(min(seconds, longest)) * time.Second
	}
	if text := query.Get("limit"); text != "" { // which says nothing of a watch, but must be a number
		if _, err := reply.Number("limit", text); err != nil {
			return req, err
		}
	}
	req.bookmarks = isTrue(query.Get("allowWatchBookmarks"))
	options := internalversion.ListOptions{Watch: true, ResourceVersionMatch: metav1.ResourceVersionMatch(query.Get("resourceVersionMatch"))}
	initial := query.Get("sendInitialEvents")
	if req.initial = isTrue(initial); initial != "" {
		options.SendInitialEvents = &req.initial
	}
	if err := reply.CheckOptions(&options); err != nil {
		return req, err
	}
	if initial == "" {
		req.watch.after = version
		return req, nil
	}
	if req.initial {
		req.notBefore = version
	} else {
		req.watch.after, req.watch.quiet = version, version == 0
	}
	return req, nil
}

// longest is a watch's longest time, in seconds: longer than any lives.
const longest = 1 << 31

// isTrue reads an option that is true or not. As at the API server, every text but "false" and "0" says that it is.
func isTrue(text string) bool {
	return text != "" && text != "0" && !strings.EqualFold(text, "false")
}
