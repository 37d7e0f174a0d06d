package livepage

import (
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/board"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/stream"
)

// Whoever has the same places of the same question before them is told the same. So of counts and pages, too, what is next is made once for
// all of them: see eventstream.Alike. One that was told alone may so be told again before its conflate has passed, once: from then on it
// is told when the others are.

// likeness is the Likeness of counts and pages.
type likeness struct {
	question any
	places   board.Places // counts have only a limit
	view     string
	conflate time.Duration
	stale    eventstream.Freshness
}

// likeness is nil as long as there is something to be told to the client alone. What is to be told anew is told at once: only a page may be cut
// then, and has moved until it is told to its end.
func (s *source) likeness() any {
	if !s.begun || s.Outdated() || s.next != nil || s.last || s.told.IsZero() {
		return nil
	}
	return likeness{s.asked.Identity(), board.Places{Offset: s.offset, Limit: s.limit}, s.view.Key(), s.conflate, s.freshness}
}

// place is where a source stands: what it was told, and when it may be told again.
type place struct {
	told      board.Moment
	claim     stream.Claim
	notBefore time.Time
	freshness eventstream.Freshness
}

func (s *source) place() place { return place{s.told, s.claim, s.notBefore, s.freshness} }

func (s *source) resume(at place) {
	s.told, s.claim, s.notBefore, s.freshness, s.due = at.told, at.claim, at.notBefore, at.freshness, time.Time{}
}

// fork is a source that others' clients are told by.
func (s *source) fork() source {
	fork := *s
	fork.asked = s.asked.Fork()
	fork.in.Release = func() {}
	return fork
}

// For implements eventstream.Alike.
func (s *source) For(user string) { s.asked.For(user) }

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

// Likeness implements eventstream.Alike.
func (c *counts) Likeness() any { return c.likeness() }

// Place implements eventstream.Alike.
func (c *counts) Place() eventstream.Place { return &countsPlace{c.place(), c.sum} }

// Resume implements eventstream.Alike.
func (c *counts) Resume(at eventstream.Place) {
	p := at.(*countsPlace)
	c.resume(p.place)
	c.sum = p.sum
}

// Rest implements eventstream.Alike.
func (c *counts) Rest() { c.asked.Rest() }

// Fork implements eventstream.Alike.
func (c *counts) Fork() eventstream.Alike { return &counts{source: c.fork(), sum: c.sum} }

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

// Likeness implements eventstream.Alike.
func (p *page) Likeness() any {
	if !p.paged || p.vague || p.moved {
		return nil
	}
	return p.likeness()
}

// Place implements eventstream.Alike.
func (p *page) Place() eventstream.Place {
	return &pagePlace{p.place(), p.shown, p.order, p.total, p.moved}
}

// Resume implements eventstream.Alike.
func (p *page) Resume(at eventstream.Place) {
	from := at.(*pagePlace)
	p.resume(from.place)
	p.shown, p.order, p.total, p.moved = from.shown, from.order, from.total, from.moved
}

// Rest implements eventstream.Alike.
func (p *page) Rest() {
	p.asked.Rest()
	p.shown, p.order = nil, nil
}

// Fork implements eventstream.Alike.
func (p *page) Fork() eventstream.Alike {
	return &page{source: p.fork(), shown: p.shown, order: p.order, total: p.total, paged: true}
}
