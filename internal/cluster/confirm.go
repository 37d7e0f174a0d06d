package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"
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
func (lw *ListWatch) Confirm(ctx context.Context, until uint64) error {
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
	again, err := lw.quiet(ctx, from, passed, until)
	if err != nil {
		return err
	}
	return w.confirmed(ctx, passed, until, again)
}

// quiet reads what happened after a version, up to another one. It returns the deletions of the
// revision that was passed last; anything else is an error.
func (lw *ListWatch) quiet(ctx context.Context, from, passed, until uint64) (again []*Object, err error) {
	ctx, cancel := context.WithTimeout(ctx, nextWithin+nextLate)
	defer cancel()
	body, err := lw.briefly(ctx, from)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	compact := compactor{kind: lw.kind}
	for dec := newDecoder(body); ; {
		value, err := dec.ReadValue()
		if err != nil {
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
