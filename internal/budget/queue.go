package budget

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrTooMuch means that a user has too many requests waiting already.
var ErrTooMuch = errors.New("too many requests of one user are waiting")

// Queue gives at most slots turns at a time, and at most perUser of them to one user. Users that wait are served
// round robin, and the requests of one user in their order. So a user who has nothing under way waits for the turns
// under way, and then for at most one turn of each other user, however many requests those have waiting.
//
// Whoever waits is of a class (see TakeAs). Within each class, users are served round robin.
type Queue struct {
	slots  int
	shared func() bool // nil: never

	mu                      sync.Mutex
	perUser, waitingPerUser int

	taken int
	users map[userOf]*member // users that have a turn, or wait for one
	next  [classes][]*member // by class: users that wait and may have one more turn, in the order in which they get it
	last  Class              // which of Users and System was served last
	first int                // how many turns of First others that wait have waited for
}

// Class says who goes first among those that wait for a turn.
type Class int

// The classes. First goes before all others, however many there are. So it is for work of which
// there is little, and for which everybody waits. If there is much of it all the same, one turn in
// firstInARow is another's, so that nobody waits for ever. System and Users get every other turn of
// the rest while both wait.
const (
	Users Class = iota
	System
	First
	classes
)

// firstInARow is in how many turns the others have one, while First waits all the time.
const firstInARow = 16

// userOf is a user of a class.
type userOf struct {
	class Class
	name  string
}

// member is one user.
type member struct {
	of      userOf
	taken   int
	waiting []*waiter
	listed  bool // in next
}

type waiter struct {
	given chan struct{} // closed when the turn is given
}

// NewQueue returns a queue. For each limit, 0 means none.
func NewQueue(slots, perUser, waitingPerUser int) *Queue {
	return &Queue{slots: slots, perUser: perUser, waitingPerUser: waitingPerUser, users: map[userOf]*member{}}
}

// Share leaves one of the slots to other users while there are any: as long as shared returns true, no user may have
// all slots. It must be called before the queue is used.
func (q *Queue) Share(shared func() bool) *Queue {
	q.shared = shared
	return q
}

// SetPerUser changes the limits of each user. Whoever has more than that keeps it.
func (q *Queue) SetPerUser(perUser, waitingPerUser int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.perUser, q.waitingPerUser = perUser, waitingPerUser
	for class := range q.next { // those that may have one more turn are others now
		for _, m := range q.next[class] {
			m.listed = false
		}
		q.next[class] = nil
	}
	for _, m := range q.users {
		q.list(m)
	}
	q.serve()
}

// Take waits for a turn, which lasts until release is called. Further calls of release do nothing. The error is
// ErrTooMuch if the user has too many requests waiting, or the context's if that ends first.
func (q *Queue) Take(ctx context.Context, user string) (release func(), err error) {
	return q.TakeWithin(ctx, 0, user)
}

// TakeWithin is Take, but waits no longer than a time, unless that is 0. Then the error is context.DeadlineExceeded.
func (q *Queue) TakeWithin(ctx context.Context, longest time.Duration, user string) (release func(), err error) {
	return q.take(ctx, longest, userOf{Users, user})
}

// TakeAs is Take for a user of a class; Take itself is for Users. Users of different classes have
// nothing in common, even if their names are the same.
func (q *Queue) TakeAs(ctx context.Context, class Class, user string) (release func(), err error) {
	return q.take(ctx, 0, userOf{class, user})
}

func (q *Queue) take(ctx context.Context, longest time.Duration, user userOf) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q.mu.Lock()
	m := q.users[user]
	if m == nil {
		m = &member{of: user}
		q.users[user] = m
	}
	if !q.isAwaited() && below(q.taken, q.slots) && q.allows(m) {
		q.give(m)
		q.mu.Unlock()
		return q.releaseOnce(m), nil
	}
	if !below(len(m.waiting), q.waitingPerUser) {
		q.mu.Unlock()
		return nil, ErrTooMuch
	}
	w := &waiter{given: make(chan struct{})}
	m.waiting = append(m.waiting, w)
	q.list(m)
	q.mu.Unlock()

	var late <-chan time.Time
	if longest > 0 {
		timer := time.NewTimer(longest)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-w.given:
		return q.releaseOnce(m), nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-late:
		err = context.DeadlineExceeded
	}
	q.leave(m, w)
	return nil, err
}

// leave takes back a request whose context has ended. If the turn was given at the same moment, it is released.
func (q *Queue) leave(m *member, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(m.waiting, w); i >= 0 {
		m.waiting = slices.Delete(m.waiting, i, i+1)
		q.unlist(m)
		q.forget(m)
		return
	}
	q.release(m)
}

func (q *Queue) releaseOnce(m *member) func() {
	released := false // rather than a sync.OnceFunc, which allocates more: there is one for each get
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if !released {
			released = true
			q.release(m)
		}
	}
}

// release ends a turn.
func (q *Queue) release(m *member) {
	q.taken--
	m.taken--
	q.list(m)
	q.serve()
	q.forget(m)
}

// serve gives the free slots to the users that are next.
func (q *Queue) serve() {
	for q.isAwaited() && below(q.taken, q.slots) {
		first := q.pop()
		w := first.waiting[0]
		first.waiting = slices.Delete(first.waiting, 0, 1)
		q.give(first)
		q.list(first) // behind the others
		close(w.given)
	}
}

// isAwaited reports whether a user waits who may have one more turn.
func (q *Queue) isAwaited() bool {
	return len(q.next[Users])+len(q.next[System])+len(q.next[First]) > 0
}

// pop takes the user off next who is served next.
func (q *Queue) pop() *member {
	class := q.nextClass()
	first := q.next[class][0]
	q.next[class] = slices.Delete(q.next[class], 0, 1)
	first.listed = false
	return first
}

// nextClass says which class is served next, and counts the turns of First that the others have waited for.
func (q *Queue) nextClass() Class {
	others := len(q.next[System])+len(q.next[Users]) > 0
	if !others {
		q.first = 0
	}
	if len(q.next[First]) > 0 && q.first < firstInARow-1 {
		if others {
			q.first++
		}
		return First
	}
	if !others {
		return First
	}
	q.first = 0
	class := Users + System - q.last
	if len(q.next[class]) == 0 {
		class = q.last
	}
	q.last = class
	return class
}

func (q *Queue) give(m *member) {
	q.taken++
	m.taken++
}

// list puts a user at the end of next, if the user has a request that waits and may be given a turn.
func (q *Queue) list(m *member) {
	if !m.listed && len(m.waiting) > 0 && q.allows(m) {
		m.listed = true
		q.next[m.of.class] = append(q.next[m.of.class], m)
	}
}

// unlist takes a user off next who has no request left that waits.
func (q *Queue) unlist(m *member) {
	if m.listed && len(m.waiting) == 0 {
		m.listed = false
		next := q.next[m.of.class]
		i := slices.Index(next, m)
		q.next[m.of.class] = slices.Delete(next, i, i+1)
	}
}

func (q *Queue) forget(m *member) {
	if m.taken == 0 && len(m.waiting) == 0 {
		delete(q.users, m.of)
	}
}

func (q *Queue) allows(m *member) bool {
	return below(m.taken, q.perUser) && (q.shared == nil || m.taken == 0 || m.taken < q.slots-1 || !q.shared())
}

func below(count, limit int) bool { return limit <= 0 || count < limit }
