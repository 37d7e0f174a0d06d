package cluster

import (
	"context"
	"fmt"
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
type timeline struct {
	mu      sync.Mutex
	suspect bool    // the last watch did not end as planned
	newest  *Object // of the last event since the last list; nil if there was none, or if it was a deletion
}

// listed: everything is known anew.
func (t *timeline) listed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.suspect, t.newest = false, nil
}

// happened takes an event of a watch.
func (t *timeline) happened(kind watch.EventType, o *Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.newest = o
	if kind == watch.Deleted {
		t.newest = nil // that it is gone proves nothing: it may never have been there
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
	suspect, newest := t.suspect, t.newest
	t.mu.Unlock()
	if !suspect {
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
