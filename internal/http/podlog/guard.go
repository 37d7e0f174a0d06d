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
	"github.com/kubecast/kubecast/internal/http/reply"
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

// guard ends an answer once its caller may not read on.
type guard struct {
	h       *Handler
	id      auth.Identity
	target  access.Target
	kinds   *cache.Kinds
	end     context.CancelCauseFunc
	changed chan struct{} // holds a token once something has changed
	unheard []func()      // end being told of changes

	confirmed time.Time // when it was last asked, and answered, that the caller may read
}

const (
	// askWithin bounds one question.
	askWithin = 10 * time.Second
	// askAgain is how soon it is asked again if permissions change all the time.
	askAgain = 100 * time.Millisecond
)

// newGuard returns a guard that is told of changes from now on.
func newGuard(h *Handler, id auth.Identity, t access.Target, end context.CancelCauseFunc) *guard {
	g := &guard{h: h, id: id, target: t, end: end, changed: make(chan struct{}, 1), confirmed: time.Now()}
	poke := func() {
		select {
		case g.changed <- struct{}{}:
		default:
		}
	}
	g.unheard = append(g.unheard, h.opts.Authorizer.Changes(id, poke))
	if h.opts.Revocations != nil {
		g.unheard = append(g.unheard, h.opts.Revocations.Changes(poke))
	}
	if ends := id.ExpiresAt; !ends.IsZero() { // to the second, whatever is being asked then
		timer := time.AfterFunc(time.Until(ends), func() { end(tokenEnded) })
		g.unheard = append(g.unheard, func() { timer.Stop() })
	}
	return g
}

// tokenEnded is the end of what the caller signed in with.
var tokenEnded = &ended{endExpired, fmt.Errorf("%w: %w", auth.ErrBadToken, auth.ErrTokenExpired)}

func (g *guard) stop() {
	for _, stop := range g.unheard {
		stop()
	}
}

// run guards the answer until its context ends.
func (g *guard) run(ctx context.Context) {
	var drained <-chan time.Time
	draining := g.h.draining.Done()
	again := time.NewTimer(g.pause())
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-draining:
			draining = nil
			timer := time.NewTimer(rand.N(max(g.h.opts.Drain*8/10, time.Millisecond)))
			defer timer.Stop() // once: the channel is nil from here on
			drained = timer.C
			continue
		case <-drained:
			g.end(&ended{endDrain, reply.Unavailable("the gateway is about to end; another one will answer", time.Second, nil)})
			return
		case <-g.changed:
		case <-again.C:
		}
		if over := g.look(ctx); over != nil {
			g.end(over)
			return
		}
		select { // changes that come at once are asked about together
		case <-ctx.Done():
			return
		case <-time.After(askAgain):
		}
		again.Reset(g.pause())
	}
}

// pause is a random time until it is asked again.
func (g *guard) pause() time.Duration {
	most := max(g.h.opts.Reauthorize, time.Millisecond)
	return most*8/10 + rand.N(most/5+1)
}

// look says why the caller may not read on; nil if they may, or may for now since it is not known.
func (g *guard) look(ctx context.Context) *ended {
	// By the wall clock: asleep, a machine's other clock stands still.
	if ends := g.id.ExpiresAt; !ends.IsZero() && !time.Now().Round(0).Before(ends) {
		return tokenEnded
	}
	if r := g.h.opts.Revocations; r != nil {
		if err := r.Check(g.id); errors.Is(err, auth.ErrRevoked) {
			return &ended{endRevoked, fmt.Errorf("%w: %w", auth.ErrBadToken, err)}
		}
	}
	asked := time.Now()
	ctx, cancel := context.WithTimeout(auth.WhileRunning(ctx), askWithin)
	defer cancel()
	allowed, err := g.permitted(ctx)
	switch {
	case err == nil && allowed:
		g.confirmed = asked
		return nil
	case err == nil:
		return &ended{endRevoked, access.Forbidden(g.id, g.target, "get")}
	case errors.Is(err, auth.ErrBadToken):
		return &ended{endRevoked, err}
	case g.kinds.Cluster().Away() != nil && !errors.Is(err, auth.ErrUnconfirmed):
		return nil // while the API server is away, permissions do not change there
	}
	g.h.opts.Log.Warn("whether a log may still be read could not be checked", "user", g.id.Username, "error", err)
	if errors.Is(err, auth.ErrUnconfirmed) || time.Since(g.confirmed) >= access.UnconfirmedFor {
		return &ended{endUnavailable, reply.Unavailable("the caller's permissions cannot be checked at the moment", 2*time.Second, err)}
	}
	return nil
}

// permitted asks whether what the caller signed in with still counts, and whether they may get the log.
func (g *guard) permitted(ctx context.Context) (bool, error) {
	if err := g.h.opts.Confirm(ctx, g.id); err != nil {
		return false, err
	}
	decision, err := g.h.opts.Authorizer.Authorize(ctx, g.id, g.target.Request(g.kinds.Cluster().Name(), "get"))
	if err != nil {
		return false, fmt.Errorf("get pods/log: %w", err)
	}
	return decision.Allowed, nil
}
