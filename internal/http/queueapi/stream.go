package queueapi

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/queues"
	"github.com/kubecast/kubecast/internal/queues/pending"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// usualConflate is how often a client is told at most that does not say so.
const usualConflate = 250 * time.Millisecond

// Stream is an eventstream.Parser: it reads what is asked of a stream of queues.
func (h *Handler) Stream(name, path string, query url.Values) (eventstream.Opener, error) {
	if !IsPath(path) {
		return nil, reply.NotFound("queues are streamed at " + Path + ", and each below it")
	}
	_, conflate, err := eventstream.ParseProjection(cache.Paths{}, func(key string) string {
		if key != "conflate" {
			return ""
		}
		return query.Get(key)
	})
	if err != nil {
		return nil, reply.BadRequest("%s", err)
	}
	if len(query["conflate"]) > 1 {
		return nil, reply.BadRequest("conflate: given more than once")
	}
	own := url.Values{}
	for key, values := range query {
		if key != "conflate" {
			own[key] = values
		}
	}
	q, err := parse(path, own)
	if err != nil {
		return nil, err
	}
	if q.conflate = conflate; conflate == 0 {
		q.conflate = usualConflate
	}
	return func(ctx context.Context, id auth.Identity) (eventstream.Source, error) {
		source, err := h.openStream(ctx, id, name, q)
		if err != nil {
			auditrecord.Of(ctx).Decided(q.read(), err)
			return nil, err
		}
		auditrecord.Of(ctx).Decided(source.asked.read(), nil)
		return source, nil
	}, nil
}

// IsPath reports whether a path is that of queues, of any cluster.
func IsPath(path string) bool {
	if below, ok := strings.CutPrefix(path, "/clusters/"); ok {
		_, path, _ = strings.Cut(below, "/")
		path = "/" + path
	}
	parts := strings.Split(path, "/")
	return len(parts) >= 2 && len(parts) <= 4 && "/"+parts[1] == Path && !slices.Contains(parts[1:], "")
}

// read is what is asked for as the audit log names it.
func (q queueRequest) read() auditrecord.Read {
	r := auditrecord.Read{Cluster: q.cluster, Group: queues.Group, Resource: localQueues, Namespace: q.namespace, Name: q.name, Verb: "list"}
	switch {
	case q.kind == volcanos:
		r.Group, r.Resource = queues.VolcanoGroup, "queues"
	case q.name != "" && q.namespace == "":
		r.Resource = clusterQueues
	}
	return r
}

// source is the eventstream.Source of queues. It has no position: all is told each time.
type source struct {
	eventstream.VisibilityTracker
	eventstream.Aside
	handler *Handler
	id      auth.Identity // of a clone, nobody's
	kinds   *cache.Kinds
	asked   queueRequest
	reader  *pending.Reader
	name    string // in event ids
	prefix  string // of events' names
	opened  time.Time
	isClone bool

	begun     bool
	asking    bool   // what may be seen of kinds that have come
	number    uint64 // of the snapshot that was looked at last
	sum       uint64 // of what the client was told last; 0: of nothing
	notBefore time.Time
	notLook   time.Time // it is not asked what may be seen before
	due       time.Time
	freshness eventstream.Freshness
}

func (h *Handler) openStream(ctx context.Context, id auth.Identity, name string, q queueRequest) (*source, error) {
	kinds, err := h.opts.Access.Cluster(q.cluster)
	if err != nil {
		return nil, err
	}
	queue, visible, err := h.find(ctx, id, kinds, &q)
	if err != nil {
		return nil, err
	}
	reader, err := h.read(kinds, queue, id)
	if err != nil {
		return nil, err
	}
	s := &source{
		VisibilityTracker: eventstream.VisibilityTracker{Visible: visible}, handler: h, id: id, kinds: kinds, asked: q, reader: reader, name: name, opened: time.Now(),
	}
	if s.name == "" {
		s.name = "q"
	} else {
		s.prefix = name + "."
	}
	return s, nil
}

func (s *source) Name() string { return s.name }

func (s *source) Ready(ctx context.Context) error { return s.reader.Ready(ctx) }

func (s *source) Epoch(ctx context.Context) (string, error) { return s.kinds.Cluster().Epoch(ctx) }

func (s *source) Find(context.Context, eventstream.From) {}

func (s *source) Begin(told eventstream.Freshness) (claim stream.Claim, reset string) {
	s.begun, s.freshness = true, told
	return nowhere(), ""
}

// nowhere is the position of every client; see eventstream.ToldWhole.
func nowhere() stream.Claim { return stream.Claim{} }

func (s *source) Read(_ context.Context, to eventstream.Sink) eventstream.ReadResult {
	p := s.read(to)
	p.Due = s.due
	return p
}

func (s *source) read(to eventstream.Sink) eventstream.ReadResult {
	if p, asking := s.Answered(); asking {
		return p
	}
	if s.Outdated() {
		s.Adopt()
		s.number = 0
	}
	if !s.due.IsZero() && !time.Now().Before(s.due) {
		s.number, s.due = 0, time.Time{}
	}
	now, err := s.reader.Snapshot(to, s.number)
	switch {
	case err != nil:
		return eventstream.ReadResult{Outcome: eventstream.Unavailable}
	case now == nil || now.Number == s.number:
		return eventstream.ReadResult{}
	}
	s.due = time.Time{}
	switch {
	case (sight{s.Visible.Shows()}).lacks(now.Kinds):
		if time.Now().Before(s.notLook) {
			s.due = s.notLook
			return eventstream.ReadResult{}
		}
		return s.lookAgain(to, now.Kinds)
	case !now.Upstream.Live:
		s.freshness.Tell(to, s.prefix, now.Upstream, nowhere)
	}
	if time.Now().Before(s.notBefore) {
		s.due = s.notBefore
		return eventstream.ReadResult{}
	}
	return s.tell(to, now)
}

// looksAgain is after what it is asked again what may be seen of jobs, of somebody who may not see their queue any more.
const looksAgain = time.Second

// lookAgain asks what may be seen of kinds that jobs have come to be of. Who reads for others does not know for whom.
func (s *source) lookAgain(to eventstream.Sink, jobs []cluster.Kind) eventstream.ReadResult {
	if s.isClone {
		return eventstream.ReadResult{Outcome: eventstream.WouldBlock}
	}
	s.asking = true
	var visible *visibility.Visibility
	var ok bool
	return s.Ask(to, func(ctx context.Context) (err error) {
		visible, ok, err = s.handler.see(ctx, s.id, s.kinds, s.asked, jobs)
		return err
	}, func(err error) eventstream.ReadResult {
		s.asking = false
		switch {
		case err != nil:
			return eventstream.FailureOf(err, s.prefix)
		case !ok: // it is asked about that anyway
			visible, s.notLook = visibility.Nothing(), time.Now().Add(looksAgain)
		}
		s.Permit(visible)
		return eventstream.ReadResult{More: true}
	})
}

// tell tells what a snapshot says, if that is something else than the client was told.
func (s *source) tell(to eventstream.Sink, now *pending.Snapshot) eventstream.ReadResult {
	see := sight{s.Visible.Shows()}
	if p, isThere := s.isThere(now, see); !isThere {
		return p
	}
	view := see.view(now, s.asked, s.Visible.Tag())
	s.number = now.Number
	told := view.Sum != s.sum || s.sum == 0
	to.Step(len(view.Text))
	if told {
		s.sum, s.notBefore = view.Sum, time.Now().Add(s.asked.conflate)
		to.Emit(eventstream.Event{Prefix: s.prefix, Name: "queue", Data: view.Text}, nowhere())
	}
	if now.Upstream.Live {
		s.freshness.Tell(to, s.prefix, now.Upstream, nowhere)
	}
	if !told {
		return eventstream.ReadResult{More: true} // so that what comes next wakes the session
	}
	return eventstream.ReadResult{More: true, At: now.At, Outcome: to.Relay()}
}

// lags is by how much a snapshot may be behind what a stream was opened for: a queue that has just been made.
const lags = 2 * time.Second

// isThere reports whether the queue is still there, and a part of the ClusterQueue that is read; else what is to be done.
func (s *source) isThere(now *pending.Snapshot, see sight) (p eventstream.ReadResult, is bool) {
	if s.asked.name == "" {
		return p, true
	}
	o := see.object(now, s.asked)
	switch soon := s.opened.Add(lags); {
	case o == nil && s.sum == 0 && time.Now().Before(soon):
		s.number, s.due, p.More = now.Number, soon, true // so that the next snapshot wakes the session
	case o == nil:
		p.Outcome = eventstream.Gone
	case !s.asked.isIn(now, s.reader.Queue().Name):
		p.Outcome = eventstream.Unavailable // it is opened anew
	default:
		is = true
	}
	return p, is
}

// ToldWhole implements eventstream.ToldWhole.
func (s *source) ToldWhole() {}

func (s *source) Bookmark(eventstream.Sink) {}

func (s *source) Question() permission.Question {
	h, kinds, q, reader := s.handler, s.kinds, s.asked, s.reader
	return permission.Question{
		Key: fmt.Sprintf("queues %p %q %q %q", kinds, q.namespace, q.name, q.kind),
		See: func(ctx context.Context, id auth.Identity) (*visibility.Visibility, bool, error) {
			return h.see(ctx, id, kinds, q, reader.Kinds())
		},
		Live: func() bool { return kinds.Cluster().Away() == nil },
	}
}

func (s *source) AuditRead() auditrecord.Read {
	r := s.asked.read()
	r.Partly = true
	if s.prefix != "" {
		r.Watch = s.name
	}
	return r
}

func (s *source) Close() {
	s.Drop()
	s.reader.Close()
}
