package http

import (
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// pastScopes remembers what users could see until a moment ago.
type pastScopes struct {
	mu   sync.Mutex
	last []pastScope
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

// mayHaveSeen reports whether a user may see an object, or could within the second before some time, which is how soon a
// permission that was taken away ends.
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
