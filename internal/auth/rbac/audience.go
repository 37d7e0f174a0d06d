package rbac

import (
	"sync"

	"github.com/kubecast/kubecast/internal/auth"
)

// audience is the set of listeners for changes of permissions. A change wakes only the listeners of the identities
// that it concerns.
type audience struct {
	mu     sync.Mutex
	users  map[string]*seat // the first of those who listen for this user
	groups map[string]*seat
}

// listener is one who listens for an identity: for its user, and for each of its groups. A gateway may have a hundred
// thousand of them, each of another user.
type listener struct {
	changed func()
	user    string
	groups  []string
	seats   []seat // the first is the user's, the others are those of the groups; nil: it has left
}

// seat is a listener's place among those who listen for the same.
type seat struct {
	listener   *listener
	prev, next *seat
}

func newAudience() *audience {
	return &audience{users: map[string]*seat{}, groups: map[string]*seat{}}
}

func (a *audience) join(id auth.Identity, changed func()) (leave func()) {
	l := &listener{changed, id.Username, id.Groups, make([]seat, 1+len(id.Groups))}
	a.mu.Lock()
	defer a.mu.Unlock()
	addTo(a.users, l.user, l, &l.seats[0])
	for i, group := range l.groups {
		addTo(a.groups, group, l, &l.seats[1+i])
	}
	return func() { a.leave(l) }
}

func (a *audience) leave(l *listener) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.seats == nil {
		return
	}
	removeFrom(a.users, l.user, &l.seats[0])
	for i, group := range l.groups {
		removeFrom(a.groups, group, &l.seats[1+i])
	}
	l.seats = nil
}

func addTo(to map[string]*seat, name string, l *listener, s *seat) {
	*s = seat{listener: l, next: to[name]}
	if s.next != nil {
		s.next.prev = s
	}
	to[name] = s
}

func removeFrom(from map[string]*seat, name string, s *seat) {
	if s.next != nil {
		s.next.prev = s.prev
	}
	switch {
	case s.prev != nil:
		s.prev.next = s.next
	case s.next != nil:
		from[name] = s.next
	default:
		delete(from, name)
	}
}

// notify calls each listener for one of the subjects, once.
func (a *audience) notify(subjects []subject) {
	for l := range a.concerned(subjects) {
		l.changed()
	}
}

// notifyAll calls all listeners.
func (a *audience) notifyAll() {
	a.mu.Lock()
	var all []*listener
	for _, first := range a.users { // each listener is there under its user's name
		for s := first; s != nil; s = s.next {
			all = append(all, s.listener)
		}
	}
	a.mu.Unlock()
	for _, l := range all {
		l.changed()
	}
}

func (a *audience) concerned(subjects []subject) map[*listener]struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all map[*listener]struct{}
	for _, s := range subjects {
		of := a.users
		if s.group {
			of = a.groups
		}
		for seat := of[s.name]; seat != nil; seat = seat.next {
			if all == nil {
				all = map[*listener]struct{}{}
			}
			all[seat.listener] = struct{}{}
		}
	}
	return all
}
