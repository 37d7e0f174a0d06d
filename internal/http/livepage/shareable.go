package livepage

import (
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/livequery"
	"github.com/kubecast/kubecast/internal/stream"
)

// Clients that look at the same places of the same question are told the same. So what is next of
// counts and pages is made once for all of them (eventstream.Shareable). A client that was told
// alone may be told again before its conflate has passed, once. From then on it is told when the
// others are.

// shareKey is the ShareKey of counts and pages.
type shareKey struct {
	question any
	window   livequery.Window // counts have only a limit
	view     string
	conflate time.Duration
	stale    eventstream.Freshness
}

// shareKey is nil while there is something to tell to the client alone. What has to be told anew is
// told at once. Only a page may be cut off then; it counts as moved until it is told to its end.
func (s *source) shareKey() any {
	if !s.begun || s.Outdated() || s.next != nil || s.last || s.told.IsZero() {
		return nil
	}
	return shareKey{s.asked.Identity(), livequery.Window{Offset: s.offset, Limit: s.limit}, s.view.Key(), s.conflate, s.freshness}
}

// place is where a source stands: what it was told, and when it may be told again.
type place struct {
	told      livequery.Ref
	claim     stream.Claim
	notBefore time.Time
	freshness eventstream.Freshness
}

func (s *source) place() place { return place{s.told, s.claim, s.notBefore, s.freshness} }

func (s *source) resume(at place) {
	s.told, s.claim, s.notBefore, s.freshness, s.due = at.told, at.claim, at.notBefore, at.freshness, time.Time{}
}

// clone is a source by which other clients are told.
func (s *source) clone() source {
	clone := *s
	clone.asked = s.asked.Clone()
	clone.in.Release = func() {}
	return clone
}

func (s *source) ChargeTo(user string) { s.asked.ChargeTo(user) }

// countsPlace is the Place of counts.
type countsPlace struct {
	place
	sum uint64
}

// Compare implements eventstream.Place. What a client is told next follows from what it has.
func (p *countsPlace) Compare(other eventstream.Place) (order int, ok bool) {
	o := other.(*countsPlace)
	return 0, p.sum == o.sum && p.freshness == o.freshness
}

func (c *counts) ShareKey() any { return c.shareKey() }

func (c *counts) Place() eventstream.Place { return &countsPlace{c.place(), c.sum} }

func (c *counts) Seek(at eventstream.Place) stream.Claim {
	p := at.(*countsPlace)
	c.resume(p.place)
	c.sum = p.sum
	return c.claim
}

func (c *counts) Suspend() { c.asked.Suspend() }

func (c *counts) Clone() eventstream.Shareable { return &counts{source: c.clone(), sum: c.sum} }

// pagePlace is the Place of pages.
type pagePlace struct {
	place
	shown, order []*cluster.Object
	total        int
	moved        bool
}

// Compare implements eventstream.Place. What a client is told next follows from what it has.
func (p *pagePlace) Compare(other eventstream.Place) (order int, ok bool) {
	o := other.(*pagePlace)
	return 0, p.freshness == o.freshness && p.total == o.total && p.moved == o.moved && slices.Equal(p.shown, o.shown) && slices.EqualFunc(p.order, o.order, isSame)
}

func (p *page) ShareKey() any {
	if !p.pageSent || p.possiblyPartial || p.moved {
		return nil
	}
	return p.shareKey()
}

func (p *page) Place() eventstream.Place {
	return &pagePlace{p.place(), p.shown, p.order, p.total, p.moved}
}

func (p *page) Seek(at eventstream.Place) stream.Claim {
	from := at.(*pagePlace)
	p.resume(from.place)
	p.shown, p.order, p.total, p.moved = from.shown, from.order, from.total, from.moved
	return p.claim
}

func (p *page) Suspend() {
	p.asked.Suspend()
	p.shown, p.order = nil, nil
}

func (p *page) Clone() eventstream.Shareable {
	return &page{source: p.clone(), shown: p.shown, order: p.order, total: p.total, pageSent: true}
}
