package http

import "sync"

// Limits bound the concurrent streams; 0 is no limit.
type Limits struct {
	PerUser    int
	PerAddress int
	Total      int
}

// places counts the streams that are open.
type places struct {
	limits Limits

	mu        sync.Mutex
	total     int
	users     map[string]int
	addresses map[string]int
}

func newPlaces(limits Limits) *places {
	return &places{limits: limits, users: map[string]int{}, addresses: map[string]int{}}
}

// take counts one more stream, and is false if that is one too many.
func (p *places) take(user, address string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if exceeds(p.total, p.limits.Total) || exceeds(p.users[user], p.limits.PerUser) ||
		exceeds(p.addresses[address], p.limits.PerAddress) {
		return false
	}
	p.total++
	p.users[user]++
	p.addresses[address]++
	return true
}

// count is how many streams there are.
func (p *places) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

// leave counts one less of what take has counted.
func (p *places) leave(user, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total--
	decrement(p.users, user)
	decrement(p.addresses, address)
}

func exceeds(taken, limit int) bool { return limit > 0 && taken >= limit }

func decrement[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}
