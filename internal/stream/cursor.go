package stream

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// NamespaceSet says which events a cursor reads: those of all namespaces, or of some.
type NamespaceSet struct{ names []string }

// AllNamespaces has everything, also what is in no namespace.
func AllNamespaces() NamespaceSet { return NamespaceSet{} }

// Namespaces has some namespaces, at least one.
func Namespaces(namespaces ...string) NamespaceSet {
	// In the order of Kubernetes' lists, which is that of etcd's keys: team-a/… comes before team/….
	sorted := slices.SortedFunc(slices.Values(namespaces), func(a, b string) int { return strings.Compare(a+"/", b+"/") })
	return NamespaceSet{slices.Compact(sorted)}
}

// All reports whether the set has everything.
func (s NamespaceSet) All() bool { return len(s.names) == 0 }

// Namespaces are those of the set, each once, in the order of Kubernetes' lists; none if it has
// everything.
func (s NamespaceSet) Namespaces() []string { return s.names }

// Contains reports whether the set has the events of a namespace.
func (s NamespaceSet) Contains(namespace string) bool {
	return s.All() || slices.Contains(s.names, namespace)
}

// Cursor is one reader's place in a topic, or in a backlog that ends where the topic's ring goes
// on. It is for one goroutine.
type Cursor[O Object[O]] struct {
	topic      *Topic[O]
	namespaces NamespaceSet
	backlog    *backlog[O] // comes before what is in the ring; nil once it is read
	next       uint64      // number of the next event to look at
	joined     uint64      // the version after which it reads the ring
	generation int
	known      Known  // what its client knew at the beginning of the ring
	knew       Known  // the same at the beginning of the backlog, if there is one
	passed     bool   // all that the client knew was read
	sole       uint64 // the number of the event that was alone in the version of which the client was told something
	armed      []registration
}

// Next appends the events that follow to batch, up to its capacity, and moves the cursor behind them. It does not
// wait: a batch that is not full means that there is no more. The batch must have room for at least one event.
//
// If there is no more, the cursor is armed in the same step: the next event wakes the waiter, even if it comes while
// the client is still being told the batch. The cursor stays armed until it has woken the waiter, or is disarmed. A
// nil waiter arms nothing.
//
// The position is the version that the client may claim once it has been told the whole batch. An error is final for
// the cursor: ErrSlow, ErrEpoch, or ErrExpired if a relist passed over what the client knew at the beginning.
func (c *Cursor[O]) Next(batch []*Event[O], w Waiter) (_ []*Event[O], position uint64, err error) {
	t := c.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := c.err(); err != nil {
		return batch, 0, err
	}
	if c.backlog != nil {
		t.mu.Unlock() // a backlog may be long
		batch, position = c.nextOfBacklog(batch)
		t.mu.Lock()
		if len(batch) == cap(batch) {
			return batch, position, nil
		}
		if err := c.err(); err != nil {
			return batch, 0, err
		}
	}
	caughtUp := len(batch)
	for {
		if c.namespaces.All() {
			for c.next < t.ring.next && len(batch) < cap(batch) {
				batch = append(batch, t.ring.at(c.next))
				c.next++
			}
		} else {
			batch = c.nextOfChains(batch)
		}
		position = t.complete()
		if c.next != t.ring.next {
			position = batch[len(batch)-1].ID
		}
		if c.needsDeduplication() {
			live := slices.DeleteFunc(batch[caughtUp:], c.told)
			batch = batch[:caughtUp+len(live)]
			if position >= c.known.Some {
				c.passed = true
			}
			position = max(position, c.known.All)
		}
		if len(batch) == cap(batch) {
			return batch, position, nil
		}
		if c.next == t.ring.next {
			if w != nil {
				c.arm(w)
			}
			return batch, position, nil
		}
	}
}

// Until returns the events between the cursor and a head of its topic, which must not lie before the cursor.
// Afterwards the cursor can only be disarmed. The errors are those of Next.
func (c *Cursor[O]) Until(head Head) ([]*Event[O], error) {
	t := c.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.generation != head.generation {
		return nil, ErrEpoch
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	events := c.restOfBacklog()
	for c.next < head.seq {
		event, ok := c.following(head.seq)
		if !ok {
			break
		}
		if !c.told(event) {
			events = append(events, event)
		}
	}
	return events, nil
}

// Pending is what Until returns, and leaves the cursor where it is.
func (c *Cursor[O]) Pending(head Head) ([]*Event[O], error) {
	reading := *c
	reading.armed = nil
	if c.backlog != nil {
		backlog := *c.backlog
		reading.backlog = &backlog
	}
	return reading.Until(head)
}

// Place is where a cursor stands that reads the ring.
type Place struct {
	generation int
	next       uint64
}

// Compare says whether a place is before another (-1), the same (0), or behind it (1). Places in
// different histories cannot be compared.
func (p Place) Compare(other Place) (order int, ok bool) {
	return cmp.Compare(p.next, other.next), p.generation == other.generation
}

// Place is where the cursor stands. It is false as long as what comes next depends on what the
// cursor's client knew at the beginning.
func (c *Cursor[O]) Place() (Place, bool) {
	return Place{c.generation, c.next}, c.backlog == nil && !c.needsDeduplication()
}

// Clone returns a cursor of the same namespaces that goes on from a place.
func (c *Cursor[O]) Clone(from Place) *Cursor[O] {
	return &Cursor[O]{topic: c.topic, namespaces: c.namespaces, generation: from.generation, next: from.next}
}

// Move goes to a place where another cursor of the same namespaces has stood, and which is not
// before its own.
func (c *Cursor[O]) Move(to Place) { c.generation, c.next = to.generation, to.next }

// needsDeduplication reports whether the client may know some of the events that come.
func (c *Cursor[O]) needsDeduplication() bool { return c.known.Some > 0 && !c.passed }

// told reports whether the client was told an event of the ring before it came back. It was in two
// cases: its position covers the event; or the event is the only one of the version behind its
// position, and the client was told something of that version. The second is so of a client that
// was told a deletion last. It is not if the client is told something of its position's own version
// again: that takes back what it knew of the version behind.
func (c *Cursor[O]) told(e *Event[O]) bool {
	if e.floor() <= c.known.All {
		return true
	}
	if e.Pos == c.knew.All {
		c.knew = Known{}
	}
	if !c.knew.isNext(e.Pos) || e.relistDiff || e.tie || c.topic.continues(e) && e.seq != c.sole {
		return false
	}
	c.sole = e.seq // for the client it remains that, whatever else comes of the version
	return true
}

// continues reports whether the event behind one in the ring shares its version.
func (t *Topic[O]) continues(e *Event[O]) bool {
	return e.seq+1 < t.ring.next && t.ring.at(e.seq+1).Pos == e.Pos
}

// following returns the next event of the namespaces whose number is below end, and moves the
// cursor behind it. If there is none, the cursor moves to end.
func (c *Cursor[O]) following(end uint64) (event *Event[O], ok bool) {
	seq := c.next
	if !c.namespaces.All() {
		seq = end
		for _, namespace := range c.namespaces.names {
			if first, ok := c.topic.chains[namespace].after(c.next); ok {
				seq = min(seq, first)
			}
		}
	}
	if seq >= end {
		c.next = end
		return nil, false
	}
	c.next = seq + 1
	return c.topic.ring.at(seq), true
}

// nextOfChains merges the chains of the namespaces in the order of their events' numbers.
func (c *Cursor[O]) nextOfChains(batch []*Event[O]) []*Event[O] {
	for len(batch) < cap(batch) {
		event, ok := c.following(c.topic.ring.next)
		if !ok {
			break
		}
		batch = append(batch, event)
	}
	return batch
}

// after is the number of the chain's first event at or after seq; a nil chain has none.
func (c *chain) after(seq uint64) (uint64, bool) {
	if c == nil {
		return 0, false
	}
	pending := c.seqs.pending()
	if n := len(pending); n == 0 || pending[n-1] < seq {
		return 0, false
	}
	i := sort.Search(len(pending), func(i int) bool { return pending[i] >= seq })
	return pending[i], true
}

// err says why the cursor cannot be read any further; nil if it can.
func (c *Cursor[O]) err() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.needsDeduplication() && c.topic.passedByRelist(c.known) {
		return ErrExpired
	}
	return nil
}

// Void reports whether another history has begun, in which the cursor's place means nothing: Next fails with ErrEpoch.
func (c *Cursor[O]) Void() bool {
	c.topic.mu.Lock()
	defer c.topic.mu.Unlock()
	return c.generation != c.topic.generation
}

func (c *Cursor[O]) check() error {
	if c.generation != c.topic.generation {
		return ErrEpoch
	}
	if c.namespaces.All() {
		if c.next < c.topic.ring.evicted.seq {
			return ErrSlow
		}
		return nil
	}
	for _, namespace := range c.namespaces.names {
		evicted := c.topic.forgotten
		if chain := c.topic.chains[namespace]; chain != nil {
			evicted = chain.evicted
		}
		if c.next < evicted.seq {
			return ErrSlow
		}
	}
	return nil
}

// arm registers the waiter to be woken by the next event of the namespaces.
func (c *Cursor[O]) arm(w Waiter) {
	t := c.topic
	if c.armed == nil {
		c.armed = make([]registration, max(1, len(c.namespaces.names)))
	}
	for i := range c.armed {
		r := &c.armed[i]
		r.waiter = w
		if r.list != nil {
			continue // has not been woken since it was armed
		}
		if c.namespaces.All() {
			t.everyone.add(r)
		} else {
			t.chain(c.namespaces.names[i]).waiting.add(r)
		}
	}
}

// Disarm takes back what Next armed: the waiter is no longer woken. It must be called when the reader ends, or the
// topic holds the waiter for ever.
func (c *Cursor[O]) Disarm() {
	c.topic.mu.Lock()
	defer c.topic.mu.Unlock()
	for i := range c.armed {
		c.armed[i].remove()
	}
}
