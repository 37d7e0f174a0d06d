package eventstream

import "sync"

// Limits bound the streams that are open at a time, Kubernetes' watches among them; 0 is no limit.
type Limits struct {
	PerUser        int
	PerAddress     int
	Total          int
	WatchesPerUser int // over all streams
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

// watching is how many watches they have.
func (p *places) watching() (sum int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, watches := range p.watches {
		sum += watches
	}
	return sum
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
