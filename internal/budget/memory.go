package budget

import (
	"container/heap"
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// Memory accounts for what is kept in memory only because somebody may ask for it again. Together that is never more than its
// bound: beyond it, whoever holds most has to forget, the oldest first that was not asked for since. So a user can
// only ever displace their own, or those of somebody who holds more. And what nobody asks for is forgotten by time.
type Memory struct {
	bound int64
	now   atomic.Int64 // in ticks

	mu      sync.Mutex
	held    int64
	users   map[string]*account
	most    accounts
	ticking bool
}

// tick is how exactly the time is kept after which something is forgotten: by so much at most it is sooner.
const tick = 500 * time.Millisecond

// NewMemory makes one for so many bytes.
func NewMemory(bound int64) *Memory { return &Memory{bound: bound, users: map[string]*account{}} }

// account is what one user holds.
type account struct {
	user    string
	bytes   int64
	charges list.List // of *Charge: the oldest first, but those that were asked for go to the end before they are forgotten
	index   int       // in the heap
}

// Charge is one thing that is kept.
type Charge struct {
	memory  *Memory
	account *account // nil unless it is charged
	place   *list.Element
	user    string
	bytes   int64
	keep    int64 // ticks, since it was last asked for
	used    atomic.Int64
	listed  int64 // as used was when it was put in its place
	drop    func()
	measure func() int64
	over    bool
}

// Charge prepares a charge to a user, of what is forgotten by drop if it was not used for so long, or if the memory is full.
// Nothing is charged before Set. Drop is called once at most, by any goroutine, from Set or later.
func (m *Memory) Charge(user string, keep time.Duration, drop func()) *Charge {
	c := &Charge{memory: m, user: user, keep: int64(keep / tick), drop: drop}
	c.used.Store(m.now.Load())
	return c
}

// Measure has the charge follow a size that changes by itself: it is asked for now and then.
func (c *Charge) Measure(size func() int64) *Charge {
	c.measure = size
	return c
}

// Use says that somebody has asked for what is kept.
func (c *Charge) Use() {
	if now := c.memory.now.Load(); c.used.Load() != now {
		c.used.Store(now)
	}
}

// Set charges so many bytes from now on. Something else may be forgotten for that, or this itself.
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

// Release ends the charge of what was forgotten otherwise.
func (c *Charge) Release() {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	c.memory.unlist(c)
}

// Held is how many bytes are kept, and for how many users.
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

// unlist ends a charge; if it was not charged, it never will be.
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

// tick drops what was not used for too long, and measures what is measured, as long as anything is kept.
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

// forget is called without the lock, since those who keep have locks of their own.
func forget(dropped []*Charge) {
	for _, c := range dropped {
		c.drop()
	}
}

// oldest is what the account has to forget next.
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

// accounts implements heap.Interface; the first holds most.
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
