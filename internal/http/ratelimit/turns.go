package ratelimit

import (
	"context"
	"errors"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/http/reply"
)

const (
	waitingRequests = 16               // waiting requests of one user, per request that may be under way
	turnLongestWait = 10 * time.Second // how long a request waits for its turn
)

// Turns bound how many answers of one user may be made at the same time. Further requests wait, and are refused if too
// many wait already. Turns are safe for concurrent use.
type Turns struct {
	queue *budget.Queue
	rates *Rates
}

// NewTurns returns turns for so many answers of each user at a time; 0: any number. The rates hold refusals back.
func NewTurns(perUser int, rates *Rates) *Turns {
	return &Turns{queue: budget.NewQueue(0, perUser, waitingRequests*perUser), rates: rates}
}

// SetPerUser changes how many there are of each user.
func (t *Turns) SetPerUser(perUser int) { t.queue.SetPerUser(perUser, waitingRequests*perUser) }

// Take waits until a user's request may be answered. The caller must call release when it has been answered. The error
// is a 429, budget.ErrTooMuch after too long a wait, or the context's.
func (t *Turns) Take(ctx context.Context, quotaOwner string) (release func(), err error) {
	if auth.IsGateway(quotaOwner) {
		return func() {}, nil
	}
	release, err = t.queue.TakeWithin(ctx, turnLongestWait, quotaOwner)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return nil, budget.ErrTooMuch
	case errors.Is(err, budget.ErrTooMuch):
		return nil, t.rates.Hold(ctx, quotaOwner, reply.To(err))
	}
	return release, err
}
