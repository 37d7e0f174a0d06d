package eventstream

import (
	"net/http"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/coding"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
)

const eventStream = "text/event-stream"

// Single answers a path of one of Options.Parsers that is asked for as an event stream.
func (h *Hub) Single(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	return h.single(w, r, id, h.opts.Parsers.of(r.URL.Path).Parse, false)
}

// Text answers a path as lines of text: the data of each event that is called line. An answer that
// ends before its source does does not look complete.
func (h *Hub) Text(w http.ResponseWriter, r *http.Request, id auth.Identity, parse Parser) error {
	return h.single(w, r, id, parse, true)
}

func (h *Hub) single(w http.ResponseWriter, r *http.Request, id auth.Identity, parse Parser, text bool) error {
	query, err := request.Query(r)
	if err != nil {
		return err
	}
	req, err := parseSingle(parse, r.URL.Path, query)
	if err != nil {
		return err
	}
	req.text = text
	return h.stream(w, r, id, req)
}

// Multi answers /stream.
func (h *Hub) Multi(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	if !reply.AcceptsEvents(r.Header) {
		return reply.NotAcceptable("only text/event-stream can be answered")
	}
	query, err := request.Query(r)
	if err != nil {
		return err
	}
	auditrecord.Of(r.Context()).Asked(reply.FormEvents, query)
	req, err := parseMulti(query, h.opts.Parsers)
	if err != nil {
		return err
	}
	return h.stream(w, r, id, req)
}

// stream begins an event stream. Only what will not heal by retrying is answered with a status of its own,
// before the first byte; everything else (too many streams, a cluster that is away, draining) is a 200 with goodbye,
// since an EventSource that gets a 503 never tries again.
func (h *Hub) stream(w http.ResponseWriter, r *http.Request, id auth.Identity, req streamRequest) error {
	ss, media := h.newEventStream(r, id), eventStream
	if req.text {
		ss.encoder, ss.finite, ss.position, media = textLines{}, true, "", "text/plain; charset=utf-8"
	}
	h.opts.Permissions.Follow(ss, ss.id)
	giveUp := func() {
		h.opts.Permissions.Leave(ss)
		ss.leaveQuota()
	}
	refusal, err := Limit, error(nil)
	if ss.takeQuota(len(req.openings)) {
		refusal, err = ss.openSources(r.Context(), req)
	}
	if err != nil {
		giveUp()
		return err
	}
	ss.heartbeat = req.heartbeat
	if err = ss.open(w, r, media); err != nil || request.IsHead(r) {
		closeAll(ss.sources)
		giveUp()
		return nil // gone, or content
	}
	h.start(r, ss, refusal)
	return nil
}

// SingleSourceStream is a stream of one source, in a form that is not that of event streams.
type SingleSourceStream struct {
	Source   Source
	Encoder  Encoder
	Media    string        // the type of its content
	Position string        // from which the client goes on, in place of one that it sends as clients of event streams do; may be ""
	Age      time.Duration // after which the stream ends; 0: as any other
	// Bookmarks is the time between two bookmarks; 0: as on any other.
	Bookmarks time.Duration
}

// Serve answers a request with a stream of one source in a form of its own. The caller's permissions are followed, and
// their quotas are taken, before open is called. Whatever keeps the stream from beginning is an error of the request.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, id auth.Identity, open func() (SingleSourceStream, error)) error {
	ss := h.newSession(r, id)
	h.opts.Permissions.Follow(ss, ss.id)
	giveUp := func() {
		h.opts.Permissions.Leave(ss)
		ss.leaveQuota()
	}
	if !ss.takeQuota(1) {
		giveUp()
		return reply.TooManyRequests("too many watches and streams are open: end one, or try again later", nil)
	}
	answer, err := open()
	if err != nil {
		giveUp()
		return err
	}
	ss.sources, ss.openings = []Source{answer.Source}, make([]opening, 1)
	ss.encoder, ss.position = answer.Encoder, answer.Position
	ss.age, ss.bookmark = answer.Age, answer.Bookmarks
	if ss.out.to, err = conn.Open(w, r, answer.Media); err != nil || request.IsHead(r) {
		closeAll(ss.sources)
		giveUp()
		return nil // the client has gone, or asked only for the head
	}
	h.start(r, ss, GoOn)
	return nil
}

// open answers the request with the head of the stream, which is sent in the coding that the client likes best.
func (ss *session) open(w http.ResponseWriter, r *http.Request, media string) (err error) {
	w.Header().Add("Vary", "Accept-Encoding")
	if ss.out.coding = ss.hub.opts.Codings.For(r.Header); ss.out.coding != nil {
		w.Header().Set("Content-Encoding", ss.out.coding.Name)
	}
	ss.out.to, err = conn.Open(w, r, media)
	return err
}

// takeQuota counts the session and so many sources, and reports false if that is too much. It comes before anything is
// done for the sources. Otherwise a caller whose quota is used up could have that work done again and again.
func (ss *session) takeQuota(sources int) bool {
	if ss.hub.quota.take(ss.id.QuotaOwner(), ss.address, sources) {
		ss.counts = sources
	}
	return ss.counts > 0
}

// leaveQuota counts the session no more.
func (ss *session) leaveQuota() {
	if ss.counts > 0 {
		ss.hub.quota.leave(ss.id.QuotaOwner(), ss.address, ss.counts)
		ss.counts = 0
	}
}

// Refuse answers a stream of a caller whom the gateway cannot identify at the moment, or who asks for too much. Any
// other error it returns.
func (h *Hub) Refuse(w http.ResponseWriter, r *http.Request, refused error) (err error) {
	refusal := refusalOf(refused)
	if refusal == GoOn {
		return refused
	}
	ss := h.newEventStream(r, auth.Identity{})
	if err = ss.open(w, r, eventStream); err != nil || request.IsHead(r) {
		return nil // gone, or content
	}
	h.start(r, ss, refusal)
	return nil
}

// newSession takes what a stream needs of a request, which the stream outlives. Strings are cloned,
// since each part of a request keeps all of its header in memory.
func (h *Hub) newSession(r *http.Request, id auth.Identity) *session {
	return &session{
		hub:      h,
		id:       id,
		request:  request.ID(r),
		path:     strings.Clone(r.URL.Path),
		address:  strings.Clone(request.Address(r)),
		shared:   conn.SharedOf(r),
		position: strings.Clone(PositionOf(r.Header, r.URL.Query())),
		began:    time.Now(),
		audit:    auditrecord.Of(r.Context()),
		out:      frames{patience: h.opts.Times.WriteTimeout, body: coding.Body{QuotaOwner: id.QuotaOwner()}},
	}
}

// newEventStream is newSession for server-sent events.
func (h *Hub) newEventStream(r *http.Request, id auth.Identity) *session {
	ss := h.newSession(r, id)
	ss.encoder = ServerSentEvents(h.opts.Memory, id.QuotaOwner())
	return ss
}

// refusalOf is the outcome by which a stream is refused for an error that heals by retrying; GoOn for other errors. A
// refusal by an HTTP status would stop the client.
func refusalOf(err error) Outcome {
	if err == nil {
		return GoOn
	}
	switch reply.To(err).Code {
	case http.StatusServiceUnavailable:
		return Unavailable
	case http.StatusTooManyRequests:
		return Limit
	}
	return GoOn
}

func closeAll(sources []Source) {
	for _, s := range sources {
		if s != nil {
			s.Close()
		}
	}
}
