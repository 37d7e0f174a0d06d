package notifications

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/jobs/inbox"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Stream is an eventstream.Parser: it reads what is asked of a stream of notifications.
func (h *Handler) Stream(name, path string, query url.Values) (eventstream.Opener, error) {
	if path != Path {
		return nil, reply.NotFound("notifications are streamed at " + Path)
	}
	for parameter, values := range query {
		switch {
		case parameter != "limit":
			return nil, reply.BadRequest("%s: there is no such parameter of a stream; there is limit", reply.Shortened(parameter))
		case len(values) > 1:
			return nil, reply.BadRequest("limit: given more than once")
		}
	}
	limit, err := limitOf(query, 0)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, id auth.Identity) (eventstream.Source, error) {
		source, err := h.open(ctx, id, name, limit)
		auditrecord.Of(ctx).Decided(read("watch"), err)
		return source, err
	}, nil
}

// source is the eventstream.Source of a user's inbox. Its position is a number: all up to it was
// told, or is not to be seen.
//
// When its caller may see something else from now on, the client is reset: what it holds and may
// not see any more goes that way, and what is unread is counted anew.
type source struct {
	eventstream.VisibilityTracker
	eventstream.Aside
	handler  *Handler
	id       auth.Identity
	follower *inbox.Follower
	name     string // in event ids
	prefix   string // of events' names
	newest   int    // how many are told to a client that comes without a position

	to     eventstream.Sink // nil before the first Read
	resume bool             // the client's position counts
	reset  string           // why it does not
	placed bool             // seq is a position
	behind bool             // something may follow that came before the inbox was followed, and so wakes nobody
	seq    uint64

	freshness eventstream.Freshness // only as long as it has not begun, the database may be away
}

func (h *Handler) open(ctx context.Context, id auth.Identity, name string, newest int) (eventstream.Source, error) {
	if err := h.permitted(id); err != nil {
		return nil, err
	}
	visible, err := h.see(ctx, id)
	if err != nil {
		return nil, err
	}
	s := &source{
		VisibilityTracker: eventstream.VisibilityTracker{Visible: visible}, handler: h, id: id, follower: h.opts.Inbox.Follow(id.Username), name: name, newest: newest,
	}
	if s.name == "" {
		s.name = "n"
	} else {
		s.prefix = name + "."
	}
	return s, nil
}

func (s *source) Name() string { return s.name }

func (s *source) Ready(ctx context.Context) error { return s.follower.Ready(ctx) }

// Epoch implements eventstream.Source. It is the epoch of the default cluster. So a client that
// adds its notifications to a stream of that cluster is not reset everywhere.
func (s *source) Epoch(ctx context.Context) (string, error) {
	kinds, err := s.handler.opts.Access.Cluster("")
	if err != nil {
		return "", err
	}
	return kinds.Cluster().Epoch(ctx)
}

func (s *source) Find(ctx context.Context, from eventstream.From) {
	s.reset, s.resume = from.Reset, false
	if s.reset != "" || !from.Named {
		return
	}
	switch {
	case from.Claim.Own != "" || from.Claim.Some != from.Claim.All || from.Claim.All>>63 != 0:
		s.reset = eventstream.ResetUnreadable
		return
	case from.Claim.Visibility != s.Visible.Name():
		s.reset = eventstream.ResetEpoch
		return
	}
	s.seq = from.Claim.All
	// One row is enough: this only asks whether all that follows is still there.
	_, err := s.after(ctx, s.Visible, s.seq, 1)
	switch {
	case errors.Is(err, inbox.ErrAhead):
		s.reset = eventstream.ResetAhead
	case errors.Is(err, inbox.ErrExpired):
		s.reset = eventstream.ResetExpired
	default: // if the database is away, the first Read says so
		s.resume = true
	}
}

func (s *source) Begin(told eventstream.Freshness) (claim stream.Claim, reset string) {
	s.placed, s.behind, s.freshness = s.resume, s.resume, told
	return s.claim(), s.reset
}

func (s *source) claim() stream.Claim {
	if !s.placed {
		return stream.Claim{}
	}
	return stream.Claim{Known: stream.UpTo(s.seq), Visibility: s.Visible.Name()}
}

func (s *source) Bookmark(to eventstream.Sink) {
	if s.placed {
		to.Emit(eventstream.Event{Prefix: s.prefix, Name: "bookmark", Data: `{"seq":"` + strconv.FormatUint(s.seq, 10) + `"}`}, s.claim())
	}
}

func (s *source) Read(_ context.Context, to eventstream.Sink) eventstream.ReadResult {
	s.to = to
	p := s.read()
	p.Claim = s.claim()
	return p
}

func (s *source) read() eventstream.ReadResult {
	if p, asking := s.Answered(); asking {
		return p
	}
	if s.Outdated() {
		s.Adopt()
		if s.placed {
			return s.miss(eventstream.ResetEpoch)
		}
	}
	if !s.placed {
		return s.state()
	}
	if !s.behind {
		more, err := s.follower.Next(s.seq, s.to)
		switch {
		case err != nil:
			return eventstream.ReadResult{Outcome: eventstream.Unavailable}
		case !more:
			s.freshness.Live(s.to, s.prefix, s.claim)
			return eventstream.ReadResult{}
		}
	}
	return s.follow()
}

// batch is how many changes are told in one Read.
const batch = 128

// after are the changes behind a position, as far as may be seen.
func (s *source) after(ctx context.Context, visible *visibility.Visibility, seq uint64, limit int) (found []inbox.Update, err error) {
	err = s.handler.inTurn(ctx, s.id, func() error {
		sees, err := s.handler.seesOf(ctx, visible)
		if err != nil {
			return err
		}
		found, err = s.handler.opts.Inbox.After(ctx, s.id.Username, sees, seq, limit)
		return err
	})
	return found, err
}

// follow tells what follows the client's position.
func (s *source) follow() eventstream.ReadResult {
	var found []inbox.Update
	visible, seq := s.Visible, s.seq
	return s.Ask(s.to, func(ctx context.Context) (err error) {
		found, err = s.after(ctx, visible, seq, batch)
		return err
	}, func(err error) eventstream.ReadResult {
		switch {
		case errors.Is(err, inbox.ErrAhead):
			return s.miss(eventstream.ResetAhead)
		case errors.Is(err, inbox.ErrExpired):
			return s.miss(eventstream.ResetExpired)
		case err != nil:
			return eventstream.FailureOf(err, s.prefix)
		case s.Outdated(): // some of it may not be seen any more
			return eventstream.ReadResult{More: true}
		}
		return s.tell(found)
	})
}

// tell tells what was found behind the client's position.
func (s *source) tell(found []inbox.Update) eventstream.ReadResult {
	for _, c := range found {
		s.seq = c.Seq
		switch {
		case c.Notification != nil:
			s.emit("notification", reply.MustJSON(c.Notification))
		case c.Mark != nil:
			s.emit("read", reply.MustJSON(c.Mark))
		}
		if outcome := s.to.Relay(); outcome != eventstream.GoOn || s.Outdated() {
			return eventstream.ReadResult{More: true, Outcome: outcome}
		}
	}
	s.behind = len(found) == batch
	return eventstream.ReadResult{More: true}
}

// state tells the newest notifications. The client then goes on from there.
func (s *source) state() eventstream.ReadResult {
	var now inbox.Snapshot
	visible := s.Visible
	return s.Ask(s.to, func(ctx context.Context) error {
		return s.handler.inTurn(ctx, s.id, func() (err error) {
			sees, err := s.handler.seesOf(ctx, visible)
			if err != nil {
				return err
			}
			now, err = s.handler.opts.Inbox.Snapshot(ctx, s.id.Username, sees, s.newest)
			return err
		})
	}, func(err error) eventstream.ReadResult {
		switch {
		case err != nil:
			return eventstream.FailureOf(err, s.prefix)
		case s.Outdated():
			return eventstream.ReadResult{More: true}
		}
		return s.begin(now)
	})
}

// begin tells the newest notifications.
func (s *source) begin(now inbox.Snapshot) eventstream.ReadResult {
	for _, n := range now.Newest {
		s.emit("notification", reply.MustJSON(n))
		if outcome := s.to.Relay(); outcome != eventstream.GoOn {
			return eventstream.ReadResult{More: true, Outcome: outcome}
		}
		if s.Outdated() { // some of what was just told may not be seen any more
			return s.miss(eventstream.ResetEpoch)
		}
	}
	s.placed, s.seq = true, now.Seq
	s.emit("synced", fmt.Sprintf(`{"seq":"%d","count":%d,"unread":%d}`, now.Seq, len(now.Newest), now.Unread))
	return eventstream.ReadResult{More: true}
}

// miss gives up the client's place.
func (s *source) miss(reason string) eventstream.ReadResult {
	s.placed, s.behind, s.seq = false, false, 0
	return eventstream.ReadResult{More: true, Missed: reason}
}

func (s *source) emit(name, data string) {
	s.to.Emit(eventstream.Event{Prefix: s.prefix, Name: name, Data: data}, s.claim())
}

func (s *source) Question() permission.Question {
	h := s.handler
	return permission.Question{
		Key: "notifications",
		See: func(ctx context.Context, id auth.Identity) (*visibility.Visibility, bool, error) {
			visible, err := h.see(ctx, id)
			return visible, err == nil, err
		},
		Live: func() bool { return true }, // see leaves out clusters that are away
	}
}

func (s *source) AuditRead() auditrecord.Read {
	r := read("watch")
	r.Partly = s.Visible != nil
	if s.prefix != "" {
		r.Watch = s.name
	}
	return r
}

func (s *source) Close() {
	s.Drop()
	s.follower.Leave(s.to)
}
