package eventstream

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// moved is the streams that were ended since other replicas have fewer, by how their clients are known when they come back.
type moved struct {
	mu       sync.Mutex
	away     map[movedKey]int // of those that were moved last
	returned int
}

// movedKey is what a client comes back with. Of clients that are alike in all of it, each may be taken for another one.
type movedKey struct{ user, address, path, position string }

func (ss *session) movedKey(position string) movedKey {
	return movedKey{ss.id.QuotaOwner(), ss.address, ss.path, position}
}

// movesAfter is how old a stream must be to be moved: client-go lists again where a watch ends that is less than a second old.
const movesAfter = 30 * time.Second

// Move ends so many streams as if they were of age, at random moments within a time. They are
// chosen at random: if it were the oldest, somebody who opens many would have those of others
// moved. None is a stream that ends with its source, or one that has only just begun, or whose
// first snapshot has not ended: it has no position, so all of that would begin anew. Over HTTP/2
// their clients are to leave their connections, by which they would come back here. It returns how
// many it found.
func (h *Hub) Move(streams int, within time.Duration) int {
	now := time.Now()
	all := slices.DeleteFunc(h.open.all(), func(ss *session) bool {
		return ss.finite || ss.moves.Load() > 0 || !ss.placed.Load() || now.Sub(ss.began) < movesAfter
	})
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:min(streams, len(all))]
	h.moved.mu.Lock()
	h.moved.away = map[movedKey]int{} // who has not come back by now went elsewhere
	h.moved.mu.Unlock()
	for _, ss := range all {
		if ss.shared != nil {
			ss.shared.Leave()
		}
		ss.moves.Store(1 + int64(rand.N(within)))
		ss.Wake()
	}
	return len(all)
}

// Returned is of how many streams that Move has ended the client has come back here.
func (h *Hub) Returned() int {
	h.moved.mu.Lock()
	defer h.moved.mu.Unlock()
	return h.moved.returned
}

// goesAway takes note of a stream that ends since it is moved.
func (ss *session) goesAway() {
	if ss.moves.Load() == 0 {
		return
	}
	key := ss.movedKey(string(ss.claim()))
	m := &ss.hub.moved
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away != nil {
		m.away[key]++
	}
}

// comesBack takes note of a stream whose client was moved away.
func (ss *session) comesBack() {
	if ss.position == "" {
		return
	}
	key := ss.movedKey(ss.position)
	m := &ss.hub.moved
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away[key] > 0 {
		m.away[key]--
		m.returned++
	}
}
