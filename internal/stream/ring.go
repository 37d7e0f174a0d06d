package stream

// ring holds the events with sequence numbers from evicted.seq up to, but without, next. It doubles its size when it
// is full, until it has reached its bound.
type ring[O Object[O]] struct {
	slots   []*Event[O] // the event with number n is in slot n % len
	next    uint64
	evicted eviction
	held    map[O]int // its events' objects, and how often each occurs: mostly as one's Object and the next one's Old
	bytes   int64     // what the held objects occupy, each counted once
}

func (r *ring[O]) len() int { return int(r.next - r.evicted.seq) }

func (r *ring[O]) at(seq uint64) *Event[O] { return r.slots[seq%uint64(len(r.slots))] }

func (r *ring[O]) oldest() *Event[O] { return r.at(r.evicted.seq) }

// push appends an event and returns its number. Until the next eviction, the ring may hold one event more than its
// bound.
func (r *ring[O]) push(event *Event[O], bound int) (seq uint64) {
	if r.len() == len(r.slots) {
		r.grow(bound)
	}
	seq = r.next
	r.slots[seq%uint64(len(r.slots))] = event
	r.next++
	r.hold(event.Object)
	r.hold(event.Old)
	return seq
}

// hold counts one more use of an object. Its size counts once, however many events have it.
func (r *ring[O]) hold(o O) {
	var none O
	if o == none {
		return
	}
	if r.held == nil {
		r.held = map[O]int{}
	}
	if r.held[o]++; r.held[o] == 1 {
		r.bytes += int64(o.Size())
	}
}

func (r *ring[O]) release(o O) {
	var none O
	switch n := r.held[o]; {
	case o == none:
	case n > 1:
		r.held[o] = n - 1
	default:
		delete(r.held, o)
		r.bytes -= int64(o.Size())
	}
}

func (r *ring[O]) grow(bound int) {
	size := max(16, 2*len(r.slots))
	if len(r.slots) <= bound && size > bound {
		size = bound + 1
	}
	slots := make([]*Event[O], size)
	for seq := r.evicted.seq; seq < r.next; seq++ {
		slots[seq%uint64(size)] = r.at(seq)
	}
	r.slots = slots
}

// pop evicts the oldest event.
func (r *ring[O]) pop() *Event[O] {
	event := r.oldest()
	r.slots[r.evicted.seq%uint64(len(r.slots))] = nil
	r.release(event.Object)
	r.release(event.Old)
	r.evicted = eviction{seq: r.evicted.seq + 1, pos: event.floor()}
	return event
}

// evictAll empties the ring. From now on, positions before the version are too old, and so is every place of a
// cursor: the number that is skipped stands for the content of the list at that version, which no cursor has read.
func (r *ring[O]) evictAll(version uint64) {
	clear(r.slots)
	r.held, r.bytes = nil, 0
	r.next++
	r.evicted = eviction{seq: r.next, pos: version}
}

// numbers is a queue of ascending sequence numbers.
type numbers struct {
	items []uint64
	head  int
}

func (n *numbers) push(seq uint64) { n.items = append(n.items, seq) }

func (n *numbers) pop() {
	n.head++
	switch {
	case n.head == len(n.items):
		n.clear() // a namespace that was busy once must not keep its memory for ever
	case n.head > 32 && n.head > len(n.items)/2:
		n.items = append(n.items[:0], n.items[n.head:]...)
		n.head = 0
	}
}

func (n *numbers) clear() { n.items, n.head = nil, 0 }

func (n *numbers) pending() []uint64 { return n.items[n.head:] }
