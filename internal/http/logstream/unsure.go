package logstream

import (
	"context"
	"maps"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
)

const (
	// sureAfter is when it is looked at again whether pods belong to the owner; their own owners come by other watches.
	sureAfter = 200 * time.Millisecond
	// sureWithin is for how long. Some owners are gone, and left their pods. Of a kind that cannot
	// be read, nobody knows what is gone: then it is looked at again for as long as that lasts,
	// less often after some time. A client that asks only for what is there does not wait longer.
	sureWithin = 10 * time.Second
	sureSeldom = 2 * time.Second
	// unreadWithin is how long a kind may take to be read before the client is told that something is missing.
	unreadWithin = 500 * time.Millisecond
)

// doubt is why it is not known whether a pod belongs to the owner.
type doubt struct {
	since  time.Time
	unread *cache.Upstream // how a kind is that stands between and cannot be read; nil: who owns the pod is not there
}

// lookAtUnsure looks again at the pods of which it is not known whether they belong to the owner.
func (s *source) lookAtUnsure(ctx context.Context) {
	snapshot := s.in.Store.Snapshot()
	for name, before := range maps.Clone(s.unsure) {
		delete(s.unsure, name)
		o := snapshot.Get(s.pods.Namespace, name)
		if o == nil || before.unread == nil && time.Since(before.since) >= sureWithin {
			continue
		}
		s.pod(ctx, o)
		if now, still := s.unsure[name]; still && (now.unread == nil) == (before.unread == nil) {
			s.unsure[name] = doubt{before.since, now.unread}
		}
	}
}

// lookAgain sets when it is looked at again to whom the pods belong.
func (s *source) lookAgain() {
	s.sureAgain = time.Time{}
	for _, d := range s.unsure {
		after := sureAfter
		if d.unread != nil && time.Since(d.since) >= sureSeldom {
			after = sureSeldom
		}
		if at := time.Now().Add(after); s.sureAgain.IsZero() || at.Before(s.sureAgain) {
			s.sureAgain = at
		}
	}
}

// unread is how a kind is that stands between, and cannot be read for longer than most first lists
// take; nil: there is none. Since is when that was found.
func (s *source) unread() (how *cache.Upstream, since time.Time) {
	for _, d := range s.unsure {
		if d.unread != nil && time.Since(d.since) >= unreadWithin && (how == nil || d.since.Before(since)) {
			how, since = d.unread, d.since
		}
	}
	return how, since
}
