package rbac

import (
	"sync"

	"github.com/kubecast/kubecast/internal/auth"
)

// audience is the set of listeners for changes of permissions. A change wakes only the listeners of the identities
// that it concerns.
type audience struct {
	mu     sync.Mutex
	users  map[string]map[*listener]struct{}
	groups map[string]map[*listener]struct{}
}

type listener struct{ changed func() }

func newAudience() *audience {
	return &audience{users: map[string]map[*listener]struct{}{}, groups: map[string]map[*listener]struct{}{}}
}

func (a *audience) join(id auth.Identity, changed func()) (leave func()) {
	l := &listener{changed}
	a.mu.Lock()
	defer a.mu.Unlock()
	addTo(a.users, id.Username, l)
	for _, group := range id.Groups {
		addTo(a.groups, group, l)
	}
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		removeFrom(a.users, id.Username, l)
		for _, group := range id.Groups {
			removeFrom(a.groups, group, l)
		}
	})
}

func addTo(to map[string]map[*listener]struct{}, name string, l *listener) {
	if to[name] == nil {
		to[name] = map[*listener]struct{}{}
	}
	to[name][l] = struct{}{}
}

func removeFrom(from map[string]map[*listener]struct{}, name string, l *listener) {
	delete(from[name], l)
	if len(from[name]) == 0 {
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
	for _, of := range a.users { // each listener is there under its user's name
		for l := range of {
			all = append(all, l)
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
		for l := range of[s.name] {
			if all == nil {
				all = map[*listener]struct{}{}
			}
			all[l] = struct{}{}
		}
	}
	return all
}
