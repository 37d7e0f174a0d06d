package stream

import "sort"

// Head is where the history ends: a cursor that starts there is told what follows the version, and nothing else.
type Head struct {
	Version    uint64
	seq        uint64
	generation int
}

// Head is the end of the history at this moment.
func (t *Topic[O]) Head() Head {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Head{Version: t.watermark, seq: t.ring.next, generation: t.generation}
}

// From is a cursor that begins at a head of this topic.
func (t *Topic[O]) From(head Head, scope Scope) *Cursor[O] {
	return &Cursor[O]{topic: t, scope: scope, next: head.seq, generation: head.generation}
}

// Holds reports whether everything that follows a head is still there.
func (t *Topic[O]) Holds(head Head) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return head.generation == t.generation && head.seq >= t.ring.evicted.seq
}

// Resume is a cursor for a client that comes back: it is told the events after what it knows all of, and those that
// share that version and may not have been told (see Append). It fails with ErrExpired or ErrAhead.
func (t *Topic[O]) Resume(known Known, scope Scope) (*Cursor[O], error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known.All > t.watermark {
		return nil, ErrAhead
	}
	return t.resume(known, scope)
}

func (t *Topic[O]) resume(known Known, scope Scope) (*Cursor[O], error) {
	version := known.All
	for _, e := range t.evictions(scope) {
		if version < e.pos {
			return nil, ErrExpired
		}
	}
	if t.leapt(known) {
		return nil, ErrExpired
	}
	first := t.ring.evicted.seq
	next := first + uint64(sort.Search(t.ring.len(), func(i int) bool { return t.ring.at(first+uint64(i)).Pos > version }))
	for next > first && t.ring.at(next-1).floor() > version {
		next-- // shares the version, and may not have been told
	}
	return &Cursor[O]{topic: t, scope: scope, next: next, generation: t.generation, known: known}, nil
}

// Ahead is a cursor for a client that Resume found ahead of the topic, though its version is a real one: it is told
// what follows that version. While that was being found out, the topic may have reached the version, and gone past it:
// then this is Resume, and may fail with ErrExpired.
func (t *Topic[O]) Ahead(known Known, scope Scope) (*Cursor[O], error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known.All <= t.watermark {
		return t.resume(known, scope)
	}
	return &Cursor[O]{topic: t, scope: scope, next: t.ring.next, generation: t.generation, known: known}, nil
}

// leapt reports whether a relist passed over something that a client knows, or knows all before and some after. The
// difference that it found does not say what of that has gone again; but if it is the very one in whose burst the
// client was cut off, it can be told again.
func (t *Topic[O]) leapt(known Known) bool {
	if known.All < t.forgottenGap {
		return true
	}
	for _, g := range t.gaps {
		if g.from < known.Some && known.All < g.to && g != (gap{known.All, known.Some}) {
			return true
		}
	}
	return false
}

// evictions are those that concern a scope.
func (t *Topic[O]) evictions(scope Scope) []eviction {
	if scope.All() {
		return []eviction{t.ring.evicted}
	}
	found := make([]eviction, len(scope.namespaces))
	for i, namespace := range scope.namespaces {
		found[i] = t.forgotten
		if c := t.chains[namespace]; c != nil {
			found[i] = c.evicted
		}
	}
	return found
}
