package podlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Why an answer ended, as the log, the audit log and metrics say it.
const (
	endComplete    = "complete" // the log has
	endLeft        = "left"     // the client has, or takes nothing
	endUpstream    = "upstream" // the API server broke it off
	endDrain       = "drain"
	endExpired     = "expired"
	endRevoked     = "revoked"
	endUnavailable = "unavailable" // nobody can say whether it is still permitted
)

// ended is why a guard ended an answer; before the first byte, the client is told so.
type ended struct {
	reason string
	public error
}

func (e *ended) Error() string { return e.reason }
func (e *ended) Unwrap() error { return e.public }

// reasonOf is why an answer ended whose log was read to an error, or nil, and whose context ended
// for a cause, or has not.
func reasonOf(err, cause error) string {
	var by *ended
	switch {
	case err == nil:
		return endComplete
	case errors.As(cause, &by):
		return by.reason
	case errors.Is(err, errTaken), cause != nil:
		return endLeft
	}
	return endUpstream
}

// guard ends an answer once its caller may not read on. It is a permission.Subscriber.
type guard struct {
	h          *Handler
	id         auth.Identity
	target     visibility.Target
	end        context.CancelCauseFunc
	permission permission.Subscription
	woken      chan struct{} // holds a token once there is something to look at
	unheard    func()        // ends being told of revocations
}

// newGuard returns a guard that is told of changes from now on.
func newGuard(h *Handler, id auth.Identity, t visibility.Target, end context.CancelCauseFunc) *guard {
	g := &guard{h: h, id: id, target: t, end: end, woken: make(chan struct{}, 1)}
	h.opts.Permissions.Follow(g, id)
	g.unheard = h.opts.Permissions.Revocations(g.Wake)
	return g
}

// Permission implements permission.Subscriber.
func (g *guard) Permission() *permission.Subscription { return &g.permission }

// Wake implements permission.Subscriber.
func (g *guard) Wake() {
	select {
	case g.woken <- struct{}{}:
	default:
	}
}

// tokenEnded is the end of what the caller signed in with.
var tokenEnded = &ended{endExpired, fmt.Errorf("%w: %w", auth.ErrBadToken, auth.ErrTokenExpired)}

func (g *guard) stop() {
	g.unheard()
	g.h.opts.Permissions.Leave(g)
}

// question is what is asked again and again: whether the caller may get the log.
func (g *guard) question(kinds *cache.Kinds) permission.Question {
	request := g.target.Request(kinds.Cluster().Name(), "get")
	return permission.Question{
		Key: fmt.Sprintf("podlog %p %#v", kinds, request),
		See: func(ctx context.Context, id auth.Identity) (*visibility.Visibility, bool, error) {
			decision, err := g.h.opts.Authorizer.Authorize(ctx, id, request)
			if err != nil {
				return nil, false, fmt.Errorf("get pods/log: %w", err)
			}
			return nil, decision.Allowed, nil
		},
		Live: func() bool { return kinds.Cluster().Away() == nil },
	}
}

// lookAgain is how often it is looked at the wall clock.
const lookAgain = 10 * time.Second

// run guards the answer until its context ends.
func (g *guard) run(ctx context.Context, kinds *cache.Kinds) {
	g.h.opts.Permissions.Join(g, g.id, []permission.Question{g.question(kinds)})
	var drained <-chan time.Time
	draining := g.h.draining.Done()
	again := time.NewTimer(g.untilLook())
	defer again.Stop()
	for {
		if over := g.look(); over != nil {
			g.end(over)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-draining:
			draining = nil
			timer := time.NewTimer(rand.N(max(g.h.opts.Drain*8/10, time.Millisecond)))
			defer timer.Stop() // once: the channel is nil from here on
			drained = timer.C
		case <-drained:
			g.end(&ended{endDrain, reply.Unavailable("the gateway is about to end; another one will answer", time.Second, nil)})
			return
		case <-g.woken:
		case <-again.C:
			again.Reset(g.untilLook())
		}
	}
}

// untilLook is how long to wait for the end of what the caller signed in with, at most.
func (g *guard) untilLook() time.Duration {
	if g.id.ExpiresAt.IsZero() {
		return time.Hour
	}
	return max(min(time.Until(g.id.ExpiresAt), lookAgain), time.Millisecond)
}

// look says why the caller may not read on; nil if they may, or may for now since it is not known.
func (g *guard) look() *ended {
	if permission.Expired(g.id, time.Now()) {
		return tokenEnded
	}
	if err := g.h.opts.Permissions.Revoked(g.id); err != nil {
		return &ended{endRevoked, fmt.Errorf("%w: %w", auth.ErrBadToken, err)}
	}
	answer := g.permission.Take()
	if answer == nil {
		return nil
	}
	verdict := g.permission.Judge(answer)
	if err := answer.Err(); err != nil && verdict != permission.Revoked {
		g.h.opts.Log.Warn("whether a log may still be read could not be checked", "user", g.id.Username, "error", err)
	}
	switch {
	case verdict == permission.Unknown:
		return &ended{endUnavailable, reply.Unavailable("the caller's permissions cannot be checked at the moment", 2*time.Second, answer.Err())}
	case verdict != permission.Revoked:
		return nil
	case answer.Refused() != nil:
		return &ended{endRevoked, answer.Refused()}
	}
	return &ended{endRevoked, access.Forbidden(g.id, g.target, "get")}
}
