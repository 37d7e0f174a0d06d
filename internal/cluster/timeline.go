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

// timeline makes sure that a watch goes on in the history that the one before it was in.
//
// When etcd is restored to an older state, versions go back, and soon reach again those that were given before. A
// watch that goes on from the last version by then is told nothing of what happened anew below it, and no error
// either: the cache would be wrong for ever, and nobody would know. The API server has to be restarted for a restore,
// so after each watch that ended before its time the newest object that was told is read again: if it still is what it was,
// at its version, history is the same up to there, and the watch goes on from that version; not from a later one, known from
// a bookmark, since nothing vouches for what lies between. Otherwise the answer is "expired", upon which client-go
// lists everything.
//
// A watch that ends as planned may do so in the midst of a revision: when a lease ends, etcd deletes all that was bound to it
// in one. From that version the next watch would not be told the rest; so it goes on from the one before, if the last event
// was a deletion. To be told again that something is deleted changes nothing.
type timeline struct {
	mu      sync.Mutex
	suspect bool    // the last watch did not end as planned
	newest  *Object // of the last event since the last list; nil if there was none, or if it was a deletion
	open    uint64  // version of the last event, if that was a deletion and nothing shows that there are no more; else 0
}

// listed: everything is known anew.
func (t *timeline) listed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suspect, t.newest, t.open = false, nil, 0
}

// happened takes an event of a watch.
func (t *timeline) happened(kind watch.EventType, o *Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.newest, t.open = o, 0
	if kind == watch.Deleted {
		t.newest, t.open = nil, o.Version() // that it is gone proves nothing: it may never have been there
	}
}

// passed: a watch has told everything up to a version. While it tells those of one revision, that may be their own.
func (t *timeline) passed(version uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if version > t.open {
		t.open = 0
	}
}

// interrupted: a watch ended before its time, or could not begin.
func (t *timeline) interrupted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suspect = true
}

// resume says from which version a watch may go on that is to do so from one.
func (t *timeline) resume(ctx context.Context, lw *ListWatch, version string) (string, error) {
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
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err): // or it may only list and watch
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

// watchTime is how long a watch may last before its end is no surprise; the API server ends it at a whole second.
func watchTime(options metav1.ListOptions) time.Duration {
	if options.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*options.TimeoutSeconds)*time.Second - time.Second
}
