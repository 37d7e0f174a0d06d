// Package ratelimit bounds how often a user may ask for something, and how soon they are told a
// refusal. It also bounds how many answers a user may have made at the same time (Turns).
//
// A bound on the requests under way does not bound how often a user begins a new one. And a refusal that comes at once
// invites the next attempt.
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
	// BurstSeconds says how large a burst after a rest may be, in seconds' worth of requests. A
	// client of Kubernetes begins with some hundred requests at once, to discover what a cluster
	// can do, and begins as many watches.
	BurstSeconds = 4
	LongestWait  = 2 * time.Second // how long a request that comes too early may wait

	// Refusals are told at once as often as people and broken clients need it. Further ones are held back.
	RefusalsPerSecond  = 20
	RefusalsAtOnce     = 100
	RefusalLongestWait = 10 * time.Second // how long a refusal may be held back; one that would take longer ends the connection
)

// Rates bound how often users ask, and are refused. They are safe for concurrent use.
type Rates struct {
	requests *budget.Rate // by the user who pays (auth.Identity.QuotaOwner)
	refusals *budget.Rate // by the same; by network for callers who did not sign in
}

// New returns rates by which each user may make so many requests a second; 0: any number.
func New(perSecond int) *Rates {
	return &Rates{
		requests: budget.NewRate(float64(perSecond), BurstSeconds*perSecond, LongestWait),
		refusals: budget.NewRate(RefusalsPerSecond, RefusalsAtOnce, RefusalLongestWait),
	}
}

// SetPerSecond changes how many requests a second each user may make.
func (r *Rates) SetPerSecond(perSecond int) {
	r.requests.Set(float64(perSecond), BurstSeconds*perSecond)
}

// Next waits until a user may make one more request. If the wait would be too long, it returns a 429, after holding it
// back (see Hold).
func (r *Rates) Next(ctx context.Context, id auth.Identity) error {
	if id.Gateway {
		return nil
	}
	err := r.requests.Wait(ctx, id.QuotaOwner())
	if errors.Is(err, budget.ErrTooMuch) {
		return r.Hold(ctx, id.QuotaOwner(), reply.To(err))
	}
	return err
}

// Hold waits until a refusal may be told, and returns it. If too many are held back already, it returns at once, and
// the refusal ends the connection. The error is the context's if that ends first.
func (r *Rates) Hold(ctx context.Context, quotaOwner string, refusal *reply.Error) error {
	err := r.refusals.Wait(ctx, quotaOwner)
	if errors.Is(err, budget.ErrTooMuch) {
		refusal.Close = true
		return refusal
	}
	if err != nil {
		return err
	}
	return refusal
}
