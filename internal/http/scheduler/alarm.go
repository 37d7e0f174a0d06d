package scheduler

import (
	"container/heap"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Alarm wakes entries when something is due, with one timer for all of them. Waking the process costs much more than
// what an idle stream then has to do. So times that need not be exact are put on common ticks, and each tick wakes the
// process once. It may be used by any goroutine.
type Alarm struct {
	began time.Time

	mu      sync.Mutex
	moments map[time.Duration]*moment // by the time since the alarm began
	heap    momentHeap                // the same; the first is due first
	timer   *time.Timer               // nil before the first is set
}

// tick is how far apart due times are gathered.
const tick = 100 * time.Millisecond

// AlarmEntry is a place in an Alarm. It rings once for each time that it is set.
type AlarmEntry struct {
	Wake func() // is called when it rings; set before the entry is

	rings      time.Time   // when it rings, or rang; of Keep only
	moment     *moment     // nil: it is not set
	prev, next *AlarmEntry // those that ring at the same moment
	rang       atomic.Bool // since it was set
}

// moment is a time at which something rings. Of a hundred thousand idle streams, hundreds share one.
type moment struct {
	at    time.Time
	since time.Duration // the same, since the alarm began
	first *AlarmEntry
	index int // in the heap
}

// NewAlarm returns an Alarm that has no entries.
func NewAlarm() *Alarm { return &Alarm{began: time.Now(), moments: map[time.Duration]*moment{}} }

// Gathered is the last tick that is not after what is due after an interval from now. If the interval is short, ticks
// are closer together.
func (a *Alarm) Gathered(after time.Duration) time.Time {
	now := time.Now()
	grain := max(min(tick, after/8), 1)
	if at := a.began.Add(now.Add(after).Sub(a.began) / grain * grain); at.After(now) {
		return at
	}
	return now.Add(after)
}

// Set makes an entry ring at a time, and at no other time.
func (a *Alarm) Set(e *AlarmEntry, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.rang.Store(false)
	a.unset(e)
	since := at.Sub(a.began)
	m := a.moments[since]
	if m == nil {
		m = &moment{at: at, since: since}
		a.moments[since] = m
		heap.Push(&a.heap, m)
		if m.index == 0 {
			a.arm()
		}
	}
	if e.next = m.first; e.next != nil {
		e.next.prev = e
	}
	m.first, e.moment = e, m
}

// Keep makes an entry ring at a time, unless it is to do so already. One that rang before its time, whatever the reason, rings
// again. An entry has one goroutine at a time that calls Keep.
func (a *Alarm) Keep(e *AlarmEntry, at time.Time) {
	if at != e.rings || e.rang.Load() {
		e.rings = at
		a.Set(e, at)
	}
}

// Remove makes sure that an entry rings no more.
func (a *Alarm) Remove(e *AlarmEntry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unset(e)
}

// unset takes an entry off its moment. A moment without any is gone: it would wake the process for nothing. The caller
// holds the lock.
func (a *Alarm) unset(e *AlarmEntry) {
	m := e.moment
	if m == nil {
		return
	}
	if e.next != nil {
		e.next.prev = e.prev
	}
	if e.prev != nil {
		e.prev.next = e.next
	} else if m.first = e.next; m.first == nil {
		heap.Remove(&a.heap, m.index)
		delete(a.moments, m.since)
	}
	e.moment, e.prev, e.next = nil, nil, nil
}

// arm sets the timer for the first moment. The caller holds the lock.
func (a *Alarm) arm() {
	if len(a.heap) == 0 {
		return
	}
	after := time.Until(a.heap[0].at)
	if a.timer == nil {
		a.timer = time.AfterFunc(after, a.ring)
	} else {
		a.timer.Reset(after)
	}
}

// ring wakes the entries whose time has come.
func (a *Alarm) ring() {
	a.mu.Lock()
	var due []*AlarmEntry
	for now := time.Now(); len(a.heap) > 0 && !a.heap[0].at.After(now); {
		m := heap.Pop(&a.heap).(*moment)
		delete(a.moments, m.since)
		for e := m.first; e != nil; {
			next := e.next
			e.moment, e.prev, e.next = nil, nil, nil
			e.rang.Store(true)
			due = append(due, e)
			e = next
		}
	}
	a.arm()
	a.mu.Unlock()
	for _, e := range due {
		e.Wake()
	}
}

// momentHeap implements heap.Interface; the first is due first.
type momentHeap []*moment

func (h momentHeap) Len() int           { return len(h) }
func (h momentHeap) Less(i, j int) bool { return h[i].since < h[j].since }
func (h momentHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *momentHeap) Push(x any) {
	m := x.(*moment)
	m.index = len(*h)
	*h = append(*h, m)
}

func (h *momentHeap) Pop() any {
	last := len(*h) - 1
	m := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return m
}

// Between is a random duration from low to high, for what must not happen everywhere at once.
func Between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + rand.N(high-low)
}
