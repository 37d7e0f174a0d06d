package coding

import (
	"bytes"
	"hash/maphash"
	"sync"
	"time"
)

// shared keeps pieces that were encoded, for as long as they are asked for. A piece is found by what it contains, so nobody can get
// another's: whoever finds one has its content already.
//
// A piece is kept from the second time on that it is asked for. So what only one client gets does not displace what many get.
// There are two generations: what is asked for again moves into the newer one, and the older one is forgotten when the newer one
// is full, or old.
type shared struct {
	mu       sync.Mutex
	now, old map[key][]byte // nil: it was asked for once
	held     int            // bytes of now
	since    time.Time      // when now began
}

// key is what a piece contains. Its hashes are under two random seeds that never leave the process, so that nobody can look for
// pieces that have the same.
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
	// generation is the most bytes of one generation: the lists of a cluster with 20,000 pods are some 8 MiB in each coding.
	generation = 12 << 20
	// lifetime is for how long a generation collects pieces. Within it, or twice it, a piece has to be asked for again.
	lifetime = 10 * time.Second
	// entryCost is what an entry takes beside its bytes.
	entryCost = 96
)

// get returns a piece, encoded; nil if it is not known.
func (s *shared) get(k key) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	coded, known := s.now[k]
	if known {
		return coded
	}
	if coded, known = s.old[k]; known && coded != nil {
		s.keep(k, coded)
	}
	return coded
}

// offer says how a piece is encoded. Coded is copied if it is kept.
func (s *shared) offer(k key, coded []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, again := s.now[k]
	if !again {
		_, again = s.old[k]
	}
	if again {
		s.keep(k, bytes.Clone(coded))
	} else {
		s.keep(k, nil)
	}
}

func (s *shared) keep(k key, coded []byte) {
	if now := time.Now(); s.now == nil || s.held > generation || now.Sub(s.since) > lifetime {
		s.old, s.now, s.held, s.since = s.now, map[key][]byte{}, 0, now
	}
	before, known := s.now[k]
	if known {
		s.held -= len(before) + entryCost
	}
	s.now[k] = coded
	s.held += len(coded) + entryCost
}
