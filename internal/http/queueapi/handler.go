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
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history/archive"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/ratelimit"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/queues"
	"github.com/kubecast/kubecast/internal/queues/pending"
)

// Options configure a Handler; all are required unless they say otherwise.
type Options struct {
	Access  *access.Access
	Archive *archive.Archive // says whose jobs are; nil: nobody does
	Turns   *ratelimit.Turns // of lists and gets
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
	if opts.Archive != nil {
		follow.Owners, follow.Past, follow.Kinds = h.owned, h.pastOf, opts.Archive.Kinds()
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
	workloads     = "workloads"

	// usualJobs and mostJobs are how many waiting jobs are told of a queue.
	usualJobs, mostJobs = 100, 1000
)

// question is what an address asks for: all queues, or one. One without a namespace is of the whole cluster.
type question struct {
	cluster, namespace, name string
	limit                    int
	conflate                 time.Duration // of a stream: it is told at most once in it
}

func parse(path string, query url.Values) (q question, err error) {
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
		limit, err := strconv.Atoi(values[0])
		if name != "limit" || q.name == "" {
			return q, reply.BadRequest("a list of queues takes no parameter, and one queue only limit")
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
	look := look{Handler: h, id: id, cluster: q.cluster, kinds: kinds, task: budget.NewTask(r.Context(), h.opts.Processors, id.QuotaOwner())}
	defer look.release()
	if q.name == "" {
		items, err := look.list(r.Context())
		if err != nil {
			return err
		}
		return reply.JSON(w, listed{items})
	}
	found, err := look.one(r.Context(), q)
	if err != nil {
		return err
	}
	return reply.JSON(w, found)
}

// listed is a list of queues.
type listed struct {
	Items []queues.Queue `json:"items"`
}

// look is how one caller sees the queues of a cluster.
type look struct {
	*Handler
	id      auth.Identity
	cluster string // as it is named in the address
	kinds   *cache.Kinds
	task    *budget.Task
	held    []func()
}

func (l *look) release() {
	l.task.Rest()
	for _, release := range l.held {
		release()
	}
}

// part is what may be seen of a kind, at one moment. A nil part has nothing.
type part struct {
	snapshot *cache.Snapshot
	visible  *access.Visibility
}

// all are its objects, in the order of Kubernetes' lists.
func (p *part) all() iter.Seq[*cluster.Object] {
	if p == nil {
		return func(func(*cluster.Object) bool) {}
	}
	return access.Part{Visible: p.visible}.List(p.snapshot, cache.Selector{}, "", "")
}

// get is one of its objects; nil: there is none, or it may not be seen.
func (p *part) get(namespace, name string) *cluster.Object {
	if p == nil {
		return nil
	}
	o := p.snapshot.Get(namespace, name)
	if o == nil || !p.visible.Sees(o) {
		return nil
	}
	return o
}

// beside opens what an answer has more of for whoever may list it, too: that somebody may not is no
// refusal, and nothing for the audit log.
func (l *look) beside(ctx context.Context, resource, namespace string) (*part, error) {
	t, found, err := l.target(ctx, resource, namespace)
	if err != nil || !found {
		return nil, err
	}
	_, _, err = l.opts.Access.Find(ctx, l.id, t, "list")
	if isRefusal(err) {
		return nil, nil
	}
	return l.open(ctx, resource, namespace)
}

// isRefusal reports whether there is nothing that the caller may list.
func isRefusal(err error) bool {
	return err != nil && (reply.To(err).Code == http.StatusForbidden || errors.Is(err, cluster.ErrNoKind))
}

// kind finds one of Kueue's kinds; found is false if the cluster has no such kind.
func (l *look) kind(ctx context.Context, resource string) (kind cluster.Kind, found bool, err error) {
	if l.opts.None {
		return kind, false, nil
	}
	kind, err = l.kinds.Cluster().Named(ctx, resource+"."+queues.Group)
	if errors.Is(err, cluster.ErrNoKind) {
		return kind, false, nil
	}
	return kind, err == nil, err
}

// target names the objects of a kind of queues; found is false if the cluster has no such kind.
func (l *look) target(ctx context.Context, resource, namespace string) (t access.Target, found bool, err error) {
	kind, found, err := l.kind(ctx, resource)
	return access.Target{Cluster: l.cluster, Group: queues.Group, Version: kind.Version, Resource: resource, Namespace: namespace}, found, err
}

// open opens a kind of queues as far as the caller may list them; nil: there is no such kind, or the caller may list none.
func (l *look) open(ctx context.Context, resource, namespace string) (*part, error) {
	t, found, err := l.target(ctx, resource, namespace)
	if err != nil || !found {
		return nil, err
	}
	g, err := l.opts.Access.OpenSynced(ctx, l.id, t, "list")
	switch {
	case err == nil:
		l.held = append(l.held, g.Release)
		return &part{g.Store.Snapshot(), g.Visible}, nil
	case isRefusal(err):
		return nil, nil
	}
	return nil, err
}

// own opens a kind for the gateway itself; nil: there is no such kind.
func (l *look) own(ctx context.Context, resource string) (*part, error) {
	kind, found, err := l.kind(ctx, resource)
	if err != nil || !found {
		return nil, err
	}
	using, release, err := l.kinds.Use(kind, "")
	if err != nil {
		return nil, err
	}
	l.held = append(l.held, release)
	ctx, cancel := context.WithTimeout(ctx, l.opts.SyncTimeout)
	defer cancel()
	if err := using.WaitReachable(ctx); err != nil {
		return nil, err
	}
	return &part{snapshot: using.Snapshot()}, nil
}

// list are the queues that the caller may list: those of namespaces, and then those of the cluster.
func (l *look) list(ctx context.Context) ([]queues.Queue, error) {
	found := []queues.Queue{}
	local, err := l.open(ctx, localQueues, "")
	if err != nil {
		return nil, err
	}
	whole, err := l.beside(ctx, clusterQueues, "")
	if err != nil {
		return nil, err
	}
	for o := range local.all() {
		found = append(found, queues.LocalQueue(o, whole.get("", o.Path("spec.clusterQueue").Str)))
	}
	for o := range whole.all() {
		found = append(found, queues.ClusterQueue(o))
	}
	return found, nil
}

// queueWithJobs is one queue, and who waits in it.
type queueWithJobs struct {
	queues.Queue
	Jobs []any `json:"jobs"` // waiting and hidden
}

// one is a queue that the caller may list. Whoever may not is told that there is none.
func (l *look) one(ctx context.Context, q question) (*queueWithJobs, error) {
	open := l.beside
	if q.namespace == "" {
		open = l.open
	}
	whole, err := open(ctx, clusterQueues, "")
	if err != nil {
		return nil, err
	}
	var found queueWithJobs
	in := line{clusterQueue: q.name}
	if q.namespace == "" {
		o := whole.get("", q.name)
		if o == nil {
			return nil, reply.NotFound("there is no such queue, or you may not list it")
		}
		found.Queue = queues.ClusterQueue(o)
	} else {
		local, err := l.open(ctx, localQueues, q.namespace)
		if err != nil {
			return nil, err
		}
		o := local.get(q.namespace, q.name)
		if o == nil {
			return nil, reply.NotFound("there is no such queue, or you may not list it")
		}
		in = line{clusterQueue: o.Path("spec.clusterQueue").Str, namespace: q.namespace, name: q.name}
		found.Queue = queues.LocalQueue(o, whole.get("", in.clusterQueue))
	}
	found.Jobs, err = l.jobs(ctx, in, q.limit)
	return &found, err
}
