package budget

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rate lets each user do so much a second, and a burst of more after a rest. What comes too early waits for its time, as long as that
// is within the patience; since times are given in order, no more of one user wait at once than come of age in that time.
type Rate struct {
	perSecond rate.Limit
	burst     int
	patience  time.Duration

	mu    sync.Mutex
	users map[string]*rate.Limiter // who have not rested
	sweep int                      // how many there may be before those who have are looked for
}

// NewRate makes one; perSecond 0 is no limit.
func NewRate(perSecond float64, burst int, patience time.Duration) *Rate {
	return &Rate{perSecond: rate.Limit(perSecond), burst: burst, patience: patience, users: map[string]*rate.Limiter{}, sweep: leastSweep}
}

const leastSweep = 64

// Wait waits until a user may do one thing more. It returns ErrTooMuch, at once, if that would take longer than the patience, which costs
// the user nothing, and the context's error if that ends before: then the time is given back unless somebody has the next one.
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

// Reserve says how long a user has to wait, who is going to; cancel takes that back, as Wait does. It is not ok if that is longer than
// the patience.
func (r *Rate) Reserve(user string) (wait time.Duration, cancel func(), ok bool) {
	if r.perSecond == 0 {
		return 0, func() {}, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	limiter := r.users[user]
	if limiter == nil {
		r.forget(now)
		limiter = rate.NewLimiter(r.perSecond, r.burst)
		r.users[user] = limiter
	}
	reserved := limiter.ReserveN(now, 1)
	if wait = reserved.DelayFrom(now); wait > r.patience {
		reserved.CancelAt(now)
		return 0, nil, false
	}
	return wait, reserved.Cancel, true
}

// forget takes out who have rested, once there are many.
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
