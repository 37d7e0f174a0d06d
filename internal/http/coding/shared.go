package coding

import (
	"bytes"
	"hash/maphash"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
)

// shared keeps pieces that were encoded, for as long as they are asked for. A piece is found by
// what it contains, so nobody can get another's: whoever finds one has its content already.
//
// A piece is kept from the second time on that it is asked for, and charged to whoever asked then.
// So what only one client gets does not displace what many get, and a user who asks for much
// displaces their own pieces first.
type shared struct {
	memory *budget.Memory

	mu       sync.Mutex
	kept     map[key]*piece
	now, old map[key]struct{} // pieces that were asked for once; old is forgotten when now is full
}

// piece is one that is kept, encoded.
type piece struct {
	coded  []byte
	charge *budget.Entry
}

func newShared() *shared {
	return &shared{memory: budget.NewMemory(keptBytes), kept: map[key]*piece{}, now: map[key]struct{}{}}
}

// key is what a piece contains. Its hashes are under two random seeds that never leave the process,
// so that nobody can look for pieces that have the same.
type key struct {
	coding, length int
	first, second  uint64
}

var firstSeed, secondSeed = maphash.MakeSeed(), maphash.MakeSeed()

func keyOf(coding int, piece []byte) key {
	return key{coding, len(piece), maphash.Bytes(firstSeed, piece), maphash.Bytes(secondSeed, piece)}
}

const (
	// minShared is the size, in bytes, from which a piece is worth being found.
	minShared = 512
	// keptBytes is the most that is kept: the lists of a cluster with 20,000 pods are some 6 MB in
	// each coding, and their streams as much.
	keptBytes = 24 << 20
	// lifetime is for how long a piece is kept after it was last asked for.
	lifetime = 10 * time.Second
	// pieceCost is what a piece that is kept takes beside its bytes.
	pieceCost = 384
	// remembered is how many pieces that were asked for once are known at least: with twice as many, 2 MiB.
	remembered = 16 << 10
)

// get returns a piece, encoded; nil if it is not kept.
func (s *shared) get(k key) []byte {
	s.mu.Lock()
	found := s.kept[k]
	s.mu.Unlock()
	if found == nil {
		return nil
	}
	found.charge.Use()
	return found.coded
}

// offer says how a piece is encoded that a user asked for. Coded is copied if it is kept.
func (s *shared) offer(k key, user string, coded []byte) {
	s.mu.Lock()
	if s.kept[k] != nil { // another goroutine was quicker
		s.mu.Unlock()
		return
	}
	if !s.again(k) {
		s.mu.Unlock()
		return
	}
	p := &piece{coded: bytes.Clone(coded)}
	p.charge = s.memory.Enter(user, lifetime, func() { s.forget(k, p) })
	s.kept[k] = p
	s.mu.Unlock()
	p.charge.Set(int64(cap(p.coded)) + pieceCost) // without the lock, since it may forget pieces
}

// again reports whether a piece was asked for before, and remembers that it was now. The lock is held.
func (s *shared) again(k key) bool {
	if _, known := s.now[k]; known {
		return true
	}
	if len(s.now) >= remembered {
		s.old, s.now = s.now, map[key]struct{}{}
	}
	s.now[k] = struct{}{}
	_, known := s.old[k]
	return known
}

// forget removes a piece. There may be another by its key since, which stays.
func (s *shared) forget(k key, p *piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[k] == p {
		delete(s.kept, k)
	}
}
