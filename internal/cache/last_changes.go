package cache

import (
	"context"

	"github.com/kubecast/kubecast/internal/stream"
)

// lastChanges remembers the revision at which each namespace last changed. So a client that has seen a quiet namespace
// need not be sent it again because other namespaces are busy.
type lastChanges struct {
	floor      stream.Revision // nothing is known from before; a namespace that is not in namespaces has not changed since
	all        stream.Revision
	namespaces map[string]stream.Revision
}

// maxLastChanges is how many namespaces are remembered; at the next one all are forgotten.
const maxLastChanges = 4096

// begin forgets everything: any namespace may have changed up to this revision.
func (l *lastChanges) begin(revision stream.Revision) {
	*l = lastChanges{floor: revision, all: revision}
}

func (l *lastChanges) note(revision stream.Revision, changes []change) {
	if len(changes) == 0 {
		return
	}
	l.all = revision
	for _, c := range changes {
		if len(l.namespaces) >= maxLastChanges {
			l.begin(revision)
		}
		if l.namespaces == nil {
			l.namespaces = map[string]stream.Revision{}
		}
		l.namespaces[c.Object.GetNamespace()] = revision
	}
}

func (l *lastChanges) in(namespaces stream.NamespaceSet) stream.Revision {
	if namespaces.All() {
		return l.floor.Later(l.all)
	}
	last := l.floor
	for _, namespace := range namespaces.Namespaces() {
		last = last.Later(l.namespaces[namespace])
	}
	return last
}

// View is the content at this moment, and the revision at which the namespaces last changed: a
// snapshot of any revision in between has the same objects there. The revision may be later than
// the true one, since the time before the gateway began to watch is not known. It is never earlier.
func (s *Store) View(namespaces stream.NamespaceSet) (snapshot *Snapshot, changed stream.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshotLocked(), s.changes.in(namespaces)
}

// Await waits until the store has reached a version, or the context is done. It returns the version that the store
// has.
func (s *Store) Await(ctx context.Context, version uint64) uint64 {
	return s.await(ctx, nil, version, func(known stream.Known) uint64 { return known.Some })
}

// AwaitAll is Await, but waits until no more of the version's revision is to come. It returns the
// version up to which that is so.
func (s *Store) AwaitAll(ctx context.Context, version uint64) uint64 {
	return s.await(ctx, nil, version, func(known stream.Known) uint64 { return known.All })
}

// await waits until the store has reached a version, the context is done or the channel is closed.
func (s *Store) await(ctx context.Context, early <-chan struct{}, version uint64, reached func(stream.Known) uint64) uint64 {
	for {
		s.mu.Lock()
		head := reached(s.topic.Head().Known())
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
		case <-early:
			return head
		case <-ctx.Done():
			return head
		}
	}
}

// advanced says that the store has come further. The caller holds the store's lock.
func (s *Store) advanced() {
	head := s.topic.Head().Revision()
	if s.revision.reaches(head); s.revision != nil && s.revision.version != head.Version {
		s.revision = nil
	}
	if s.advance != nil {
		close(s.advance)
		s.advance = nil
	}
}
