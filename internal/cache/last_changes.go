package cache

import (
	"context"

	"github.com/kubecast/kubecast/internal/stream"
)

// lastChanges remembers the version at which each namespace last changed. So a client that has seen a quiet namespace
// need not be sent it again because other namespaces are busy.
type lastChanges struct {
	floor      uint64 // nothing is known from before; a namespace that is not in namespaces has not changed since
	all        uint64
	namespaces map[string]uint64
}

// maxLastChanges is how many namespaces are remembered; at the next one all are forgotten.
const maxLastChanges = 4096

// begin forgets everything: any namespace may have changed up to this version.
func (l *lastChanges) begin(version uint64) {
	*l = lastChanges{floor: version, all: version}
}

func (l *lastChanges) note(version uint64, changes []change) {
	if len(changes) == 0 {
		return
	}
	l.all = version
	for _, c := range changes {
		if len(l.namespaces) >= maxLastChanges {
			l.begin(version)
		}
		if l.namespaces == nil {
			l.namespaces = map[string]uint64{}
		}
		l.namespaces[c.Object.GetNamespace()] = version
	}
}

func (l *lastChanges) in(scope stream.Scope) uint64 {
	if scope.All() {
		return max(l.floor, l.all)
	}
	last := l.floor
	for _, namespace := range scope.Namespaces() {
		last = max(last, l.namespaces[namespace])
	}
	return last
}

// View is the content at this moment, and the version at which the scope's part of it last changed: a snapshot of any
// version in between has the same objects there. The version may be later than the true one, since the time before
// the gateway began to watch is not known. It is never earlier.
func (s *Store) View(scope stream.Scope) (snapshot *Snapshot, changed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshotLocked(), s.changes.in(scope)
}

// Await waits until the store has reached a version, or the context is done. It returns the version that the store
// has.
func (s *Store) Await(ctx context.Context, version uint64) uint64 {
	for {
		s.mu.Lock()
		head := s.topic.Head().Version
		if head >= version {
			s.mu.Unlock()
			return head
		}
		if s.advance == nil {
			s.advance = make(chan struct{})
		}
		advance := s.advance
		s.mu.Unlock()
		select {
		case <-advance:
		case <-ctx.Done():
			return head
		}
	}
}

// advanced wakes the callers of Await. The caller holds the store's lock.
func (s *Store) advanced() {
	if s.advance != nil {
		close(s.advance)
		s.advance = nil
	}
}
