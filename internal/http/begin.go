package http

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/stream"
)

// place is where a watch goes on: behind a version with a cursor, after what was caught up if the ring does not reach
// back so far. Without a cursor a snapshot is due, with a reset first if there is a reason for one.
type place struct {
	cursor *cache.Cursor
	known  stream.Known
	past   []*cache.Event
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
	ss.dialect.greet(ss)
	if stop := ss.flush(); stop != "" {
		return stop
	}
	if ss.server.draining.Err() != nil {
		return goodbyeDrain
	}
	placing, cancel := context.WithTimeout(ctx, ss.server.opts.SyncTimeout)
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
			w.past = p.past
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
		case w.sight != nil:
			ss.tellSight(w, "narrowed", w.sight)
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
func (ss *session) findPlaces(ctx context.Context) placement {
	for _, w := range ss.watches {
		if err := w.store.WaitSynced(ctx); err != nil {
			return placement{err: err}
		}
	}
	epoch, err := epoch(ctx, ss.watches)
	if err != nil {
		return placement{err: err}
	}
	at := readPosition(ss.position)
	places := make([]place, len(ss.watches))
	group, ctx := errgroup.WithContext(ctx)
	for i, w := range ss.watches {
		group.Go(func() (err error) {
			places[i], err = w.find(ctx, at, epoch)
			return err
		})
	}
	return placement{epoch: epoch, places: places, err: group.Wait()}
}

// find says where the watch goes on for a client at a position.
func (w *watch) find(ctx context.Context, at position, epoch string) (place, error) {
	told, named := at.Told[w.name]
	known := told.Known
	switch {
	case at.err != nil:
		return place{reset: resetUnreadable}, nil
	case at.known && at.Epoch != epoch, named && told.Sight != w.sight.name():
		return place{reset: resetEpoch}, nil
	case named:
	case at.known:
		return place{}, nil // new in this stream, or its snapshot was not complete
	case w.after > 0:
		known = stream.UpTo(w.after)
	case w.quiet:
		head := w.store.Topic().Head()
		return place{cursor: w.store.Topic().From(head, w.part().scope()), known: stream.UpTo(head.Version)}, nil
	default:
		return place{}, nil
	}
	cursor, err := w.store.Topic().Resume(known, w.part().scope())
	switch {
	case errors.Is(err, stream.ErrExpired) && known.Some == known.All:
		return w.catchUp(ctx, known.All)
	case errors.Is(err, stream.ErrAhead):
		return w.findAhead(ctx, known)
	case err != nil:
		return place{reset: resetReason(err)}, nil
	}
	return place{cursor: cursor, known: known}, nil
}

// catchUp finds the place of a client that is further back than the ring: the API server may know what happened since.
func (w *watch) catchUp(ctx context.Context, version uint64) (place, error) {
	caught, err := w.store.CatchUp(ctx, version)
	switch {
	case errors.Is(err, cache.ErrNoCatchUp):
		return place{reset: resetExpired}, nil
	case err != nil:
		return place{}, err
	}
	return place{
		cursor: w.store.Topic().From(caught.Head, w.part().scope()),
		known:  stream.UpTo(version),
		past:   caught.From(version),
	}, nil
}

// findAhead finds the place of a client whose position is ahead of the store: another replica may have seen more, if
// only a bookmark. If the version exists, the client needs nothing before it.
func (w *watch) findAhead(ctx context.Context, known stream.Known) (place, error) {
	exists, err := w.kinds.Cluster().HasVersion(ctx, w.store.Kind(), known.Some)
	switch {
	case err != nil:
		return place{}, err
	case !exists:
		return place{reset: resetAhead}, nil
	}
	cursor, err := w.store.Topic().Ahead(known, w.part().scope())
	switch {
	case errors.Is(err, stream.ErrExpired) && known.Some == known.All:
		return w.catchUp(ctx, known.All)
	case err != nil:
		return place{reset: resetReason(err)}, nil
	}
	return place{cursor: cursor, known: known}, nil
}
