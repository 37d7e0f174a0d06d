package livepage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/livequery"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// source is what counts and pages have in common: the question that they ask for their caller, and
// when they tell of it.
type source struct {
	request
	eventstream.VisibilityTracker
	access     *access.Access
	queries    *livequery.Registry
	in         access.Grant
	quotaOwner string
	name       string
	prefix     string // of events' names

	from      eventstream.From
	begun     bool // something was read
	freshness eventstream.Freshness

	asked       *livequery.Reader
	next        *livequery.Reader // of what may be seen from now on, of which the client is not told yet; nil: that has not changed
	announce    string            // the event that says so
	told        livequery.Ref     // of the view of which the client was told all; zero: of none
	claim       stream.Claim
	queryDigest string                 // what is asked and may be seen, as positions name it; "": not known yet
	digestFor   *visibility.Visibility // the visibility of which queryDigest is
	anew        bool                   // the client is to be told again, though it may be the same
	last        bool                   // the kind is gone: this is the last to be told
	notBefore   time.Time              // when the client wants to be told again
	due         time.Time              // the same, if there may be something to tell then; zero: a change wakes the session
}

// open opens counts or a page for a caller.
func (h *Handler) open(ctx context.Context, id auth.Identity, name string, req request) (eventstream.Source, error) {
	granted, err := h.opts.Access.Open(ctx, id, req.target, "watch")
	if err != nil {
		return nil, err
	}
	s := source{
		request: req, VisibilityTracker: eventstream.VisibilityTracker{Visible: granted.Visible}, access: h.opts.Access, queries: h.opts.Queries,
		in: granted, quotaOwner: id.QuotaOwner(), name: name,
	}
	if name != "" {
		s.prefix = name + "."
	}
	if s.asked, err = s.ask(); err != nil {
		granted.Release()
		return nil, err
	}
	if req.counts {
		return &counts{source: s}, nil
	}
	return &page{source: s}, nil
}

// ask asks the question for what may be seen now.
func (s *source) ask() (*livequery.Reader, error) {
	reader, err := s.queries.Ask(s.in.Kinds, s.in.Store, livequery.Query{
		Target: visibility.VisibleTarget{Target: s.target, Visible: s.Visible}, Selector: s.selector, Order: s.order, By: s.by, Places: s.offset + s.limit,
	}, s.quotaOwner)
	switch {
	case errors.Is(err, livequery.ErrFull):
		return nil, reply.TooManyRequests("too many different live counts and pages are open", err)
	case errors.Is(err, livequery.ErrClosed):
		return nil, reply.Unavailable("the gateway ends", time.Second, err)
	}
	return reader, err
}

func (s *source) Name() string { return s.name }

func (s *source) Ready(ctx context.Context) error {
	if err := s.in.Store.WaitSynced(ctx); err != nil {
		return err
	}
	return s.asked.Ready(ctx)
}

func (s *source) Epoch(ctx context.Context) (string, error) {
	return s.in.Epoch(ctx)
}

// Find implements eventstream.Source, for a client that is told all anyway.
func (s *source) Find(_ context.Context, from eventstream.From) { s.from = from }

// Begin implements eventstream.Source: nobody is ever told a reset.
func (s *source) Begin(told eventstream.Freshness) (claim stream.Claim, reset string) {
	s.freshness = told
	return s.claim, ""
}

// Upstream is how the watch of the kind is.
func (s *source) Upstream() cache.Upstream { return s.in.Store.Upstream() }

// look returns the view that the client is to be told now; nil: there is none yet, or it is not
// time. The outcome of the stream is GoOn if it goes on. Of places, unless they are nil, the
// session is woken only by what changes on them.
func (s *source) look(to eventstream.Sink, places *livequery.Window) (*livequery.Snapshot, eventstream.Outcome) {
	if !s.begun {
		s.begun = true
		switch {
		case s.Visible != nil:
			s.EmitVisible(to, s.prefix, "narrowed", s.claim)
		case strings.HasPrefix(s.from.Claim.Visibility, markSome):
			s.EmitVisible(to, s.prefix, "widened", s.claim)
		}
		s.from = eventstream.From{}
	}
	if s.Outdated() {
		if outcome := s.changeVisibility(); outcome != eventstream.GoOn {
			return nil, outcome
		}
	}
	if s.in.Store.Err() != nil && !s.last {
		s.last = true
		s.asked.Refresh()
	}
	s.due = time.Time{}
	if s.next == nil && !s.last && time.Now().Before(s.notBefore) {
		view, err := s.asked.Stand(to)
		if err == nil && !s.isBack(view) {
			s.due = s.notBefore
			s.tellStale(to, view)
			return nil, eventstream.GoOn
		}
	}
	reader := s.asked
	if s.next != nil {
		reader = s.next
	}
	view, err := reader.Snapshot(to, places)
	s.tellStale(to, view)
	switch {
	case errors.Is(err, livequery.ErrFull):
		return nil, eventstream.Limit
	case s.in.Store.Err() != nil && (err != nil || view != nil && s.told == view.Ref && !s.anew):
		return nil, eventstream.Gone
	case err != nil:
		return nil, eventstream.Unavailable
	case view == nil || view.Void(): // a newer one comes
		return nil, eventstream.GoOn
	}
	if s.next != nil {
		s.asked.Close()
		s.asked, s.next, s.anew = s.next, nil, true
		s.EmitVisible(to, s.prefix, s.announce, s.claim)
		s.announce = ""
	}
	if s.told.Void() {
		s.anew = true // versions mean something else
	}
	return view, eventstream.GoOn
}

// isBack reports whether the client is to be told that its data is fresh again. It then has to be
// told what was missed, whenever it was told last.
func (s *source) isBack(view *livequery.Snapshot) bool {
	return view != nil && view.Upstream.Live && s.freshness.IsStale()
}

// tellStale tells the client that its data is not fresh any more.
func (s *source) tellStale(to eventstream.Sink, view *livequery.Snapshot) {
	if view != nil && !view.Upstream.Live {
		s.freshness.Tell(to, s.prefix, view.Upstream, s.position)
	}
}

// tellLive tells the client that its data is fresh again, when it has been told all of a view that has what was missed.
func (s *source) tellLive(to eventstream.Sink, view *livequery.Snapshot) {
	if view.Upstream.Live {
		s.freshness.Tell(to, s.prefix, view.Upstream, s.position)
	}
}

// changeVisibility asks for what may be seen from now on. Nothing is told until the answer is there.
func (s *source) changeVisibility() eventstream.Outcome {
	if event := s.Adopt(); s.announce != "narrowed" {
		s.announce = event
	}
	if s.next != nil {
		s.next.Close()
		s.next = nil
	}
	reader, err := s.ask()
	switch {
	case err == nil:
		s.next = reader
		return eventstream.GoOn
	case errors.Is(err, livequery.ErrFull):
		return eventstream.Limit
	case s.in.Store.Err() != nil:
		return eventstream.Gone
	}
	return eventstream.Unavailable
}

// complete says that the client has been told all of a view.
func (s *source) complete(view *livequery.Snapshot, something bool) {
	s.told, s.anew = view.Ref, false
	s.claims(view)
	if something {
		s.notBefore = time.Now().Add(s.conflate)
	}
}

// claims moves the client's position to a view.
func (s *source) claims(view *livequery.Snapshot) {
	if s.queryDigest == "" || s.digestFor != s.Visible {
		s.queryDigest, s.digestFor = s.mark(s.Visible), s.Visible
	}
	s.claim = stream.Claim{Known: view.Known(), Visibility: s.queryDigest}
}

// position is where the client stands.
func (s *source) position() stream.Claim { return s.claim }

// progress is what a Read came to, with the client's position.
func (s *source) progress(p eventstream.ReadResult) eventstream.ReadResult {
	p.Claim, p.Due = s.claim, s.due
	return p
}

func (s *source) Bookmark(to eventstream.Sink) {
	if s.claim.All == 0 {
		return
	}
	s.emit(to, "bookmark", `{"resourceVersion":"`+strconv.FormatUint(s.claim.All, 10)+`"}`)
	s.asked.Touch() // so that the next one is further on, even if nothing changes
}

func (s *source) emit(to eventstream.Sink, name, data string) {
	to.Emit(eventstream.Event{Prefix: s.prefix, Name: name, Data: data}, s.claim)
}

func (s *source) Question() permission.Question {
	kinds, store, target, a := s.in.Kinds, s.in.Store, s.target, s.access
	return permission.Question{
		Key: fmt.Sprintf("%p %p %#v", kinds, store, target),
		See: func(ctx context.Context, id auth.Identity) (*visibility.Visibility, bool, error) {
			return a.See(ctx, kinds, id, target, store.Kind(), "watch")
		},
		Live: func() bool { return store.Upstream().Live },
	}
}

func (s *source) AuditRead() auditrecord.Read {
	read := access.ReadVisible(visibility.VisibleTarget{Target: s.target, Visible: s.Visible}, "watch")
	read.Watch = s.name
	return read
}

func (s *source) Close() {
	s.asked.Close()
	if s.next != nil {
		s.next.Close()
	}
	s.in.Release()
}
