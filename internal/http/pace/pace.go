// Package pace spaces out what somebody asks for, and what they are refused. A count of what is under way does not bound how often
// somebody begins anew, and a refusal that comes at once invites the next attempt.
package pace

import (
	"context"
	"errors"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/http/reply"
)

// What is bounded how.
const (
	// BurstSeconds is for how long of rest one may make up: a client of Kubernetes reads what a cluster can do with some hundred requests
	// at once, and begins as many watches.
	BurstSeconds = 4
	Patience     = 2 * time.Second // for which a request waits that comes too early

	// Who is refused is told at once as often as people and broken clients are, and then held: to be told invites the next attempt.
	RefusalsPerSecond = 20
	RefusalsAtOnce    = 100
	RefusalPatience   = 10 * time.Second // for which a refusal is held; who has more of them loses the connection
)

// Rates are how often something may be done. Safe for concurrent use.
type Rates struct {
	requests *budget.Rate // by who pays for them
	refusals *budget.Rate // by the same, or of those who did not sign in by network
}

// New lets everybody ask for so much in a second; 0: for as much as they like.
func New(perSecond int) *Rates {
	return &Rates{
		requests: budget.NewRate(float64(perSecond), BurstSeconds*perSecond, Patience),
		refusals: budget.NewRate(RefusalsPerSecond, RefusalsAtOnce, RefusalPatience),
	}
}

// Next waits until somebody may ask for something more.
func (r *Rates) Next(ctx context.Context, id auth.Identity) error {
	err := r.requests.Wait(ctx, id.Payer())
	if errors.Is(err, budget.ErrTooMuch) {
		return r.Hold(ctx, id.Payer(), reply.To(err))
	}
	return err
}

// Hold holds a refusal until it may be told, and returns it.
func (r *Rates) Hold(ctx context.Context, payer string, refusal *reply.Error) error {
	err := r.refusals.Wait(ctx, payer)
	if errors.Is(err, budget.ErrTooMuch) {
		refusal.Close = true
		return refusal
	}
	if err != nil {
		return err
	}
	return refusal
}
