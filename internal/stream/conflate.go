package stream

import (
	"container/heap"
	"time"
)

// Conflator holds modifications back for a client that asked for at most one of each object in an interval: the
// latest wins. What it holds is bounded by the number of objects that change within an interval. It is for one
// goroutine.
//
// A client must not claim a version before it was told everything up to it. Claim says how far it may go while
// something is held.
//
// Objects are told apart by namespace and name, since not every API server gives them a uid.
type Conflator[O Object[O]] struct {
	interval time.Duration
	emitted  map[objectKey]time.Time // when each object was last told, if within about an interval
	held     map[objectKey]*Held[O]
	due      dueHeap[O]
	order    []*Held[O] // as they were first held, which is by version; released ones stay until Claim skips them
	swept    time.Time
}

type objectKey struct{ namespace, name string }

func keyOf[O Object[O]](o O) objectKey { return objectKey{o.GetNamespace(), o.GetName()} }

// Held is a modification that was held back.
type Held[O Object[O]] struct {
	Event *Event[O] // the latest
	Base  O         // the object as the client has it; the zero value if that is not known

	key      objectKey
	claim    uint64 // the highest version that a client may claim before it is told
	due      time.Time
	index    int  // in the heap
	released bool // it is not held any more
}

// NewConflator returns a conflator that holds nothing yet.
func NewConflator[O Object[O]](interval time.Duration) *Conflator[O] {
	return &Conflator[O]{interval: interval, emitted: map[objectKey]time.Time{}, held: map[objectKey]*Held[O]{}}
}

// Offer takes a modification, and the object as the client has it (the zero value if that is not known). It reports
// whether the modification is to be told at once. If not, Due returns it later, or a newer one of the same object.
func (c *Conflator[O]) Offer(e *Event[O], base O, now time.Time) (emit bool) {
	key := keyOf(e.Object)
	if h := c.held[key]; h != nil {
		h.Event = e
		return false
	}
	if last, ok := c.emitted[key]; ok && now.Sub(last) < c.interval {
		h := &Held[O]{Event: e, Base: base, key: key, claim: min(e.ID, e.Pos-1), due: last.Add(c.interval)}
		c.held[key] = h
		c.order = append(c.order, h)
		heap.Push(&c.due, h)
		return false
	}
	c.mark(key, now)
	return true
}

// Drop forgets what is held of an object, because the client is told of it by other means: as added or as deleted.
func (c *Conflator[O]) Drop(o O) {
	key := keyOf(o)
	if h := c.held[key]; h != nil {
		heap.Remove(&c.due, h.index)
		c.release(h)
	}
	delete(c.emitted, key)
}

// Due returns a modification whose time has come, or nil.
func (c *Conflator[O]) Due(now time.Time) *Held[O] {
	if len(c.due) == 0 || c.due[0].due.After(now) {
		return nil
	}
	return c.Early(now)
}

// Early returns a modification although its time may not have come, or nil. The next one of its
// object is held back as ever.
func (c *Conflator[O]) Early(now time.Time) *Held[O] {
	if len(c.due) == 0 {
		return nil
	}
	h := heap.Pop(&c.due).(*Held[O])
	c.release(h)
	c.mark(h.key, now)
	return h
}

// Next is when Due will have something to return; the zero time if nothing is held.
func (c *Conflator[O]) Next() time.Time {
	if len(c.due) == 0 {
		return time.Time{}
	}
	return c.due[0].due
}

// Claim is the highest version that a client may claim, once each event up to the given one was either told or is
// held.
func (c *Conflator[O]) Claim(version uint64) uint64 {
	for len(c.order) > 0 && c.order[0].released {
		c.order[0] = nil
		c.order = c.order[1:]
	}
	if len(c.order) > 0 {
		return min(version, c.order[0].claim)
	}
	return version
}

func (c *Conflator[O]) release(h *Held[O]) {
	h.released = true
	delete(c.held, h.key)
}

// mark remembers when an object was told. About once in an interval, it forgets the times that lie further back than
// that.
func (c *Conflator[O]) mark(key objectKey, now time.Time) {
	if now.Sub(c.swept) >= c.interval {
		for k, at := range c.emitted {
			if now.Sub(at) >= c.interval {
				delete(c.emitted, k)
			}
		}
		c.swept = now
	}
	c.emitted[key] = now
}

// dueHeap implements heap.Interface; its first element is due first.
type dueHeap[O Object[O]] []*Held[O]

func (d dueHeap[O]) Len() int           { return len(d) }
func (d dueHeap[O]) Less(i, j int) bool { return d[i].due.Before(d[j].due) }
func (d dueHeap[O]) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

func (d *dueHeap[O]) Push(x any) {
	h := x.(*Held[O])
	h.index = len(*d)
	*d = append(*d, h)
}

func (d *dueHeap[O]) Pop() any {
	last := len(*d) - 1
	h := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return h
}
