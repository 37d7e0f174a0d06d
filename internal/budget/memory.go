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
	charges list.List // of *Charge, the oldest first; oldest moves those that were asked for since to the end
	index   int       // in the heap
}

// Charge is one result that is kept.
type Charge struct {
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

// Charge prepares the charge of a result to a user. If the result was not used for keep, or the memory is full, drop
// is called to forget it. Nothing is charged before Set. Drop is called at most once, by any goroutine, during Set or
// later.
func (m *Memory) Charge(user string, keep time.Duration, drop func()) *Charge {
	c := &Charge{memory: m, user: user, keep: int64(keep / tick), drop: drop}
	c.used.Store(m.now.Load())
	return c
}

// Measure makes the charge follow a size that changes by itself: size is called at each tick.
func (c *Charge) Measure(size func() int64) *Charge {
	c.measure = size
	return c
}

// Use records that the result was asked for.
func (c *Charge) Use() {
	if now := c.memory.now.Load(); c.used.Load() != now {
		c.used.Store(now)
	}
}

// Set charges so many bytes from now on. Other results may be forgotten for that, or this one itself.
func (c *Charge) Set(bytes int64) {
	m := c.memory
	m.mu.Lock()
	if c.over {
		m.mu.Unlock()
		return
	}
	if c.account == nil {
		m.list(c)
	}
	m.add(c, bytes-c.bytes)
	var dropped []*Charge
	for m.held > m.bound {
		victim := m.most[0].oldest()
		m.unlist(victim)
		dropped = append(dropped, victim)
	}
	m.mu.Unlock()
	forget(dropped)
}

// Release ends the charge of a result that the caller has forgotten by itself. Drop is not called.
func (c *Charge) Release() {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	c.memory.unlist(c)
}

// Held returns how many bytes are charged, and to how many users.
func (m *Memory) Held() (bytes int64, users int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held, len(m.users)
}

func (m *Memory) list(c *Charge) {
	c.account = m.users[c.user]
	if c.account == nil {
		c.account = &account{user: c.user}
		m.users[c.user] = c.account
		heap.Push(&m.most, c.account)
	}
	c.listed = c.used.Load()
	c.place = c.account.charges.PushBack(c)
	if !m.ticking {
		m.ticking = true
		time.AfterFunc(tick, m.tick)
	}
}

// unlist ends a charge. If nothing was charged yet, nothing ever will be.
func (m *Memory) unlist(c *Charge) {
	c.over = true
	if c.account == nil {
		return
	}
	m.add(c, -c.bytes)
	a := c.account
	a.charges.Remove(c.place)
	c.account, c.place = nil, nil
	if a.charges.Len() == 0 {
		heap.Remove(&m.most, a.index)
		delete(m.users, a.user)
	}
}

func (m *Memory) add(c *Charge, bytes int64) {
	c.bytes += bytes
	c.account.bytes += bytes
	m.held += bytes
	heap.Fix(&m.most, c.account.index)
}

// tick drops what was not used for too long, and measures what has a Measure. It runs while anything is kept.
func (m *Memory) tick() {
	now := m.now.Add(1)
	var dropped, measured []*Charge
	m.mu.Lock()
	for _, a := range m.users {
		for e := a.charges.Front(); e != nil; e = e.Next() {
			switch c := e.Value.(*Charge); {
			case now-c.used.Load() >= c.keep:
				dropped = append(dropped, c)
			case c.measure != nil:
				measured = append(measured, c)
			}
		}
	}
	for _, c := range dropped {
		m.unlist(c)
	}
	if m.ticking = len(m.users) > 0; m.ticking {
		time.AfterFunc(tick, m.tick)
	}
	m.mu.Unlock()
	forget(dropped)
	for _, c := range measured {
		c.Set(c.measure())
	}
}

// forget is called without the lock, since drop functions take locks of their own.
func forget(dropped []*Charge) {
	for _, c := range dropped {
		c.drop()
	}
}

// oldest returns the charge that the account has to forget next.
func (a *account) oldest() *Charge {
	for {
		c := a.charges.Front().Value.(*Charge)
		used := c.used.Load()
		if used == c.listed {
			return c
		}
		c.listed = used
		a.charges.MoveToBack(c.place)
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
