package historyapi

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/http/ratelimit"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/jobs/service"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/jobs/wire"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Stream is an eventstream.Parser: it reads what is asked of a stream of transitions, or of runs.
func (h *Handler) Stream(name, path string, query url.Values) (eventstream.Opener, error) {
	t, err := h.target(path)
	if err != nil {
		return nil, err
	}
	// The caller is not known yet, so their name is put in later.
	asked, err := parseStream(query, t, h.now(t))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, id auth.Identity) (eventstream.Source, error) {
		q := asked
		q.filter.Owners = slices.Clone(asked.filter.Owners)
		for i, owner := range q.filter.Owners {
			if owner == me {
				q.filter.Owners[i] = id.Username
			}
		}
		return h.open(ctx, id, name, t, q)
	}, nil
}

// target is what a path of the history names, if its history is kept.
func (h *Handler) target(path string) (visibility.Target, error) {
	t, ok := Target(path)
	switch {
	case !ok:
		return t, reply.NotFound("below /history stands the path of a kind of jobs, such as /history/apis/batch/v1/jobs")
	case h.opts.Jobs == nil:
		return t, reply.NotFoundFor(reply.ReasonNotEnabled, "the gateway keeps no history")
	case !h.opts.Jobs.Records(t.Qualified()):
		return t, reply.NotFoundFor(reply.ReasonNotRecorded, "no history is kept of this kind")
	}
	return t, nil
}

// changes is the eventstream.Source of the transitions of a kind's jobs, or of the runs of their pods.
type changes struct {
	eventstream.VisibilityTracker
	eventstream.Aside
	place
	handler    *Handler
	database   service.Reader
	turns      *ratelimit.Turns
	tail       *service.Tail
	what       service.What
	event      string       // the name of what is told
	in         access.Grant // no store
	kind       cluster.Kind
	target     visibility.Target
	own        bool // the caller's own are shown wherever they are
	quotaOwner string
	name       string // in event ids
	prefix     string // of events' names
	newest     int    // how many are told to a client that comes without a position
	filter     store.Filter

	to     eventstream.Sink // nil before the first Read
	from   eventstream.From
	resume bool   // the client's position counts
	reset  string // why it does not

	freshness eventstream.Freshness
	former    string // the uid of a namespace that does not live any more
	looked    uint64 // what had this number at most was written when it was asked last which namespaces live
}

// open opens the source for a caller.
func (h *Handler) open(ctx context.Context, id auth.Identity, name string, t visibility.Target, q historyRequest) (eventstream.Source, error) {
	granted, kind, own, err := h.grant(ctx, id, t, "watch", q.me)
	if err != nil {
		return nil, err
	}
	if kind.Resource == "" { // the kind is gone, or was not looked up because the caller may see nothing of it
		kind = cluster.Kind{Group: t.Group, Version: t.Version, Resource: t.Resource, Namespaced: true}
	}
	s := &changes{
		handler: h, database: h.opts.Jobs.For(id.QuotaOwner()), turns: h.opts.Turns, in: granted, kind: kind, target: t, own: own, quotaOwner: id.QuotaOwner(),
		name: name, newest: q.limit, filter: q.filter, VisibilityTracker: eventstream.VisibilityTracker{Visible: granted.Visible},
	}
	if s.what, s.event = service.Transitions, "transition"; q.view == viewRuns {
		s.what, s.event, s.shared = service.Runs, "run", true
	}
	if s.name == "" {
		s.name = "h"
	} else {
		s.prefix = name + "."
	}
	s.filter.Namespace, s.filter.Name = t.Namespace, t.Name
	if own {
		s.filter.Own = id.Username
	}
	if err := restrict(ctx, &s.filter, granted.Kinds.Cluster(), granted.Visible); err != nil {
		return nil, err
	}
	if s.tail, err = h.opts.Jobs.Follow(ctx, granted.Kinds.Cluster(), t.Qualified(), s.what); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *changes) Name() string { return s.name }

func (s *changes) Ready(ctx context.Context) (err error) {
	if err = s.tail.Ready(ctx); err == nil {
		s.numbers, err = s.database.Numbers(ctx, s.in.Kinds.Cluster(), s.what.Numbering(s.target.Qualified()))
	}
	return err
}

// Epoch implements eventstream.Source. It is the epoch of the cluster's objects. So a client that adds a history to its
// stream is not reset everywhere.
func (s *changes) Epoch(ctx context.Context) (string, error) {
	return s.in.Kinds.Cluster().Epoch(ctx)
}

func (s *changes) Find(ctx context.Context, from eventstream.From) {
	s.from, s.reset, s.resume = from, from.Reset, false
	s.seen(s.Visible)
	if s.reset != "" || !from.Named {
		return
	}
	if s.reset = s.take(from.Claim); s.reset != "" {
		return
	}
	if s.resume = s.tail.Holds(s.seq); s.resume { // true for most clients that come back after a restart
		return
	}
	// One row is enough: this only asks whether all that follows is still there.
	_, _, err := s.database.After(ctx, s.in.Kinds.Cluster(), s.target.Qualified(), s.what, s.filter, s.seq, 1)
	switch {
	case errors.Is(err, service.ErrAhead):
		s.reset = eventstream.ResetAhead
	case errors.Is(err, service.ErrExpired):
		s.reset = eventstream.ResetExpired
	default: // if the database is away, the first Read says so
		s.resume = true
	}
}

func (s *changes) Begin(told eventstream.Freshness) (claim stream.Claim, reset string) {
	s.placed, s.freshness = s.resume, told
	return s.claim(), s.reset
}

// Bookmark implements eventstream.Source. The session calls it when it is time to, whatever was recorded meanwhile.
func (s *changes) Bookmark(to eventstream.Sink) {
	if s.placed {
		s.mark()
		to.Emit(eventstream.Event{Prefix: s.prefix, Name: "bookmark", Data: `{"seq":"` + s.text() + `"}`}, s.claim())
	}
}

func (s *changes) Read(_ context.Context, to eventstream.Sink) eventstream.ReadResult {
	isFirst := s.to == nil
	s.to = to
	p := s.read(isFirst)
	p.Claim = s.claim()
	return p
}

func (s *changes) read(isFirst bool) eventstream.ReadResult {
	if isFirst {
		switch {
		case !isWhole(s.Visible, s.target):
			s.EmitVisible(s.to, s.prefix, "narrowed", s.claim())
		case visibilityOf(s.from.Claim) != "" && visibilityOf(s.from.Claim) != s.Visible.Name():
			s.EmitVisible(s.to, s.prefix, "widened", s.claim())
		}
	}
	if p, asking := s.Answered(); asking {
		return p
	}
	switch {
	case s.Outdated():
		return s.adopt()
	case !s.placed:
		return s.state()
	}
	return s.follow()
}

// isOfAnotherNamespace reports whether a change would be told if its namespace were one that lives,
// and it is not known that it does not: it may have been made anew. One of which it is not known
// where it was is of no other life if some namespace of its name lived already: then its job is
// older than that.
func (s *changes) isOfAnotherNamespace(c service.LogRecord) bool {
	name, uid := c.Namespace()
	switch {
	case s.filter.Living == nil, uid != "" && uid == s.former, c.Matches(s.filter):
		return false
	case uid == "" && slices.ContainsFunc(s.filter.Living, func(n store.Namespace) bool { return n.Name == name }):
		return false
	}
	whichever := s.filter
	whichever.Living = nil
	return c.Matches(whichever)
}

// batch is how many changes are told in one Read.
const batch = 128

// follow tells what follows the client's position.
func (s *changes) follow() (p eventstream.ReadResult) {
	before := s.tail.Upstream()
	entries, err := s.tail.Next(s.seq, batch, s.to)
	switch {
	case errors.Is(err, service.ErrBehind), errors.Is(err, service.ErrAhead):
		return s.catchUp()
	case err != nil:
		p.Outcome = eventstream.Unavailable
		return p
	}
	p.More = len(entries) > 0
	if !p.More { // only now, since from here on a change wakes the session
		now := s.tail.Upstream()
		if p.More = now.Live && !before.Live; !p.More { // else what was recorded meanwhile comes first
			s.freshness.Tell(s.to, s.prefix, now, s.claim)
		}
	}
	for _, e := range entries {
		if e.Seq > s.looked && s.isOfAnotherNamespace(e.LogRecord) {
			filter, upTo := s.filter, entries[len(entries)-1].Seq
			return s.ask(func(ctx context.Context) error { return alive(ctx, &filter, s.in.Kinds.Cluster()) }, func() eventstream.ReadResult {
				s.filter, s.looked = filter, upTo
				if _, uid := e.Namespace(); uid != "" {
					s.former = uid
				}
				return eventstream.ReadResult{More: true}
			})
		}
		if !e.Matches(s.filter) {
			s.pass(e.Seq)
			continue
		}
		text := e.Text(s.isSealed(), s.encode)
		s.tell(e.Seq)
		s.to.Emit(eventstream.Event{Prefix: s.prefix, Name: s.event, Data: text}, s.claim())
		if p.Outcome = s.to.Relay(); p.Outcome != eventstream.GoOn || s.Outdated() || !s.to.Step(len(text)) {
			return p
		}
	}
	return p
}

// catchUp tells what follows the client's position and is not in memory, because it is too old for that, or too new.
func (s *changes) catchUp() eventstream.ReadResult {
	var found []service.LogRecord
	var upTo uint64
	filter, seq := s.filter, s.seq
	return s.ask(func(ctx context.Context) (err error) {
		if filter.Within != nil { // or what is of a namespace that was made anew would be passed over
			if err := alive(ctx, &filter, s.in.Kinds.Cluster()); err != nil {
				return err
			}
		}
		found, upTo, err = s.database.After(ctx, s.in.Kinds.Cluster(), s.target.Qualified(), s.what, filter, seq, batch)
		return err
	}, func() (p eventstream.ReadResult) {
		s.filter = filter
		if p.More = upTo > s.seq; !p.More { // the client knows more than is in memory
			s.tail.Await(s.to)
		}
		if p.Outcome = s.emit(found); p.Outcome == eventstream.GoOn && !s.Outdated() {
			s.pass(upTo)
		}
		return p
	})
}

// state tells the newest transitions, or the runs of the newest pods. The client then goes on from there.
func (s *changes) state() eventstream.ReadResult {
	var head uint64
	var found []service.LogRecord
	filter := s.filter
	return s.ask(func(ctx context.Context) (err error) {
		cluster, kind := s.in.Kinds.Cluster(), s.target.Qualified()
		if head, err = s.database.Head(ctx, cluster, kind, s.what); err == nil && head > 0 && s.newest > 0 {
			found, err = s.database.Newest(ctx, cluster, kind, s.what, filter, head, s.newest)
		}
		return err
	}, func() eventstream.ReadResult {
		if outcome := s.emit(found); outcome != eventstream.GoOn {
			return eventstream.ReadResult{More: true, Outcome: outcome}
		}
		if s.Outdated() { // some of what was just told may not be seen any more
			return s.miss(eventstream.ResetEpoch)
		}
		s.placed, s.seq = true, head
		s.mark()
		synced := fmt.Sprintf(`{"seq":"%s","count":%d}`, s.text(), len(found))
		s.to.Emit(eventstream.Event{Prefix: s.prefix, Name: "synced", Data: synced}, s.claim())
		return eventstream.ReadResult{More: true}
	})
}

// emit tells changes in order, each with its position, until there is a reason not to.
func (s *changes) emit(found []service.LogRecord) eventstream.Outcome {
	for _, c := range found {
		text := s.encode(c)
		s.tell(c.Seq)
		s.to.Emit(eventstream.Event{Prefix: s.prefix, Name: s.event, Data: text}, s.claim())
		if outcome := s.to.Relay(); outcome != eventstream.GoOn || s.Outdated() {
			return outcome
		}
		s.to.Step(len(text))
	}
	return eventstream.GoOn
}

func (s *changes) encode(c service.LogRecord) string {
	if c.Run != nil {
		return reply.MustJSON(wire.RunOf(c.Run, s.in.Kinds.Cluster().Name(), s.numbers.Row(c.Seq)))
	}
	return reply.MustJSON(s.number(wire.TransitionOf(c.Transition, s.in.Kinds.Cluster().Name(), s.target.Qualified()), c.Seq))
}

// ask asks the database in the caller's turn, since a client that was away for long has much to be
// told. What is found counts only if the caller may still see the same.
func (s *changes) ask(question func(ctx context.Context) error, then func() eventstream.ReadResult) eventstream.ReadResult {
	return s.Ask(s.to, func(ctx context.Context) error {
		release, err := s.turns.Take(ctx, s.quotaOwner)
		if err != nil {
			return err
		}
		defer release()
		return question(ctx)
	}, func(err error) eventstream.ReadResult {
		switch {
		case errors.Is(err, service.ErrAhead):
			return s.miss(eventstream.ResetAhead)
		case errors.Is(err, service.ErrExpired):
			return s.miss(eventstream.ResetExpired)
		case err != nil:
			return eventstream.FailureOf(err, s.prefix)
		case s.Outdated():
			return eventstream.ReadResult{More: true}
		}
		return then()
	})
}

// miss gives up the client's place.
func (s *changes) miss(reason string) eventstream.ReadResult {
	s.leave()
	s.looked = 0 // numbers may be others now
	return eventstream.ReadResult{More: true, Missed: reason}
}

// adopt tells the client that its caller may see something else from now on.
func (s *changes) adopt() eventstream.ReadResult {
	filter, next := s.filter, s.Next()
	return s.Ask(s.to, func(ctx context.Context) error {
		return restrict(ctx, &filter, s.in.Kinds.Cluster(), next)
	}, func(err error) eventstream.ReadResult {
		switch {
		case err != nil:
			return eventstream.FailureOf(err, s.prefix)
		case s.Outdated() && s.Next().Same(next):
			s.filter = filter
			event := s.Adopt()
			s.seen(s.Visible)
			s.EmitVisible(s.to, s.prefix, event, s.claim())
		}
		return eventstream.ReadResult{More: true}
	})
}

func (s *changes) Question() permission.Question {
	kinds, target, kind, own, h := s.in.Kinds, s.target, s.kind, s.own, s.handler
	return permission.Question{
		Key: fmt.Sprintf("history %p %#v %t", kinds, target, own),
		See: func(ctx context.Context, id auth.Identity) (*visibility.Visibility, bool, error) {
			visible, ok, err := h.opts.Access.See(ctx, kinds, id, target, kind, "watch")
			if err == nil && ok {
				visible, err = h.narrow(ctx, kinds, id, target, kind, "watch", visible)
			}
			if err == nil && !ok && own {
				visible, ok = visibility.Nothing(), true
			}
			return visible, ok, err
		},
		Live: func() bool { return kinds.Cluster().Away() == nil },
	}
}

func (s *changes) AuditRead() auditrecord.Read {
	read := access.ReadVisible(visibility.VisibleTarget{Target: s.target, Visible: s.Visible}, "watch")
	read.Partly = !isWhole(s.Visible, s.target)
	if s.prefix != "" {
		read.Watch = s.name
	}
	return read
}

func (s *changes) Close() {
	s.Drop()
	s.tail.Leave(s.to)
}
