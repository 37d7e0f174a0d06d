package cluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubecast/kubecast/internal/cores"
)

// resumeGuard makes sure that a watch goes on in the same history as the watch before it.
//
// When etcd is restored to an older state, versions go back, and soon reach again those that were used before. A
// watch that then goes on from the last version gets no error, and is told nothing of what happened anew below that
// version: the cache would be wrong for ever, and nothing would show it.
//
// The API server has to be restarted for a restore, which breaks its watches. So after each watch that ended before
// its time, the object of the newest event is read again. If it is still the same at its version, history is the same
// up to there, and the watch goes on from that version. It does not go on from a later version that is known from a
// bookmark, since nothing proves what lies between. If the object is not the same, the answer is "expired", upon
// which client-go lists everything.
//
// An API server that is another gateway says of which history its answers are (HistoryHeader), and is told of which
// one the watch has to be: it answers "expired" itself if that has ended. So its restart interrupts no watch for good,
// also where the newest object has changed meanwhile, as in a busy kind it always has. Only what shows that versions
// went back counts for more than its word: the newest object at an older version.
//
// A watch that ends as planned may end in the midst of a revision: when a lease ends, etcd deletes all that was bound
// to it in one revision. A watch from that version would not be told the rest. So if the last event was a deletion,
// the next watch goes on from the version before it. A deletion that is told twice changes nothing.
type resumeGuard struct {
	mu      sync.Mutex
	suspect bool    // the last watch ended before its time, or could not begin
	newest  *Object // object of the last event since the last list; nil if there was none, or it was a deletion
	open    uint64  // version of the last event if that was a deletion whose revision may hold more events; else 0

	greatest uint64 // the greatest version that was seen, as far as the server knows
	history  string // of which the newest answer was, as another gateway says it; "" if the server does not
}

// HistoryHeader is a header of lists and watches in Kubernetes' own form, by which a gateway says to another one of
// which history it tells, and as what visible part: EPOCH or EPOCH-VISIBILITY. In the request of a watch it says of
// which history the client's version is.
const HistoryHeader = cores.HistoryHeader

// RelistHeader is a header of a watch in Kubernetes' own form, by which a gateway asks another one to be told what happened, as an API
// server tells it: no difference that a list found, after which it could claim versions that were passed over. The value is
// RelistEnds: such a watch ends with 429 before the difference, and goes on with what the API server says happened, or with 410.
const (
	RelistHeader = cores.RelistHeader
	RelistEnds   = cores.RelistEnds
)

// FreshnessHeader is a header of a watch in Kubernetes' own form, by which a gateway asks another one to be told when that one's own
// watch is lost, and when that is back and all has been told that was missed. The value is FreshnessTold: such a watch has events of the
// types StaleEvent and LiveEvent, whose object has "since" and "reason" as the events stale and live of streams (docs/wire.md).
const (
	FreshnessHeader = cores.FreshnessHeader
	FreshnessTold   = cores.FreshnessTold
	StaleEvent      = cores.Stale
	LiveEvent       = cores.Live
)

// listed records that everything was listed anew, and returns the version at which that was.
//
// That is the list's own, unless one of its objects has a greater one. Then the server's list has
// some other version, such as the greatest one as a text, and says nothing of what has been seen:
// it is neither behind that nor ahead. Its objects are no older than the greatest version among
// them, and what was seen before is not undone.
func (t *resumeGuard) listed(list *ObjectList) (version uint64) {
	version, _ = ParseVersion(list.ResourceVersion) // as decodeList has checked
	greatest := uint64(0)
	for _, o := range list.Items {
		greatest = max(greatest, o.Version())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if greatest > version {
		version = max(greatest, t.greatest)
	}
	t.suspect, t.newest, t.open, t.greatest = false, nil, 0, version
	return version
}

// happened records an event of a watch.
func (t *resumeGuard) happened(kind watch.EventType, o *Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.newest, t.open, t.greatest = o, 0, max(t.greatest, o.Version())
	if kind == watch.Deleted {
		t.newest, t.open = nil, o.Version() // an absent object proves nothing: it may never have existed
	}
}

// passed records that a watch has told everything up to a version. A bookmark within a revision may carry that
// revision's own version, which proves nothing of the rest.
func (t *resumeGuard) passed(version uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.greatest = max(t.greatest, version)
	if version > t.open {
		t.open = 0
	}
}

// isOpen reports whether more of a version's revision may be to come, which was a deletion.
func (t *resumeGuard) isOpen(version uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open == version
}

// answered records of which history an answer was.
func (t *resumeGuard) answered(history string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.history = history
}

// knowsHistory reports whether the server says of which history its answers are.
func (t *resumeGuard) knowsHistory() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.history != ""
}

// shows reports whether an answer of a history shows the same part as the one before, as far as the server says that.
func (t *resumeGuard) shows(history string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, before, _ := strings.Cut(t.history, "-")
	_, now, _ := strings.Cut(history, "-")
	return t.history == "" || history == "" || now == before
}

// resumed records that a watch goes on in the history of the one before, by the server's word.
func (t *resumeGuard) resumed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suspect = false
}

// interrupted records that a watch ended before its time, or could not begin.
func (t *resumeGuard) interrupted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suspect = true
}

// forgotten records that the server does not know of the greatest version that was seen.
func (t *resumeGuard) forgotten() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.greatest = 0
}

// resume returns the version from which a watch is to go on that client-go asks for from the given one. If history is
// not "", the server has to say that this is the history of which the watch tells. An error says that it cannot go on,
// or not now.
func (t *resumeGuard) resume(ctx context.Context, lw *ListWatch, version string) (from, history string, err error) {
	t.mu.Lock()
	suspect, newest, open, history := t.suspect, t.newest, t.open, t.history
	t.mu.Unlock()
	from = version
	if open > 1 && version == strconv.FormatUint(open, 10) {
		from = strconv.FormatUint(open-1, 10)
	}
	if !suspect {
		return from, "", nil
	}
	if newest != nil {
		now, err := lw.again(ctx, newest)
		switch {
		case err != nil:
			return "", "", err
		case now == nil:
		case now.Version() == newest.Version() && now.JSON() == newest.JSON():
			t.resumed()
			return newest.GetResourceVersion(), "", nil
		case now.Version() <= newest.Version():
			history = ""
		}
	}
	if history != "" {
		return from, history, nil
	}
	return "", "", apierrors.NewResourceExpired(fmt.Sprintf("the watch of %s was interrupted at version %s, and nothing "+
		"shows that history is still the same", lw.kind, version))
}

// again reads an object as it is now; nil if it is no more, or cannot be read: the gateway may only list and watch.
func (lw *ListWatch) again(ctx context.Context, o *Object) (*Object, error) {
	path := lw.kind.Path()
	if namespace := o.GetNamespace(); namespace != "" {
		path = lw.kind.pathIn(namespace)
	}
	request := lw.client.Get().AbsPath(path, o.GetName())
	if lw.metadata {
		request.SetHeader("Accept", metadataOnly)
	}
	body, err := request.DoRaw(ctx)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	compact := compactor{kind: lw.kind}
	return compact.object(body)
}

// watchTime is how long a watch must last for its end to count as planned. It is a second less than what was asked
// for, since the API server ends watches at whole seconds.
func watchTime(options metav1.ListOptions) time.Duration {
	if options.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*options.TimeoutSeconds)*time.Second - time.Second
}
