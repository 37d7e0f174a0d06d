package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// errNotConfirmed means that it is not known whether a watch has delivered all up to a version.
var errNotConfirmed = errors.New("nothing shows that the watch has delivered all")

// Confirm asks the API server whether anything has happened since what the present watch delivered
// last, up to a version that the API server has. If nothing has, the watch delivers a bookmark of
// that version. It takes a second or two.
//
// Versions are counted for all kinds together, so clients know versions of a kind that are other
// kinds' changes. The API server itself says by a bookmark that it has come so far, but only once a
// minute.
//
// It is asked by a short watch on a way of its own. What that is told of has happened, and comes by
// the present watch: the error says so. Of the very revision that was delivered last, more may be
// to come if that was a deletion; see resumeGuard. So that revision is asked for once more, and all
// of its deletions are delivered again, which changes nothing.
//
// Of a kind that the API server does not keep in memory, as of Events, it sends no bookmarks. Then a
// list of the metadata shows the same. Held says how many objects the informer's store has, and up
// to which version it knows.
func (lw *ListWatch) Confirm(ctx context.Context, until uint64, held func() (objects int, version uint64)) error {
	w := lw.newest.Load()
	if w == nil {
		return fmt.Errorf("%w: there is no watch", errNotConfirmed)
	}
	w.mu.Lock()
	passed := w.passed
	w.mu.Unlock()
	switch {
	case passed == 0:
		return fmt.Errorf("%w: the watch has not begun", errNotConfirmed)
	case passed >= until:
		return nil
	}
	from := passed
	if lw.resumeGuard.isOpen(passed) && passed > 1 { // version 0 would be any
		from--
	}
	var again []*Object
	err := errSilent
	if !lw.silent.Load() {
		again, err = lw.quiet(ctx, from, passed, until)
	}
	if errors.Is(err, errSilent) {
		lw.silent.Store(true)
		err = lw.unchanged(ctx, passed, until, held)
	}
	if err != nil {
		return err
	}
	return w.confirmed(ctx, passed, until, again)
}

// errSilent means that a watch ended in its time, and told of nothing new.
var errSilent = fmt.Errorf("%w: it sends no bookmarks", errNotConfirmed)

// unchangedPage is how many objects are asked for at once.
const unchangedPage = 500

// unchanged is an error unless the kind's objects are those that there were at the version that was passed. All in a
// newer list were there already if none is of a later version, and none is gone if there are as many.
func (lw *ListWatch) unchanged(ctx context.Context, passed, until uint64, held func() (objects int, version uint64)) error {
	objects, version := held()
	if version != passed {
		return fmt.Errorf("%w: the store is at version %d", errNotConfirmed, version)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found := 0
	for options := (metav1.ListOptions{Limit: unchangedPage}); ; {
		list, err := listMetadata(ctx, lw.lists, lw.kind, options)
		if err != nil {
			return err
		}
		if at, err := ParseVersion(list.ResourceVersion); err != nil || at < until {
			return fmt.Errorf("%w: a list of version %q", errNotConfirmed, list.ResourceVersion)
		}
		for _, o := range list.Items {
			if o.Version() > passed {
				return fmt.Errorf("%w: version %d is still to come", errNotConfirmed, o.Version())
			}
		}
		found += len(list.Items)
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	if found != objects {
		return fmt.Errorf("%w: there are %d objects, and not %d", errNotConfirmed, found, objects)
	}
	return nil
}

// quiet reads what happened after a version, up to another one. It returns the deletions of the
// revision that was passed last; anything else is an error.
func (lw *ListWatch) quiet(ctx context.Context, from, passed, until uint64) (again []*Object, err error) {
	ctx, cancel := context.WithTimeout(ctx, nextWithin+nextLate)
	defer cancel()
	began := time.Now()
	body, err := lw.briefly(ctx, from)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	compact, bookmarks := compactor{kind: lw.kind}, false
	for dec := newDecoder(body); ; {
		value, err := dec.ReadValue()
		switch {
		case !bookmarks && lasted(began, err):
			return nil, errSilent
		case err != nil:
			return nil, fmt.Errorf("%w up to version %d: %w", errNotConfirmed, until, err)
		}
		event := gjson.GetMany(view(value), "type", "object", "object.metadata.resourceVersion")
		at, err := ParseVersion(event[2].Str)
		switch kind := watch.EventType(event[0].Str); {
		case kind == watch.Error, err != nil:
			return nil, fmt.Errorf("asking what follows version %d of %s: the API server answers %s", from, lw.kind, kind)
		case kind == watch.Bookmark && at >= until:
			return again, nil
		case kind == watch.Bookmark: // this server lags behind
			bookmarks = true
		case kind == watch.Deleted && at == passed:
			o, err := compact.object(value[event[1].Index : event[1].Index+len(event[1].Raw)])
			if err != nil {
				return nil, err
			}
			again = append(again, o)
		default:
			return nil, fmt.Errorf("%w: version %d is still to come", errNotConfirmed, at)
		}
	}
}

// confirmed delivers that nothing has happened between two versions, unless something newer was delivered meanwhile.
func (w *watcher) confirmed(ctx context.Context, passed, until uint64, again []*Object) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.passed > passed:
		return nil
	case w.over || w.passed < passed:
		return fmt.Errorf("%w: it has ended", errNotConfirmed)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.life, cancel)()
	for _, o := range again {
		if !w.deliverLocked(ctx, watch.Deleted, o) {
			return ctx.Err()
		}
	}
	w.lw.resumeGuard.passed(until)
	// As of a bookmark that the API server sends; but it does not show that this watch stands.
	marker := newMarker(until)
	if w.deliverLocked(ctx, watch.Bookmark, marker) {
		w.deliverLocked(ctx, watch.Modified, marker)
	}
	return ctx.Err()
}
