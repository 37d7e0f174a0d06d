package cache

import (
	"sync/atomic"

	"github.com/kubecast/kubecast/internal/stream"
)

// replacedBytes counts what a store's state holds, and what was replaced or deleted in it, in bytes of JSON. What was
// replaced since a snapshot was taken is at most what that snapshot, and all later ones, keep in memory beyond the
// state.
type replacedBytes struct {
	holds    atomic.Int64
	replaced atomic.Int64 // since the first list
}

func (t *replacedBytes) note(changes []change) {
	for _, c := range changes {
		if c.Old != nil {
			t.holds.Add(-int64(len(c.Old.JSON())))
			t.replaced.Add(int64(len(c.Old.JSON())))
		}
		if c.Type != stream.Deleted {
			t.holds.Add(int64(len(c.Object.JSON())))
		}
	}
}

// Outgrown reports whether a snapshot is so old that its readers should give it up: since it was taken, more was
// replaced than the state holds, and more than the ring may hold. So slow readers, however many, keep no more than
// that in memory.
func (s *Store) Outgrown(snapshot *Snapshot) bool {
	return s.replacedBytes.replaced.Load()-snapshot.replaced > max(s.replacedBytes.holds.Load(), s.ringBytes)
}

// HeldBeyond is how many bytes of objects a snapshot holds at most that a later one of its store does not hold; for a
// nil later, that the store no longer holds. Several snapshots together hold no more than the sum of what each holds
// beyond the next.
func (s *Store) HeldBeyond(held, later *Snapshot) int64 {
	replaced := s.replacedBytes.replaced.Load()
	if later != nil {
		replaced = later.replaced
	}
	return max(0, min(replaced-held.replaced, held.holds))
}
