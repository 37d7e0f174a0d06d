package cache

import (
	"sync/atomic"

	"github.com/kubecast/kubecast/internal/stream"
)

// revision is the version at which a store is, for the snapshots that were taken at it: there may be more of it, which
// they do not have.
type revision struct {
	version uint64
	part    atomic.Int64 // the newest
	over    atomic.Bool  // the store has gone on to another version
}

// reaches says up to where a store has come.
func (r *revision) reaches(head stream.Revision) {
	if r == nil {
		return
	}
	if head.Version != r.version {
		r.over.Store(true)
		return
	}
	r.part.Store(int64(head.Part))
}

// Revision is the version, as far as the snapshot has it.
func (s *Snapshot) Revision() stream.Revision { return s.Head.Revision() }

// Whole reports whether the snapshot is known to have all of its version: a revision that deletes
// something may have more events, until the store has gone on.
func (s *Snapshot) Whole() bool {
	over := s.revision.over.Load() // before the part, which does not change any more then
	return int64(s.Revision().Part) == s.revision.part.Load() && (over || s.Head.Known().All == s.Version())
}
