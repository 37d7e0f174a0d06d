package queueapi

import (
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/stream"
)

// Clients that look at the same queue, and may see the same of it, are told the same. So what is next is
// made once for all of them (eventstream.Shareable). A client that was told alone may be told again before
// its conflate has passed, once.

// shareKey is the ShareKey of queues.
type shareKey struct {
	queue   any
	asked   queueRequest
	visible string
	stale   eventstream.Freshness
}

// ShareKey is nil while there is something to tell to the client alone.
func (s *source) ShareKey() any {
	if s.asking || !s.begun || s.Outdated() || s.sum == 0 {
		return nil
	}
	return shareKey{s.reader.Identity(), s.asked, s.Visible.Tag(), s.freshness}
}

// standing is the Place of queues: what a client was told, and when it may be told again.
type standing struct {
	number, sum uint64
	notBefore   time.Time
	freshness   eventstream.Freshness
}

// Compare implements eventstream.Place. What a client is told next follows from what it was told last.
func (p *standing) Compare(other eventstream.Place) (order int, ok bool) {
	o := other.(*standing)
	return 0, p.sum == o.sum && p.freshness == o.freshness
}

func (s *source) Place() eventstream.Place {
	return &standing{s.number, s.sum, s.notBefore, s.freshness}
}

func (s *source) Seek(at eventstream.Place) stream.Claim {
	p := at.(*standing)
	s.number, s.sum, s.notBefore, s.freshness, s.due = p.number, p.sum, p.notBefore, p.freshness, time.Time{}
	return nowhere()
}

func (s *source) Suspend() { s.reader.Suspend() }

func (s *source) Clone() eventstream.Shareable {
	clone := *s
	clone.reader, clone.id, clone.isClone = s.reader.Clone(), auth.Identity{}, true
	return &clone
}

// ChargeTo implements eventstream.Shareable: what is made of a queue is made for all its readers.
func (s *source) ChargeTo(string) {}
