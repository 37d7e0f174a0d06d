package eventstream

import (
	"sync"

	"github.com/kubecast/kubecast/internal/auth"
)

// Limits bound the streams that are open at a time, Kubernetes' watches among them; 0 is no limit.
type Limits struct {
	PerUser        int
	PerAddress     int
	Total          int
	WatchesPerUser int // over all streams
}

// quota counts the streams that are open, and their watches.
type quota struct {
	mu        sync.Mutex
	limits    Limits
	total     int
	users     map[string]int
	watches   map[string]int // by user
	addresses map[string]int
}

func newQuota(limits Limits) *quota {
	return &quota{limits: limits, users: map[string]int{}, watches: map[string]int{}, addresses: map[string]int{}}
}

// set changes the limits. Streams that are open stay.
func (q *quota) set(limits Limits) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limits = limits
}

// take counts one more stream of so many watches, and is false if that is too much.
func (q *quota) take(user, address string, watches int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	gateway := auth.IsGateway(user)
	if exceeds(q.total, q.limits.Total) || !gateway && (exceeds(q.users[user], q.limits.PerUser) ||
		exceeds(q.addresses[address], q.limits.PerAddress) || exceeds(q.watches[user]+watches-1, q.limits.WatchesPerUser)) {
		return false
	}
	q.total++
	q.users[user]++
	q.watches[user] += watches
	if !gateway { // users of its address are not limited by it either
		q.addresses[address]++
	}
	return true
}

// watching is how many watches they have.
func (q *quota) watching() (sum int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, watches := range q.watches {
		sum += watches
	}
	return sum
}

// leave counts less by what take has counted.
func (q *quota) leave(user, address string, watches int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.total--
	decrement(q.users, user)
	if !auth.IsGateway(user) {
		decrement(q.addresses, address)
	}
	if q.watches[user] -= watches; q.watches[user] == 0 {
		delete(q.watches, user)
	}
}

func exceeds(taken, limit int) bool { return limit > 0 && taken >= limit }

func decrement[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}
