package http

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	sessions "github.com/kubecast/kubecast/internal/auth/session"
)

// fakeAuth is the authenticator and the authorizer: tokens are the names of their users.
type fakeAuth struct {
	mu        sync.Mutex
	expires   time.Time          // of all tokens
	down      bool               // the issuer's keys are not known
	anonymous bool               // who has no token is let in
	gone      map[string]bool    // users whose tokens count no more
	home      map[string]string  // of service accounts: their cluster
	confirmer sessions.Confirmer // of sessions; nil: they are as they were
	decide    func(auth.Identity, auth.Request) (bool, error)
	hang      chan struct{} // the authorizer answers when it is closed
	asked     []auth.Request
	paths     []auth.Request // asked for, that are no resources

	strangers []string              // users who may not read these
	undecided bool                  // nobody can say who may
	scopes    map[string]auth.Scope // by user: what they may see, instead of what decide says
	changed   map[*func()]string    // who listens for changes, and of whose permissions
}

// permit lets a user see what a scope says, from now on, and tells those who listen.
func (a *fakeAuth) permit(user string, scope auth.Scope) {
	a.mu.Lock()
	if a.scopes == nil {
		a.scopes = map[string]auth.Scope{}
	}
	a.scopes[user] = scope
	var told []func()
	for changed, of := range a.changed {
		if of == user {
			told = append(told, *changed)
		}
	}
	a.mu.Unlock()
	for _, changed := range told {
		changed()
	}
}

// announce tells all who listen that permissions may be others.
func (a *fakeAuth) announce() {
	a.mu.Lock()
	told := slices.Collect(maps.Keys(a.changed))
	a.mu.Unlock()
	for _, changed := range told {
		(*changed)()
	}
}

// permitted is what permit said of a user.
func (a *fakeAuth) permitted(user string) (auth.Scope, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	scope, ok := a.scopes[user]
	return scope, ok
}

// Changes tells of permit.
func (a *fakeAuth) Changes(id auth.Identity, changed func()) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.changed == nil {
		a.changed = map[*func()]string{}
	}
	a.changed[&changed] = id.Username
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.changed, &changed)
	}
}

// listeners is how many streams listen for changes.
func (a *fakeAuth) listeners() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.changed)
}

func (a *fakeAuth) set(change func(*fakeAuth)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

// questions is how many permissions were asked for.
func (a *fakeAuth) questions() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

func (a *fakeAuth) Authenticate(_ context.Context, token string) (auth.Identity, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.down:
		return auth.Identity{}, auth.ErrUnavailable
	case token == "" && a.anonymous:
		return auth.Identity{Username: "system:anonymous", Anonymous: true}, nil
	case token == "":
		return auth.Identity{}, auth.ErrNoCredentials
	case token == "forged":
		return auth.Identity{}, auth.ErrBadToken
	case token == "expired":
		return auth.Identity{}, auth.ErrTokenExpired
	}
	return auth.Identity{Username: token, Cluster: a.home[token], ExpiresAt: a.expires}, nil
}

// Confirm implements sessions.Confirmer: everybody is who they were.
func (a *fakeAuth) Confirm(_ context.Context, id auth.Identity) (auth.Identity, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.gone[id.Username]:
		return auth.Identity{}, auth.ErrBadToken
	case a.confirmer != nil:
		return a.confirmer.Confirm(context.Background(), id)
	}
	return id, nil
}

func (a *fakeAuth) Authorize(ctx context.Context, id auth.Identity, req auth.Request) (auth.Decision, error) {
	a.mu.Lock()
	if req.Path != "" { // all may read what is no resource, but for strangers
		defer a.mu.Unlock()
		a.paths = append(a.paths, req)
		if a.undecided {
			return auth.Decision{}, auth.ErrUndecided
		}
		return auth.Decision{Allowed: !slices.Contains(a.strangers, id.Username)}, nil
	}
	a.asked = append(a.asked, req)
	decide, hang := a.decide, a.hang
	a.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return auth.Decision{}, ctx.Err()
		}
	}
	if scope, ok := a.permitted(id.Username); ok {
		return auth.Decision{Allowed: scope.SeesNamespace(req.Namespace) || req.Name != "" && scope.Sees(req.Namespace, req.Name)}, nil
	}
	if decide == nil {
		return auth.Decision{Allowed: true}, nil
	}
	allowed, err := decide(id, req)
	return auth.Decision{Allowed: allowed, Reason: "role " + apitest.SecretDetail}, err
}
