package http

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/http/reply"
)

// Limits bound what is open or under way at a time; 0 is no limit.
type Limits struct {
	PerUser    int // streams
	PerAddress int
	Total      int

	WatchesPerUser    int // over all streams
	RequestsPerUser   int // lists and gets; more wait, see newRequests
	RequestsPerSecond int // of any kind, of one user; more wait, see newRates
}

// places counts the streams that are open, and their watches.
type places struct {
	limits Limits

	mu        sync.Mutex
	total     int
	users     map[string]int
	watches   map[string]int // by user
	addresses map[string]int
}

func newPlaces(limits Limits) *places {
	return &places{limits: limits, users: map[string]int{}, watches: map[string]int{}, addresses: map[string]int{}}
}

// take counts one more stream of so many watches, and is false if that is too much.
func (p *places) take(user, address string, watches int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if exceeds(p.total, p.limits.Total) || exceeds(p.users[user], p.limits.PerUser) ||
		exceeds(p.addresses[address], p.limits.PerAddress) || exceeds(p.watches[user]+watches-1, p.limits.WatchesPerUser) {
		return false
	}
	p.total++
	p.users[user]++
	p.watches[user] += watches
	p.addresses[address]++
	return true
}

// count is how many streams there are.
func (p *places) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

// leave counts less by what take has counted.
func (p *places) leave(user, address string, watches int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total--
	decrement(p.users, user)
	decrement(p.addresses, address)
	if p.watches[user] -= watches; p.watches[user] == 0 {
		delete(p.watches, user)
	}
}

func exceeds(taken, limit int) bool { return limit > 0 && taken >= limit }

func decrement[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

const (
	// burstSeconds is for how long of rest one may make up: a client of Kubernetes reads what a cluster can do with some hundred requests
	// at once, and begins as many watches.
	burstSeconds = 4
	ratePatience = 2 * time.Second // for which a request waits that comes too early

	// Who is refused is told at once as often as people and broken clients are, and then held: to be told invites the next attempt.
	refusalsPerSecond = 20
	refusalsAtOnce    = 100
	refusalPatience   = 10 * time.Second // for which a refusal is held; who has more of them loses the connection
)

// rates are how often something may be done.
type rates struct {
	requests *budget.Rate // by who pays for them
	refusals *budget.Rate // by the same, or of those who did not sign in by network
}

func newRates(perSecond int) rates {
	return rates{
		requests: budget.NewRate(float64(perSecond), burstSeconds*perSecond, ratePatience),
		refusals: budget.NewRate(refusalsPerSecond, refusalsAtOnce, refusalPatience),
	}
}

// pace waits until somebody may ask for something more.
func (s *Server) pace(ctx context.Context, id auth.Identity) error {
	err := s.rates.requests.Wait(ctx, id.Payer())
	if errors.Is(err, budget.ErrTooMuch) {
		return s.hold(ctx, id.Payer(), reply.To(err))
	}
	return err
}

// hold holds a refusal until it may be told.
func (s *Server) hold(ctx context.Context, payer string, refusal *reply.Error) error {
	err := s.rates.refusals.Wait(ctx, payer)
	if errors.Is(err, budget.ErrTooMuch) {
		refusal.Close = true
		return refusal
	}
	if err != nil {
		return err
	}
	return refusal
}
