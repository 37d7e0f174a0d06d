package stream

import "slices"

// backlog is history that the ring no longer holds, read from elsewhere: the events of all
// namespaces, in order, up to the place in the ring at which the cursor goes on.
type backlog[O Object[O]] struct {
	events []*Event[O] // shared by all cursors that need them; never changed
	read   int
}

// CaughtUp returns a cursor for a client that Resume refused: it reads what happened in the
// meantime from a backlog, and goes on at a head of this topic. The backlog must begin after the
// version before known.All, so that it has all events of known.All itself. As in Resume, the client
// has been told the first of those, and is told the rest again.
func (t *Topic[O]) CaughtUp(head Head, events []*Event[O], known Known, namespaces NamespaceSet) *Cursor[O] {
	for len(events) > 0 && events[0].Pos < known.All {
		events = events[1:]
	}
	if len(events) > 0 && events[0].Pos == known.All {
		events = events[1:]
	}
	knew := known
	if slices.ContainsFunc(events, func(e *Event[O]) bool {
		return e.Pos == known.All && namespaces.Contains(e.Object.GetNamespace())
	}) {
		knew = Known{} // as in Cursor.told
	}
	events = withoutSole(events, knew)
	// What the client may know beyond the head is yet to come here, and a relist may still pass over it.
	after := Known{All: max(known.All, head.Version), Some: max(known.Some, head.Version)}
	c := &Cursor[O]{topic: t, namespaces: namespaces, next: head.seq, joined: head.Version, generation: head.generation, known: after, knew: knew}
	if len(events) > 0 {
		c.backlog = &backlog[O]{events: events}
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

// nextOfBacklog appends the events that follow in the backlog, up to batch's capacity.
func (c *Cursor[O]) nextOfBacklog(batch []*Event[O]) (_ []*Event[O], position uint64) {
	p := c.backlog
	for p.read < len(p.events) && len(batch) < cap(batch) {
		event := p.events[p.read]
		p.read++
		position = event.ID
		if c.namespaces.Contains(event.Object.GetNamespace()) {
			batch = append(batch, event)
		}
	}
	if p.read == len(p.events) {
		c.backlog = nil // let it be freed: it is large
	}
	return batch, position
}

// restOfBacklog returns what is left of the backlog, and drops it.
func (c *Cursor[O]) restOfBacklog() (events []*Event[O]) {
	if c.backlog == nil {
		return nil
	}
	for _, event := range c.backlog.events[c.backlog.read:] {
		if c.namespaces.Contains(event.Object.GetNamespace()) {
			events = append(events, event)
		}
	}
	c.backlog = nil
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
	case c.backlog == nil:
		c.backlog = &backlog[O]{events: slices.Clone(untold[:caughtUp])}
	default:
		for c.backlog.read > 0 && c.backlog.events[c.backlog.read-1] != untold[0] {
			c.backlog.read--
		}
		c.backlog.read--
	}
}
