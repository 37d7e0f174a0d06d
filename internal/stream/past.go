package stream

import "slices"

// past is history that the ring no longer holds, read from elsewhere: the events of all namespaces, in order, up to
// the place in the ring at which the cursor goes on.
type past[O Object[O]] struct {
	events []*Event[O] // shared by all cursors that need them; never changed
	read   int
}

// CaughtUp returns a cursor for a client that Resume refused: it reads what happened in the meantime from a past, and
// goes on at a head of this topic. The past must begin after the version before known.All, so that it has all events
// of known.All itself. As in Resume, the client has been told the first of those, and is told the rest again.
func (t *Topic[O]) CaughtUp(head Head, events []*Event[O], known Known, scope Scope) *Cursor[O] {
	for len(events) > 0 && events[0].Pos < known.All {
		events = events[1:]
	}
	if len(events) > 0 && events[0].Pos == known.All {
		events = events[1:]
	}
	knew := known
	if slices.ContainsFunc(events, func(e *Event[O]) bool {
		return e.Pos == known.All && scope.Contains(e.Object.GetNamespace())
	}) {
		knew = Known{} // as in Cursor.told
	}
	events = withoutSole(events, knew)
	// What the client may know beyond the head is yet to come here, and a relist may still pass over it.
	after := Known{All: max(known.All, head.Version), Some: max(known.Some, head.Version)}
	c := &Cursor[O]{topic: t, scope: scope, next: head.seq, joined: head.Version, generation: head.generation, known: after, knew: knew}
	if len(events) > 0 {
		c.past = &past[O]{events: events}
	}
	return c
}

// withoutSole leaves out the only event of the version of which the client was told something; see Cursor.told.
func withoutSole[O Object[O]](events []*Event[O], known Known) []*Event[O] {
	i := slices.IndexFunc(events, func(e *Event[O]) bool { return known.isNext(e.Pos) })
	if i < 0 || i+1 < len(events) && events[i+1].Pos == events[i].Pos {
		return events
	}
	return slices.Concat(events[:i], events[i+1:])
}

// nextOfPast appends the events of the scope that follow in the past, up to batch's capacity.
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
		c.past = nil // let it be freed: it is large
	}
	return batch, position
}

// restOfPast returns what is left of the past in the scope, and drops the past.
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

// Back takes the cursor back to before untold, which is the end of the batch that Next returned last: the client has
// not been told it, and it is to be read again. The ring does not keep these events for the reader: the next Next may
// fail with ErrSlow.
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
