package cluster

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
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
// A watch that ends as planned may end in the midst of a revision: when a lease ends, etcd deletes all that was bound
// to it in one revision. A watch from that version would not be told the rest. So if the last event was a deletion,
// the next watch goes on from the version before it. A deletion that is told twice changes nothing.
type resumeGuard struct {
	mu      sync.Mutex
	suspect bool    // the last watch ended before its time, or could not begin
	newest  *Object // object of the last event since the last list; nil if there was none, or it was a deletion
	open    uint64  // version of the last event if that was a deletion whose revision may hold more events; else 0

	greatest uint64 // the greatest version that was seen, as far as the server knows
}

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

// resume returns the version from which a watch is to go on that client-go asks for from the given one. An error says
// that it cannot, or not now.
func (t *resumeGuard) resume(ctx context.Context, lw *ListWatch, version string) (string, error) {
	t.mu.Lock()
	suspect, newest, open := t.suspect, t.newest, t.open
	t.mu.Unlock()
	if !suspect {
		if open > 1 && version == strconv.FormatUint(open, 10) {
			return strconv.FormatUint(open-1, 10), nil
		}
		return version, nil
	}
	if newest == nil {
		return "", apierrors.NewResourceExpired(fmt.Sprintf("the watch of %s was interrupted at version %s, of which nothing "+
			"shows that history is still the same", lw.kind, version))
	}
	path := lw.kind.Path()
	if namespace := newest.GetNamespace(); namespace != "" {
		path = lw.kind.pathIn(namespace)
	}
	body, err := lw.client.Get().AbsPath(path, newest.GetName()).DoRaw(ctx)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err): // or the gateway may only list and watch
	case err != nil:
		return "", err
	default:
		compact := compactor{kind: lw.kind}
		if now, err := compact.object(body); err != nil {
			return "", err
		} else if now.Version() == newest.Version() && now.JSON() == newest.JSON() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.suspect = false
			return newest.GetResourceVersion(), nil
		}
	}
	return "", apierrors.NewResourceExpired(fmt.Sprintf("the watch of %s was interrupted at version %s, and %s has changed since, "+
		"or cannot be read", lw.kind, version, newest.Key()))
}

// watchTime is how long a watch must last for its end to count as planned. It is a second less than what was asked
// for, since the API server ends watches at whole seconds.
func watchTime(options metav1.ListOptions) time.Duration {
	if options.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*options.TimeoutSeconds)*time.Second - time.Second
}
