package eventstream

import (
	"context"
	"errors"
	"sync"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/stream"
)

// place is where a watch goes on: with a cursor, for a client that knows something. Without a cursor a snapshot is due,
// with a reset first if there is a reason for one.
type place struct {
	cursor *cache.Cursor
	known  stream.Known
	reset  string
}

// placement is the places of all watches of a stream.
type placement struct {
	epoch  string
	places []place
	err    error // the clusters cannot be asked
}

// begin waits for the stores, and puts each watch where the client's position says. Where all of them go on is
// decided before the first event is sent, so that no id leaves out a watch of which the client holds a position.
func (ss *session) begin(ctx context.Context) (stop string) {
	ss.times = newSchedule(ss)
	ss.sharePermission()
	ss.dialect.greet(ss)
	if stop := ss.flush(); stop != "" {
		return stop
	}
	if ss.hub.draining.Err() != nil {
		return goodbyeDrain
	}
	placing, cancel := context.WithTimeout(ctx, ss.hub.opts.SyncTimeout)
	placed := make(chan placement, 1)
	go func() {
		placed <- ss.findPlaces(placing)
		ss.Wake()
	}()
	// The other goroutine reads what the session does not change meanwhile; it ends before the session goes on.
	result, reason := ss.await(placed)
	cancel()
	if result == nil {
		<-placed
	}
	switch {
	case reason != "":
		return reason
	case ctx.Err() != nil:
		return endLeft
	case errors.Is(result.err, cache.ErrGone):
		return goodbyeGone
	case result.err != nil:
		ss.logger().Warn("stream refused: its kinds cannot be served", "path", ss.path, "error", result.err)
		return goodbyeUnavailable
	}
	ss.epoch = result.epoch
	ss.names = make([]string, len(ss.watches))
	ss.told = make([]stream.Told, len(ss.watches))
	for i, w := range ss.watches {
		ss.names[i] = w.name
		if p := result.places[i]; p.cursor != nil {
			w.begin(p.cursor, p.known)
		}
	}
	// All resets come before the first snapshot, since the ids from here on leave these watches out: a client that is
	// cut off and comes back with one would not be told.
	for i, w := range ss.watches {
		if reason := result.places[i].reset; reason != "" {
			if stop := ss.reset(w, reason); stop != "" {
				return stop
			}
		}
	}
	ss.tellSights(readPosition(ss.position))
	ss.position = ""
	for _, w := range ss.watches {
		if w.cursor == nil {
			if reason := ss.snapshot(ctx, w); reason != "" {
				return reason
			}
		}
	}
	return ""
}

// tellSights tells what may be seen, where that is not all, or was not when the client's position was made.
func (ss *session) tellSights(at position) {
	for _, w := range ss.watches {
		switch {
		case w.Visible != nil:
			ss.tellSight(w, "narrowed", w.Visible)
		case at.Told[w.name].Sight != "":
			ss.tellSight(w, "widened", nil)
		}
	}
}

// await keeps the connection alive until the places are found, or the stream has to end before.
func (ss *session) await(placed <-chan placement) (_ *placement, stop string) {
	for {
		select {
		case p := <-placed:
			return &p, ""
		default:
		}
		ss.sleep()
		if stop := ss.due(); stop != "" {
			return nil, stop
		}
		if stop := ss.flush(); stop != "" {
			return nil, stop
		}
	}
}

// findPlaces waits for the watches' stores, which read their lists side by side, and asks each where to go on.
//
// That may take long, and another history may begin meanwhile, in which the client's position means something else: then
// they are asked again.
func (ss *session) findPlaces(ctx context.Context) placement {
	for _, w := range ss.watches {
		if err := w.Store.WaitSynced(ctx); err != nil {
			return placement{err: err}
		}
	}
	at := readPosition(ss.position)
	now, err := epoch(ctx, ss.watches)
	for err == nil {
		places := make([]place, len(ss.watches))
		var finding sync.WaitGroup
		for i, w := range ss.watches {
			finding.Go(func() { places[i] = w.find(ctx, at, now) })
		}
		finding.Wait()
		// A store gives its cluster another epoch before it begins another history; so these places are in the history of
		// this epoch, or their cursors say that they are not.
		before := now
		if now, err = epoch(ctx, ss.watches); err == nil && now == before {
			return placement{epoch: now, places: places}
		}
	}
	return placement{err: err}
}

// find says where the watch goes on for a client at a position. The store is synced, so whatever becomes of the
// position, the client can be served: if the API server would have to be asked, and is away, with a snapshot.
func (w *watch) find(ctx context.Context, at position, epoch string) place {
	told, named := at.Told[w.name]
	known := told.Known
	switch {
	case at.err != nil:
		return place{reset: resetUnreadable}
	case at.known && at.Epoch != epoch, named && told.Sight != w.Visible.Name():
		return place{reset: resetEpoch}
	case named:
	case at.known:
		return place{} // new in this stream, or its snapshot was not complete
	case w.after > 0:
		known = stream.UpTo(w.after)
	case w.quiet:
		head := w.Store.Topic().Head()
		return place{cursor: w.Store.Topic().From(head, w.part().Scope()), known: head.Known()}
	default:
		return place{}
	}
	cursor, err := w.Store.Topic().Resume(known, w.part().Scope())
	if errors.Is(err, stream.ErrAhead) {
		cursor, err = w.findAhead(ctx, known)
	}
	if errors.Is(err, stream.ErrExpired) {
		if cursor, err = w.Store.CaughtUp(ctx, known, w.part().Scope()); err != nil {
			err = stream.ErrExpired // whatever keeps the API server from telling, a snapshot serves the client
		}
	}
	if err != nil {
		return place{reset: resetReason(err)}
	}
	return place{cursor: cursor, known: known}
}

// findAhead finds the place of a client whose position is ahead of the store: another replica may have seen more, if
// only a bookmark. If the version exists, the client needs nothing before it.
func (w *watch) findAhead(ctx context.Context, known stream.Known) (*cache.Cursor, error) {
	if exists, err := w.Kinds.Cluster().HasVersion(ctx, w.Store.Kind(), known.Some); err != nil || !exists {
		return nil, stream.ErrAhead
	}
	return w.Store.Topic().Ahead(known, w.part().Scope())
}
