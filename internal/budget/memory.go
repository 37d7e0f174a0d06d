package budget

import (
	"container/heap"
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// Memory accounts for results that are kept in memory only because a user may ask for them again. All together never
// exceed its bound: if they would, the user who holds most has to forget results, beginning with the one that was not
// asked for the longest. So a user can displace only their own results, or those of a user who holds more. A result
// that is not asked for is also forgotten after a time.
type Memory struct {
	bound int64
	now   atomic.Int64 // the time, in ticks

	mu      sync.Mutex
	held    int64
	users   map[string]*account
	most    accounts
	ticking bool
}

// tick is the precision of the time after which a result is forgotten: it is forgotten at most one tick too early.
const tick = 500 * time.Millisecond

// NewMemory returns a memory bounded to so many bytes.
func NewMemory(bound int64) *Memory { return &Memory{bound: bound, users: map[string]*account{}} }

// account is what one user holds.
type account struct {
	user    string
	bytes   int64
	entries list.List // of *Entry, the oldest first; oldest moves those that were asked for since to the end
	index   int       // in the heap
}

// Entry is one result that is kept.
type Entry struct {
	memory  *Memory
	account *account // nil unless it is charged
	place   *list.Element
	user    string
	bytes   int64
	keep    int64 // how long it is kept after its last use, in ticks
	used    atomic.Int64
	listed  int64 // the value of used when it got its place
	drop    func()
	measure func() int64
	over    bool
}

// Enter prepares the entry of a result, which a user owns. If the result was not used for keep, or
// the memory is full, drop is called to forget it. Nothing is charged before Set. Drop is called at
// most once, by any goroutine, during Set or later.
func (m *Memory) Enter(user string, keep time.Duration, drop func()) *Entry {
	e := &Entry{memory: m, user: user, keep: int64(keep / tick), drop: drop}
	e.used.Store(m.now.Load())
	return e
}

// Measure makes the entry follow a size that changes by itself: size is called at each tick.
func (e *Entry) Measure(size func() int64) *Entry {
	e.measure = size
	return e
}

// Use records that the result was asked for.
func (e *Entry) Use() {
	if now := e.memory.now.Load(); e.used.Load() != now {
		e.used.Store(now)
	}
}

// Set charges so many bytes from now on. Other results may be forgotten for that, or this one itself.
func (e *Entry) Set(bytes int64) {
	m := e.memory
	m.mu.Lock()
	if e.over {
		m.mu.Unlock()
		return
	}
	if e.account == nil {
		m.list(e)
	}
	m.add(e, bytes-e.bytes)
	var dropped []*Entry
	for m.held > m.bound {
		victim := m.most[0].oldest()
		m.unlist(victim)
		dropped = append(dropped, victim)
	}
	m.mu.Unlock()
	forget(dropped)
}

// Release removes the entry of a result that the caller has forgotten by itself. Drop is not called.
func (e *Entry) Release() {
	e.memory.mu.Lock()
	defer e.memory.mu.Unlock()
	e.memory.unlist(e)
}

// Held returns how many bytes are charged, and to how many users.
func (m *Memory) Held() (bytes int64, users int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held, len(m.users)
}

func (m *Memory) list(e *Entry) {
	e.account = m.users[e.user]
	if e.account == nil {
		e.account = &account{user: e.user}
		m.users[e.user] = e.account
		heap.Push(&m.most, e.account)
	}
	e.listed = e.used.Load()
	e.place = e.account.entries.PushBack(e)
	if !m.ticking {
		m.ticking = true
		time.AfterFunc(tick, m.tick)
	}
}

// unlist removes an entry. If nothing was charged yet, nothing ever will be.
func (m *Memory) unlist(e *Entry) {
	e.over = true
	if e.account == nil {
		return
	}
	m.add(e, -e.bytes)
	a := e.account
	a.entries.Remove(e.place)
	e.account, e.place = nil, nil
	if a.entries.Len() == 0 {
		heap.Remove(&m.most, a.index)
		delete(m.users, a.user)
	}
}

func (m *Memory) add(e *Entry, bytes int64) {
	e.bytes += bytes
	e.account.bytes += bytes
	m.held += bytes
	heap.Fix(&m.most, e.account.index)
}

// tick drops what was not used for too long, and measures what has a Measure. It runs while anything is kept.
func (m *Memory) tick() {
	now := m.now.Add(1)
	var dropped, measured []*Entry
	m.mu.Lock()
	for _, a := range m.users {
		for at := a.entries.Front(); at != nil; at = at.Next() {
			switch e := at.Value.(*Entry); {
			case now-e.used.Load() >= e.keep:
				dropped = append(dropped, e)
			case e.measure != nil:
				measured = append(measured, e)
			}
		}
	}
	for _, e := range dropped {
		m.unlist(e)
	}
	if m.ticking = len(m.users) > 0; m.ticking {
		time.AfterFunc(tick, m.tick)
	}
	m.mu.Unlock()
	forget(dropped)
	for _, e := range measured {
		e.Set(e.measure())
	}
}

// forget is called without the lock, since drop functions take locks of their own.
func forget(dropped []*Entry) {
	for _, e := range dropped {
		e.drop()
	}
}

// oldest returns the entry that the account has to forget next.
func (a *account) oldest() *Entry {
	for {
		e := a.entries.Front().Value.(*Entry)
		used := e.used.Load()
		if used == e.listed {
			return e
		}
		e.listed = used
		a.entries.MoveToBack(e.place)
	}
}

// accounts implements heap.Interface; the first account holds most.
type accounts []*account

func (a accounts) Len() int           { return len(a) }
func (a accounts) Less(i, j int) bool { return a[i].bytes > a[j].bytes }
func (a accounts) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = i, j
}

func (a *accounts) Push(x any) {
	added := x.(*account)
	added.index = len(*a)
	*a = append(*a, added)
}

func (a *accounts) Pop() any {
	last := len(*a) - 1
	removed := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	return removed
}
