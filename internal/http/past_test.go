package http

import (
	"slices"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// pastScopes remembers what users could see until a moment ago.
type pastScopes struct {
	mu    sync.Mutex
	last  []pastScope
	lives []life // that namespaces began, in order
}

// life is one of a namespace, from a version on.
type life struct {
	namespace string
	version   uint64
	created   string
}

// begins remembers a life; undo forgets those after a version.
func (p *pastScopes) begins(l life) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lives = append(p.lives, l)
}

func (p *pastScopes) undo(version uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lives = slices.DeleteFunc(p.lives, func(l life) bool { return l.version > version })
}

// since is when the life of a namespace began that something is in at a version; "": it was there all the time.
func (p *pastScopes) since(namespace string, version uint64) (created string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lives {
		if l.namespace == namespace && l.version <= version {
			created = l.created
		}
	}
	return created
}

// isSteady reports whether what a user may see has not changed since a second before some time.
func (p *pastScopes) isSteady(user string, since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !slices.ContainsFunc(p.last, func(s pastScope) bool { return s.user == user && since.Sub(s.until) <= time.Second })
}

type pastScope struct {
	user  string
	scope auth.Scope
	until time.Time
}

// note remembers what a user can see until now.
func (p *pastScopes) note(user string, scope auth.Scope) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = append(p.last, pastScope{user, scope, time.Now()})
}

// mayHaveSeen reports whether a user may see an object, or could within the second before some
// time, which is how soon a permission that was taken away ends.
func (g *gateway) mayHaveSeen(user, namespace, name string, since time.Time) bool {
	if now, _ := g.access.permitted(user); now.Sees(namespace, name) {
		return true
	}
	g.past.mu.Lock()
	defer g.past.mu.Unlock()
	for _, past := range g.past.last {
		if past.user == user && since.Sub(past.until) <= time.Second && past.scope.Sees(namespace, name) {
			return true
		}
	}
	return false
}
