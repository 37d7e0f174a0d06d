package cache

import (
	"sync/atomic"

	"github.com/kubecast/kubecast/internal/stream"
)

// turnover counts what a store's state holds, and what it held before, in bytes of JSON. What was replaced since a snapshot
// was taken is what the snapshot, and all that were taken later, keep in memory beyond the state.
type turnover struct {
	holds    atomic.Int64
	replaced atomic.Int64 // since the beginning
}

func (t *turnover) note(changes []change) {
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

// Outgrown reports whether a snapshot is so old that whoever still reads it should give it up: since then more was replaced
// than the state holds, and than the ring may. However many read however slowly, they hold no more than that.
func (s *Store) Outgrown(snapshot *Snapshot) bool {
	return s.turnover.replaced.Load()-snapshot.replaced > max(s.turnover.holds.Load(), s.past)
}

// HeldBeyond is how many bytes of objects a snapshot holds, at most, that a later one of its store does not; nil is the store
// as it is. So several snapshots together hold no more than each beyond the next.
func (s *Store) HeldBeyond(held, later *Snapshot) int64 {
	replaced := s.turnover.replaced.Load()
	if later != nil {
		replaced = later.replaced
	}
	return max(0, min(replaced-held.replaced, held.holds))
}
