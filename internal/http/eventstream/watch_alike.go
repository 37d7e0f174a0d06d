package eventstream

import (
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/stream"
)

// watchLikeness is the Likeness of watches.
type watchLikeness struct {
	store    *cache.Store
	part     access.PartKey
	selector string
	view     string
	stale    bool // what the client was told of it
}

// watchPlace is the Place of watches.
type watchPlace struct {
	cursor    stream.Place
	known     stream.Known
	open      bool
	freshness Freshness
}

// Compare implements Place. The versions that clients may claim differ where nothing has happened in between. That changes nothing of what
// they are told next, nor of the ids that it has. Whoever was not told that the data is stale is told that next, wherever they stand.
func (p *watchPlace) Compare(other Place) (order int, ok bool) {
	o := other.(*watchPlace)
	order, ok = p.cursor.Compare(o.cursor)
	return order, ok && p.freshness == o.freshness
}

// Likeness implements Alike. Modifications that are conflated are held back from when the client was told last, which is its own.
func (w *watch) Likeness() any {
	if w.cursor == nil || w.conflate > 0 || w.outdated || w.shifting || !w.begun || w.known.Some > w.known.All && !w.open {
		return nil
	}
	if _, ok := w.cursor.Place(); !ok || w.view.deltas && w.before >= w.known.All { // see base
		return nil
	}
	return watchLikeness{w.Store, w.part().Key(), w.selector.Key(), w.view.Key(), w.freshness.stale}
}

// Place implements Alike.
func (w *watch) Place() Place {
	cursor, _ := w.cursor.Place()
	return &watchPlace{cursor, w.known, w.open, w.freshness}
}

// Resume implements Alike. The client may have had a later position where nothing had happened.
func (w *watch) Resume(at Place) {
	place := at.(*watchPlace)
	w.cursor.Move(place.cursor)
	if place.known.All >= w.known.All {
		w.known, w.open = place.known, place.open
	}
	w.freshness = place.freshness
}

// Rest implements Alike.
func (w *watch) Rest() { w.cursor.Disarm() }

// For implements Alike: nobody works for a watch.
func (w *watch) For(string) {}

// Fork implements Alike.
func (w *watch) Fork() Alike {
	fork := newWatch(w.access, nil, w.watchRequest, access.Grant{Kinds: w.Kinds, Store: w.Store, Visible: w.Visible, Release: func() {}})
	place, _ := w.cursor.Place()
	fork.cursor, fork.begun, fork.freshness = w.cursor.Fork(place), true, w.freshness
	fork.known, fork.open, fork.before = w.known, w.open, w.before
	return fork
}
