package objectstream

import (
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// watchShareKey is the ShareKey of watches.
type watchShareKey struct {
	store    *cache.Store
	part     visibility.VisibleTargetKey
	selector string
	view     string
	stale    bool // what the client was told of it
}

// watchPlace is the Place of watches.
type watchPlace struct {
	cursor    stream.Place
	known     stream.Known
	open      bool
	freshness eventstream.Freshness
}

// Compare implements Place. Where nothing has happened in between, the versions that clients may
// claim differ. That changes neither what they are told next nor its ids. A client that was not
// told that the data is stale is told that next, wherever it stands.
func (p *watchPlace) Compare(other eventstream.Place) (order int, ok bool) {
	o := other.(*watchPlace)
	order, ok = p.cursor.Compare(o.cursor)
	return order, ok && p.freshness == o.freshness
}

// ShareKey implements Shareable. Modifications that are conflated are held back from when the
// client was told last, which is its own.
func (w *watch) ShareKey() any {
	if w.cursor == nil || w.conflate > 0 || w.outdated || w.changing || !w.begun || w.known.Some > w.known.All && !w.open {
		return nil
	}
	if _, ok := w.cursor.Place(); !ok || w.view.HasDeltas() && w.before >= w.known.All { // see base
		return nil
	}
	return watchShareKey{w.Store, w.visibleTarget().Key(), w.selector.Key(), w.view.Key(), w.freshness.IsStale()}
}

func (w *watch) Place() eventstream.Place {
	cursor, _ := w.cursor.Place()
	return &watchPlace{cursor, w.known, w.open, w.freshness}
}

// Seek implements Shareable. The client may have had a later position where nothing had happened.
func (w *watch) Seek(at eventstream.Place) stream.Claim {
	place := at.(*watchPlace)
	w.cursor.Move(place.cursor)
	if place.known.All >= w.known.All {
		w.known, w.open, w.retold = place.known, place.open, false
	}
	w.freshness = place.freshness
	return w.claim()
}

func (w *watch) Suspend() { w.cursor.Disarm() }

// ChargeTo implements Shareable: nobody works for a watch.
func (w *watch) ChargeTo(string) {}

func (w *watch) Clone() eventstream.Shareable {
	clone := newWatch(w.access, nil, w.watchRequest, access.Grant{Kinds: w.Kinds, Store: w.Store, Visible: w.Visible, Release: func() {}})
	place, _ := w.cursor.Place()
	clone.cursor, clone.begun, clone.freshness = w.cursor.Clone(place), true, w.freshness
	clone.known, clone.open, clone.before = w.known, w.open, w.before
	return clone
}
