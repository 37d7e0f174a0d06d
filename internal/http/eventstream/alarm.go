package eventstream

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"
)

// alarm wakes sessions when something is due, with one timer for all of them. Waking the process costs much more than
// what an idle stream then has to do. So times that need not be exact are put on common ticks, and each tick wakes the
// process once.
type alarm struct {
	began time.Time

	mu    sync.Mutex
	heap  alarmHeap
	timer *time.Timer // nil before the first is set
}

// tick is how far apart due times are gathered.
const tick = 100 * time.Millisecond

// entry is a session's place in an alarm. It rings once for each time that it is set.
type entry struct {
	wake  func()
	at    time.Time
	index int         // in the heap; -1: is not set
	rang  atomic.Bool // since it was set
}

func newAlarm() *alarm { return &alarm{began: time.Now()} }

// gathered is the last tick that is not after what is due after an interval from now. If the interval is short, ticks
// are closer together.
func (a *alarm) gathered(after time.Duration) time.Time {
	now := time.Now()
	grain := max(min(tick, after/8), 1)
	if at := a.began.Add(now.Add(after).Sub(a.began) / grain * grain); at.After(now) {
		return at
	}
	return now.Add(after)
}

// set makes an entry ring at a time, and at no other time.
func (a *alarm) set(e *entry, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.at = at
	e.rang.Store(false)
	if e.index < 0 {
		heap.Push(&a.heap, e)
	} else {
		heap.Fix(&a.heap, e.index)
	}
	if e.index == 0 {
		a.arm()
	}
}

// remove makes sure that an entry rings no more.
func (a *alarm) remove(e *entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.index >= 0 {
		heap.Remove(&a.heap, e.index)
	}
}

// arm sets the timer for the first entry. The caller holds the lock.
func (a *alarm) arm() {
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

// ring wakes the sessions whose time has come.
func (a *alarm) ring() {
	a.mu.Lock()
	var due []*entry
	for now := time.Now(); len(a.heap) > 0 && !a.heap[0].at.After(now); {
		e := heap.Pop(&a.heap).(*entry)
		e.rang.Store(true)
		due = append(due, e)
	}
	a.arm()
	a.mu.Unlock()
	for _, e := range due {
		e.wake()
	}
}

// alarmHeap implements heap.Interface; the first is due first.
type alarmHeap []*entry

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *alarmHeap) Push(x any) {
	e := x.(*entry)
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *alarmHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.index = -1
	return e
}
