package budget

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rate lets each user do perSecond things a second, and after a rest a burst of them at once. A request that comes
// too early waits for its time, or is refused if that is further away than longestWait. Times are given in order, so at
// most as many requests of one user wait as come due within it.
type Rate struct {
	longestWait time.Duration

	mu        sync.Mutex
	perSecond rate.Limit
	burst     int
	users     map[string]*rate.Limiter // by user, those that may not have rested
	sweep     int                      // how many there may be before those that have rested are dropped
}

// NewRate returns a Rate; a perSecond of 0 means no limit.
func NewRate(perSecond float64, burst int, longestWait time.Duration) *Rate {
	return &Rate{perSecond: rate.Limit(perSecond), burst: burst, longestWait: longestWait, users: map[string]*rate.Limiter{}, sweep: leastSweep}
}

const leastSweep = 64

// Set changes the rate, also for those who use it already. Whoever waits has a time that was given.
func (r *Rate) Set(perSecond float64, burst int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.perSecond, r.burst = rate.Limit(perSecond), burst
	if perSecond == 0 {
		clear(r.users)
	}
	for _, limiter := range r.users {
		limiter.SetLimit(r.perSecond)
		limiter.SetBurst(burst)
	}
}

// Wait waits until a user may do one more thing. If that would take longer than longestWait, it returns ErrTooMuch
// at once, which costs the user nothing. If the context ends first, it returns the context's error, and gives the
// time back unless a later one was already given.
func (r *Rate) Wait(ctx context.Context, user string) error {
	wait, cancel, ok := r.Reserve(user)
	switch {
	case !ok:
		return ErrTooMuch
	case wait == 0:
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		cancel()
		return ctx.Err()
	}
}

// Reserve takes the next time of a user, and returns how long the caller has to wait for it. Cancel gives it back, as
// Wait does. It is not ok, and nothing is taken, if that is longer than longestWait.
func (r *Rate) Reserve(user string) (wait time.Duration, cancel func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.perSecond == 0 {
		return 0, func() {}, true
	}
	now := time.Now()
	limiter := r.users[user]
	if limiter == nil {
		r.forget(now)
		limiter = rate.NewLimiter(r.perSecond, r.burst)
		r.users[user] = limiter
	}
	if limiter.AllowN(now, 1) {
		return 0, func() {}, true
	}
	reserved := limiter.ReserveN(now, 1)
	if wait = reserved.DelayFrom(now); wait > r.longestWait {
		reserved.CancelAt(now)
		return 0, nil, false
	}
	return wait, reserved.Cancel, true
}

// forget drops the users that have rested, once there are many.
func (r *Rate) forget(now time.Time) {
	if len(r.users) < r.sweep {
		return
	}
	for user, limiter := range r.users {
		if limiter.TokensAt(now) >= float64(r.burst) {
			delete(r.users, user)
		}
	}
	r.sweep = max(leastSweep, 2*len(r.users))
}
