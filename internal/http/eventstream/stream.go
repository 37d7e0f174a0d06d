package eventstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/http/trail"
	"github.com/kubecast/kubecast/internal/stream"
)

const eventStream = "text/event-stream"

// Reasons of the event goodbye.
const (
	goodbyeDrain       = "drain"
	goodbyeAge         = "age"
	goodbyeExpired     = "expired"
	goodbyeRevoked     = "revoked"
	goodbyeLimit       = "limit"
	goodbyeUnavailable = "unavailable"
	goodbyeGone        = "gone"
)

// Single answers a Kubernetes path that is asked for as an event stream.
func (h *Hub) Single(w http.ResponseWriter, r *http.Request, id auth.Identity, t access.Target) error {
	query, err := request.Query(r)
	if err != nil {
		return err
	}
	req, err := parseSingle(t, query)
	if err != nil {
		return err
	}
	return h.stream(w, r, id, req)
}

// Multi answers /stream.
func (h *Hub) Multi(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	if !reply.AcceptsEvents(r.Header) {
		return &reply.Error{Code: http.StatusNotAcceptable, Message: "only text/event-stream can be answered"}
	}
	query, err := request.Query(r)
	if err != nil {
		return err
	}
	trail.Of(r.Context()).Asked(reply.FormEvents, query)
	req, err := parseMulti(query)
	if err != nil {
		return err
	}
	return h.stream(w, r, id, req)
}

// stream begins an event stream. Only what will not heal by retrying is answered with a status of its own,
// before the first byte; everything else (too many streams, a cluster that is away, draining) is a 200 with goodbye,
// since an EventSource that gets a 503 never tries again.
func (h *Hub) stream(w http.ResponseWriter, r *http.Request, id auth.Identity, req streamRequest) error {
	ss := h.newSession(r, serverSentEvents{})
	ss.follow(id)
	giveUp := func() {
		ss.permission.stop()
		ss.leavePlaces()
	}
	refusal, err := goodbyeLimit, error(nil)
	if ss.takePlaces(len(req.watches)) {
		ss.watches, refusal, err = h.openWatches(r.Context(), id, req)
	}
	if err != nil {
		giveUp()
		return err
	}
	ss.heartbeat = req.heartbeat
	if ss.out.to, err = conn.Open(w, r, eventStream); err != nil || request.IsHead(r) {
		closeAll(ss.watches)
		giveUp()
		return nil // gone, or content
	}
	h.start(r, ss, refusal)
	return nil
}

// takePlaces counts the session and so many watches, and is false if that is too much. It comes before anything is done for the
// watches, or who has no place left could have that done again and again.
func (ss *session) takePlaces(watches int) bool {
	if ss.hub.places.take(ss.id.Payer(), ss.address, watches) {
		ss.placed = watches
	}
	return ss.placed > 0
}

// leavePlaces counts the session no more.
func (ss *session) leavePlaces() {
	if ss.placed > 0 {
		ss.hub.places.leave(ss.id.Payer(), ss.address, ss.placed)
		ss.placed = 0
	}
}

// Refuse answers a stream of somebody whom the gateway cannot identify at the moment, or who asks for too much, and returns
// the error of anybody else.
func (h *Hub) Refuse(w http.ResponseWriter, r *http.Request, refused error) (err error) {
	goodbye := goodbyeFor(refused)
	if goodbye == "" {
		return refused
	}
	ss := h.newSession(r, serverSentEvents{})
	ss.permission.stop = func() {}
	if ss.out.to, err = conn.Open(w, r, eventStream); err != nil || request.IsHead(r) {
		return nil // gone, or content
	}
	h.start(r, ss, goodbye)
	return nil
}

// newSession takes what a stream needs of a request, which it outlives; copied, since each part of a request keeps all
// of its header in memory.
func (h *Hub) newSession(r *http.Request, d dialect) *session {
	return &session{
		hub:      h,
		dialect:  d,
		request:  request.ID(r),
		path:     strings.Clone(r.URL.Path),
		address:  strings.Clone(request.Address(r)),
		position: strings.Clone(positionOf(r.Header, r.URL.Query())),
		began:    time.Now(),
		trail:    trail.Of(r.Context()),
		out:      frames{patience: h.opts.Times.WriteTimeout},
	}
}

// goodbyeFor is how a stream is refused for an error that a client must not be stopped by, since it heals by retrying; "" for others.
func goodbyeFor(err error) string {
	if err == nil {
		return ""
	}
	switch reply.To(err).Code {
	case http.StatusServiceUnavailable:
		return goodbyeUnavailable
	case http.StatusTooManyRequests:
		return goodbyeLimit
	}
	return ""
}

// openWatches authorizes each watch and finds its store, for all of them at once. What the client can do nothing about
// comes back as a reason for goodbye, not as an error; then there are no watches.
func (h *Hub) openWatches(ctx context.Context, id auth.Identity, req streamRequest) (watches []*watch, refusal string, err error) {
	opened := make([]*watch, len(req.watches))
	errs := make([]error, len(req.watches))
	var opening sync.WaitGroup
	for i, wr := range req.watches {
		opening.Go(func() { opened[i], errs[i] = h.openWatch(ctx, id, wr) })
	}
	opening.Wait()
	for _, failed := range errs {
		switch goodbye := goodbyeFor(failed); {
		case failed == nil:
		case goodbye != "":
			refusal = goodbye
		case err == nil:
			err = failed // which retrying does not heal, so it matters more than what it does
		}
	}
	if err == nil && refusal == "" {
		return opened, "", nil
	}
	closeAll(opened)
	return nil, refusal, err
}

func closeAll(watches []*watch) {
	for _, w := range watches {
		if w != nil {
			w.close()
		}
	}
}

func (h *Hub) openWatch(ctx context.Context, id auth.Identity, req watchRequest) (*watch, error) {
	granted, err := h.opts.Access.Open(ctx, id, req.target, "watch")
	if err != nil {
		return nil, err
	}
	return newWatch(req, granted), nil
}

// epoch identifies the clusters of a set of watches in event ids.
func epoch(ctx context.Context, watches []*watch) (string, error) {
	var epochs []string
	for _, w := range watches {
		e, err := w.Kinds.Cluster().Epoch(ctx)
		if err != nil {
			return "", err
		}
		epochs = append(epochs, e)
	}
	return cluster.JoinEpochs(epochs), nil
}

// between is a random duration from low to high.
func between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + rand.N(high-low)
}

// position is where a watch of the stream goes on, as the client's event id says.
type position struct {
	known bool // a position was sent, whether it can be read or not
	stream.Position
	err error // it cannot be read
}

func readPosition(text string) position {
	if text == "" {
		return position{}
	}
	p, err := stream.ParsePosition(text)
	return position{known: true, Position: p, err: err}
}

// Reasons of the event reset.
const (
	resetExpired    = "expired"
	resetEpoch      = "epoch"
	resetAhead      = "ahead"
	resetUnreadable = "unreadable"
	resetSlow       = "slow"
)

// resetReason is why a cursor could not be given, or could not go on.
func resetReason(err error) string {
	switch {
	case errors.Is(err, stream.ErrAhead):
		return resetAhead
	case errors.Is(err, stream.ErrEpoch):
		return resetEpoch
	case errors.Is(err, stream.ErrSlow):
		return resetSlow
	}
	return resetExpired
}
