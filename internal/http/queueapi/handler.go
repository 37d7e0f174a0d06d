// Package queueapi owns what is below /queues: what queues have and use, and who waits in them in which order, as far
// as the caller may see it.
//
// What it promises: a job that the caller may not see is a place in the queue, and nothing else. What a queue's own
// object says of it, numbers of jobs included, is told to whoever may list that object.
//
// What it refuses: to say in which order jobs wait where Kueue does not say so.
package queueapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/ratelimit"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/jobs/service"
	"github.com/kubecast/kubecast/internal/queues"
	"github.com/kubecast/kubecast/internal/queues/pending"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Options configure a Handler; all are required unless they say otherwise.
type Options struct {
	Access *access.Access
	Jobs   *service.Service // says whose jobs are; nil: nobody does
	Turns  *ratelimit.Turns // of lists and gets
	// Processors are the turns for work that takes long.
	Processors *budget.Queue
	// SyncTimeout is how long a request waits for a kind's first list.
	SyncTimeout time.Duration
	None        bool // no cluster counts as having queues
}

// Handler answers requests for queues.
type Handler struct {
	opts    Options
	pending *pending.Registry
}

// New returns a Handler. What it streams is followed for as long as Run runs.
func New(opts Options) *Handler {
	h := &Handler{opts: opts}
	follow := pending.Options{Processors: opts.Processors, Linger: linger, None: opts.None}
	if opts.Jobs != nil {
		follow.Owners, follow.Past, follow.Kinds = h.owned, h.pastOf, opts.Jobs.Kinds()
	}
	h.pending = pending.New(follow)
	return h
}

// Run follows queues until the context ends.
func (h *Handler) Run(ctx context.Context) { h.pending.Run(ctx) }

// linger is for how long a queue is followed that nobody reads any more: who comes back soon finds it as it was.
const linger = 5 * time.Second

// Path is that of the list; each queue stands below it.
const Path = "/queues"

const (
	localQueues   = "localqueues"
	clusterQueues = "clusterqueues"

	// usualJobs and mostJobs are how many waiting jobs are told of a queue.
	usualJobs, mostJobs = 100, 1000
)

// queueRequest is what an address asks for: all queues, or one. One without a namespace is of the
// whole cluster.
type queueRequest struct {
	cluster, namespace, name string
	kind                     string // of a queue of the whole cluster: Queue or ClusterQueue; "": whichever is there
	limit                    int
	conflate                 time.Duration // of a stream: it is told at most once in it
}

func parse(path string, query url.Values) (q queueRequest, err error) {
	if below, ok := strings.CutPrefix(path, "/clusters/"); ok {
		q.cluster, path, _ = strings.Cut(below, "/")
	}
	switch parts := strings.Split(strings.Trim(path, "/"), "/"); len(parts) { // the first is "queues"
	case 1:
	case 2:
		q.name = parts[1]
	default:
		q.namespace, q.name = parts[1], parts[2]
	}
	q.limit = usualJobs
	for name, values := range query {
		if name == "kind" && q.name != "" && q.namespace == "" {
			if q.kind = values[0]; len(values) > 1 || q.kind != volcanos && q.kind != "ClusterQueue" {
				return q, reply.BadRequest("kind is Queue or ClusterQueue")
			}
			continue
		}
		limit, err := strconv.Atoi(values[0])
		if name != "limit" || q.name == "" {
			return q, reply.BadRequest("a list of queues takes no parameter, one queue only limit, and one of a whole cluster kind, too")
		}
		if err != nil || limit < 1 || limit > mostJobs || len(values) > 1 {
			return q, reply.BadRequest("limit is a number from 1 to %d", mostJobs)
		}
		q.limit = limit
	}
	return q, nil
}

// Answer answers the list of queues, or one with the jobs that wait in it.
func (h *Handler) Answer(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	query, err := request.Query(r)
	if err != nil {
		return err
	}
	q, err := parse(r.URL.Path, query)
	if err != nil {
		return err
	}
	if reply.Negotiate(r.Header) != reply.FormJSON {
		return reply.NotAcceptable("queues are answered as application/json or text/event-stream")
	}
	release, err := h.opts.Turns.Take(r.Context(), id.QuotaOwner())
	if err != nil {
		return err
	}
	defer release()
	kinds, err := h.opts.Access.Cluster(q.cluster)
	if err != nil {
		return err
	}
	text, err := h.answer(r.Context(), id, kinds, &q)
	auditrecord.Of(r.Context()).Decided(q.read(), err)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, text+"\n") // a client that has gone is no error
	return nil
}

// answer is what a caller is told of what they ask for: what a stream of it tells first.
func (h *Handler) answer(ctx context.Context, id auth.Identity, kinds *cache.Kinds, asked *queueRequest) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, h.opts.SyncTimeout)
	defer cancel()
	queue, _, err := h.find(ctx, id, kinds, asked)
	if err != nil {
		return "", err
	}
	reader, err := h.read(kinds, queue, id)
	if err != nil {
		return "", err
	}
	defer reader.Close()
	q := *asked
	now, err := settled(ctx, reader, q)
	if err != nil {
		return "", err
	}
	visible, ok, err := h.see(ctx, id, kinds, q, now.Kinds)
	if err != nil {
		return "", err
	}
	see := sight{visible.Shows()}
	if !ok || q.name != "" && see.object(now, q) == nil {
		return "", notThere()
	}
	task := budget.NewTask(ctx, h.opts.Processors, id.QuotaOwner())
	defer task.Rest()
	if !task.Step(viewCost * len(now.Places)) {
		return "", task.Err()
	}
	return see.view(now, q, visible.Tag()).Text, nil
}

const (
	// viewCost is what it costs to say of a place what it is, as bytes that are looked at.
	viewCost = 512
	// settlesWithin is for how long an answer waits for what is still being looked for.
	settlesWithin = time.Second
)

// settled is the newest snapshot once the queue is in it that was found, and it is known of which kinds the jobs are, and whose.
// What is not known in time is not waited for.
func settled(ctx context.Context, reader *pending.Reader, q queueRequest) (*pending.Snapshot, error) {
	unavailable := func(err error) error { return reply.Unavailable("queues are not known yet", time.Second, err) }
	if err := reader.Ready(ctx); err != nil {
		return nil, unavailable(err)
	}
	enough := time.NewTimer(settlesWithin)
	defer enough.Stop()
	wakes := stream.NewWakeChannel()
	for known := uint64(0); ; {
		now, err := reader.Snapshot(wakes, known)
		switch {
		case err != nil:
			return nil, unavailable(err)
		case !now.Asking && q.isIn(now, reader.Queue().Name):
			return now, nil
		}
		if known != now.Number {
			known = now.Number
			continue
		}
		select {
		case <-wakes.C:
		case <-enough.C:
			return now, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// listed is a list of queues.
type listed struct {
	Items []queues.Queue `json:"items"`
}

// queueWithJobs is one queue, and who waits in it.
type queueWithJobs struct {
	queues.Queue
	Jobs []any `json:"jobs"` // waiting and hidden
}

func notThere() error { return reply.NotFound("there is no such queue, or you may not list it") }

// isRefusal reports whether there is nothing that the caller may list.
func isRefusal(err error) bool {
	return err != nil && (reply.To(err).Code == http.StatusForbidden || errors.Is(err, cluster.ErrNoKind))
}

// find is what is read of the queue that is asked for, and what may be seen of it. It notes of which kind the queue
// is. A caller who may not see it is told that there is none.
func (h *Handler) find(ctx context.Context, id auth.Identity, kinds *cache.Kinds, q *queueRequest) (queue pending.Queue, visible *visibility.Visibility, err error) {
	if q.kind != volcanos {
		queue, visible, err = h.findAsked(ctx, id, kinds, *q)
		if err == nil || q.kind != "" || q.name == "" || q.namespace != "" || reply.To(err).Code != http.StatusNotFound {
			return queue, visible, err
		}
	}
	asked := *q
	asked.kind = volcanos
	if queue, visible, err = h.findAsked(ctx, id, kinds, asked); err == nil {
		*q = asked
	}
	return queue, visible, err
}

// findAsked is find of a queue whose kind is known.
func (h *Handler) findAsked(ctx context.Context, id auth.Identity, kinds *cache.Kinds, q queueRequest) (queue pending.Queue, visible *visibility.Visibility, err error) {
	visible, seen, err := h.see(ctx, id, kinds, q, nil)
	switch {
	case err != nil:
		return queue, nil, err
	case !seen:
		return queue, nil, notThere()
	}
	kind, _ := q.objects(&pending.Snapshot{})
	all, err := h.all(ctx, kinds, kind)
	if q.name == "" && err == nil {
		return queue, visible, nil
	}
	if err != nil {
		return queue, nil, err
	}
	o := q.of(all)
	switch {
	case o == nil:
		return queue, nil, notThere()
	case q.kind == volcanos:
		return pending.Queue{Name: q.name, Volcano: true}, visible, nil
	case q.namespace == "":
		return pending.Queue{Name: q.name}, visible, nil
	}
	return pending.Queue{Name: o.Path("spec.clusterQueue").Str}, visible, nil
}

// all are the objects of a kind of queues, whoever may see them; nil: there is no such kind.
func (h *Handler) all(ctx context.Context, kinds *cache.Kinds, named string) (*cache.Snapshot, error) {
	if h.opts.None {
		return nil, nil
	}
	kind, err := kinds.Cluster().Named(ctx, named)
	if errors.Is(err, cluster.ErrNoKind) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	using, release, err := kinds.Use(kind, "")
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, h.opts.SyncTimeout)
	defer cancel()
	if err := using.WaitReachable(ctx); err != nil {
		return nil, err
	}
	return using.Snapshot(), nil
}

// read reads a queue.
func (h *Handler) read(kinds *cache.Kinds, queue pending.Queue, id auth.Identity) (*pending.Reader, error) {
	reader, err := h.pending.Read(kinds, queue, id.QuotaOwner())
	if err != nil {
		return nil, reply.Unavailable("the gateway ends", time.Second, err)
	}
	return reader, nil
}

// objects are the objects of the kind that is asked for.
func (q queueRequest) objects(now *pending.Snapshot) (kind string, all *cache.Snapshot) {
	switch {
	case q.kind == volcanos:
		return volcanoKind, now.Volcano
	case q.namespace == "":
		return wholeKind, now.Whole
	}
	return localKind, now.Local
}

// of is the queue that is asked for; nil: it is not there.
func (q queueRequest) of(all *cache.Snapshot) *cluster.Object {
	if all == nil {
		return nil
	}
	return all.Get(q.namespace, q.name)
}

// isIn reports whether the queue that is asked for is in a snapshot, as a part of a ClusterQueue.
func (q queueRequest) isIn(now *pending.Snapshot, clusterQueue string) bool {
	_, all := q.objects(now)
	o := q.of(all)
	return q.name == "" || o != nil && (q.namespace == "" || o.Path("spec.clusterQueue").Str == clusterQueue)
}
