package stream

import "slices"

// past is what happened before the ring begins, read from elsewhere: of all namespaces, in order, up to the place in the
// ring at which its cursor goes on.
type past[O Object[O]] struct {
	events []*Event[O] // shared by all who need them
	read   int
}

// CaughtUp is a cursor for a client that Resume refused: it reads what happened in the meantime from a past, and goes on
// at a head of this topic. The past is what happened after the version before known.All, so it has all that shares that
// version. The client has been told the first of them, as in Resume: it is told the rest again.
func (t *Topic[O]) CaughtUp(head Head, events []*Event[O], known Known, scope Scope) *Cursor[O] {
	for len(events) > 0 && events[0].Pos < known.All {
		events = events[1:]
	}
	if len(events) > 0 && events[0].Pos == known.All {
		events = events[1:]
	}
	// What it may know beyond the head is yet to come here, and a relist may pass over it.
	after := Known{All: max(known.All, head.Version), Some: max(known.Some, head.Version)}
	c := &Cursor[O]{topic: t, scope: scope, next: head.seq, generation: head.generation, known: after}
	if len(events) > 0 {
		c.past = &past[O]{events: events}
	}
	return c
}

// nextOfPast appends to batch what follows in the past.
func (c *Cursor[O]) nextOfPast(batch []*Event[O]) (_ []*Event[O], position uint64) {
	p := c.past
	for p.read < len(p.events) && len(batch) < cap(batch) {
		event := p.events[p.read]
		p.read++
		position = event.ID
		if c.scope.Contains(event.Object.GetNamespace()) {
			batch = append(batch, event)
		}
	}
	if p.read == len(p.events) {
		c.past = nil // it is large
	}
	return batch, position
}

// restOfPast is all of the past that is left, which has been read then.
func (c *Cursor[O]) restOfPast() (events []*Event[O]) {
	if c.past == nil {
		return nil
	}
	for _, event := range c.past.events[c.past.read:] {
		if c.scope.Contains(event.Object.GetNamespace()) {
			events = append(events, event)
		}
	}
	c.past = nil
	return events
}

// Back takes the cursor back by the end of the batch that Next gave last: it has not been told, and is to be read again.
// The ring does not keep it for the reader: by then it may be too slow.
func (c *Cursor[O]) Back(untold []*Event[O]) {
	caughtUp := 0
	for caughtUp < len(untold) && untold[caughtUp].seq == 0 {
		caughtUp++
	}
	if caughtUp < len(untold) {
		c.next = untold[caughtUp].seq
	}
	switch {
	case caughtUp == 0:
	case c.past == nil:
		c.past = &past[O]{events: slices.Clone(untold[:caughtUp])}
	default:
		for c.past.read > 0 && c.past.events[c.past.read-1] != untold[0] {
			c.past.read--
		}
		c.past.read--
	}
}
