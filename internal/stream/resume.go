package stream

import (
	"math"
	"slices"
	"sort"
)

// Head is the end of the history at some moment: a cursor that starts there reads what follows the version, and
// nothing else.
type Head struct {
	Version    uint64
	complete   uint64 // less, if there may be more of the version's revision
	part       int    // of the version's revision, that was seen last
	seq        uint64
	generation int
}

// Head is the end of the history at this moment.
func (t *Topic[O]) Head() Head {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Head{Version: t.watermark, complete: t.complete(), part: t.part, seq: t.ring.next, generation: t.generation}
}

// Known is what a client knows that has been shown the state at the head.
func (h Head) Known() Known { return Known{All: h.complete, Some: h.Version} }

// Revision is the version, as far as it had come.
func (h Head) Revision() Revision { return Revision{Version: h.Version, Part: h.part} }

// Place is that of a cursor that begins at the head.
func (h Head) Place() Place { return Place{h.generation, h.seq} }

// From returns a cursor that begins at a head of this topic.
func (t *Topic[O]) From(head Head, namespaces NamespaceSet) *Cursor[O] {
	return &Cursor[O]{topic: t, namespaces: namespaces, next: head.seq, joined: head.Version, generation: head.generation}
}

// Holds reports whether the ring still has everything that follows a head.
func (t *Topic[O]) Holds(head Head) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return head.generation == t.generation && head.seq >= t.ring.evicted.seq
}

// Resume returns a cursor for a client that comes back. It reads the events after known.All, and those of that very
// version that the client may not have been told (see Append). It fails with ErrExpired or ErrAhead.
func (t *Topic[O]) Resume(known Known, namespaces NamespaceSet) (*Cursor[O], error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known.All > t.watermark {
		return nil, ErrAhead
	}
	return t.resume(known, namespaces)
}

func (t *Topic[O]) resume(known Known, namespaces NamespaceSet) (*Cursor[O], error) {
	version := known.All
	for _, e := range t.evictions(namespaces) {
		if version < e.pos {
			return nil, ErrExpired
		}
	}
	if t.passedByRelist(known) {
		return nil, ErrExpired
	}
	first := t.ring.evicted.seq
	next := first + uint64(sort.Search(t.ring.len(), func(i int) bool { return t.ring.at(first+uint64(i)).Pos > version }))
	for next > first && t.ring.at(next-1).floor() > version {
		next-- // shares the version; the client may not have been told it
	}
	c := &Cursor[O]{topic: t, namespaces: namespaces, next: next, joined: version, generation: t.generation, known: known, knew: known}
	if next < t.ring.next && namespaces.Contains(t.ring.at(next).Object.GetNamespace()) && c.told(t.ring.at(next)) {
		c.next++ // or the client would be cut off for being overtaken by what it was told
	}
	return c, nil
}

// Ahead returns a cursor for a client that Resume found ahead of the topic, though its version is a real one: it
// reads what follows that version. The topic may have reached the version while the caller found that out. Then Ahead
// is Resume, and may fail with ErrExpired.
func (t *Topic[O]) Ahead(known Known, namespaces NamespaceSet) (*Cursor[O], error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known.All <= t.watermark {
		return t.resume(known, namespaces)
	}
	return &Cursor[O]{topic: t, namespaces: namespaces, next: t.ring.next, joined: known.All, generation: t.generation, known: known, knew: known}, nil
}

// passedByRelist reports whether a relist passed over a stretch of which the client knows some, but
// not all. The difference that the relist found does not say what of that is gone again, so the
// client cannot go on. The exception is the very relist in whose burst the client was cut off: that
// difference can be told again.
func (t *Topic[O]) passedByRelist(known Known) bool {
	if known.All < t.forgottenGap {
		return true
	}
	for _, g := range t.gaps {
		if g.from < known.Some && known.All < g.to && known != g.burst {
			return true
		}
	}
	return false
}

// PassedOver reports whether a cursor that moved from one position to another was carried over a
// relist in the ring. Then it has the difference that the relist found. What came and went before
// it is in no event, not even that there was something.
func (c *Cursor[O]) PassedOver(from, to uint64) bool {
	t := c.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	from = max(from, c.joined)
	return from < t.forgottenGap && t.forgottenGap <= to ||
		slices.ContainsFunc(t.gaps, func(g gap) bool { return from < g.to && g.to <= to })
}

// MeetsRelist reports whether there is a relist in the ring behind which the cursor has not begun.
func (c *Cursor[O]) MeetsRelist() bool { return c.PassedOver(0, math.MaxUint64) }

// evictions returns how far events were evicted: once for all namespaces, or once for each.
func (t *Topic[O]) evictions(namespaces NamespaceSet) []eviction {
	if namespaces.All() {
		return []eviction{t.ring.evicted}
	}
	found := make([]eviction, len(namespaces.names))
	for i, namespace := range namespaces.names {
		found[i] = t.forgotten
		if c := t.chains[namespace]; c != nil {
			found[i] = c.evicted
		}
	}
	return found
}
