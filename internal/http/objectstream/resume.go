package objectstream

import (
	"context"
	"errors"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/stream"
)

// resumePoint is where a watch goes on: with a cursor, for a client that knows something. Without a
// cursor a snapshot is due, with a reset first if there is a reason for one.
type resumePoint struct {
	cursor *cache.Cursor
	known  stream.Known
	reset  string
	now    bool // it goes on from where the kind is once it begins
}

// resetReason is why a cursor could not be given, or could not go on.
func resetReason(err error) string {
	switch {
	case errors.Is(err, stream.ErrAhead):
		return eventstream.ResetAhead
	case errors.Is(err, stream.ErrEpoch):
		return eventstream.ResetEpoch
	case errors.Is(err, stream.ErrSlow):
		return eventstream.ResetSlow
	}
	return eventstream.ResetExpired
}

func (w *watch) Ready(ctx context.Context) error { return w.Store.WaitSynced(ctx) }

// Epoch implements Source.
//
// A store gives its kind's storage another epoch before it begins another history. So a resume
// point that was found while the epoch stayed the same is in that epoch's history, or its cursor
// says that it is not.
func (w *watch) Epoch(ctx context.Context) (string, error) {
	return w.Grant.Epoch(ctx)
}

// Find implements Source. The store is synced, so whatever becomes of the position, the client can be served: if the
// API server would have to be asked, and is away, with a snapshot.
func (w *watch) Find(ctx context.Context, from eventstream.From) {
	point := w.resume(ctx, from)
	w.from, w.found = from, &point
}

func (w *watch) resume(ctx context.Context, from eventstream.From) resumePoint {
	known := from.Claim.Known
	switch {
	case from.Reset != "":
		return resumePoint{reset: from.Reset}
	case from.Named && from.Claim.Visibility != w.Visible.Name():
		return resumePoint{reset: eventstream.ResetEpoch}
	case from.Named:
	case from.Known:
		return resumePoint{} // new in this stream, or its snapshot was not complete
	case w.after > 0:
		known = stream.UpTo(w.after)
	case w.quiet:
		return resumePoint{now: true}
	default:
		return resumePoint{}
	}
	cursor, err := w.Store.Topic().Resume(known, w.visibleTarget().Namespaces())
	if errors.Is(err, stream.ErrAhead) {
		cursor, err = w.resumeAhead(ctx, known)
	}
	least := uint64(0)
	if err == nil && w.relistEnds && cursor.MeetsRelist() { // what happened is to be read up to behind that
		least, err = w.Store.Topic().Head().Version, stream.ErrExpired
	}
	if errors.Is(err, stream.ErrExpired) {
		if cursor, err = w.Store.CaughtUpTo(ctx, least, known, w.visibleTarget().Namespaces()); err != nil {
			err = stream.ErrExpired // whatever keeps the API server from telling, a snapshot serves the client
		}
	}
	if err == nil {
		err = w.isTheirs(ctx, cursor)
	}
	if err != nil {
		return resumePoint{reset: resetReason(err)}
	}
	return resumePoint{cursor: cursor, known: known}
}

// isTheirs fails with ErrExpired unless the caller may be told what has happened already behind a
// cursor: a permission in a namespace shows nothing of one that had its name before. What happens
// from here on is told as it happens.
func (w *watch) isTheirs(ctx context.Context, cursor *cache.Cursor) error {
	if !w.visibleTarget().IsBound() {
		return nil
	}
	now := w.Store.Snapshot()
	events, err := cursor.Pending(now.Head)
	if err != nil {
		return err
	}
	var objects []*cluster.Object
	for _, event := range events {
		if w.Visible.Sees(event.Object) && w.inScope(event.Object) {
			objects = append(objects, event.Object)
		}
	}
	if !w.access.AreTheirs(ctx, w.Kinds, w.caller, w.visibleTarget(), "watch", now, objects) {
		return stream.ErrExpired
	}
	return nil
}

// resumeAhead finds the resume point of a client whose position is ahead of the store: another
// replica may have seen more, if only a bookmark. If the version exists, the client needs nothing
// before it.
func (w *watch) resumeAhead(ctx context.Context, known stream.Known) (*cache.Cursor, error) {
	if exists, err := w.Kinds.Cluster().HasVersion(ctx, w.Store.Kind(), known.Some); err != nil || !exists {
		return nil, stream.ErrAhead
	}
	return w.Store.Topic().Ahead(known, w.visibleTarget().Namespaces())
}

func (w *watch) Begin(told eventstream.Freshness) (claim stream.Claim, reset string) {
	point := w.found
	w.found, w.freshness, w.caller = nil, told, nil
	if point.now { // what came meanwhile is not what the client knows, of whom its caller may see less by now
		head := w.first().Head
		w.adopt()
		point.cursor, point.known = w.Store.Topic().From(head, w.visibleTarget().Namespaces()), head.Known()
	}
	if point.cursor != nil {
		w.pinned = nil
		w.begin(point.cursor, point.known)
	}
	return w.claim(), point.reset
}
