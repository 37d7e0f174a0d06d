package historyapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/coding"
	"github.com/kubecast/kubecast/internal/http/ratelimit"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/seal"
	"github.com/kubecast/kubecast/internal/jobs/service"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/jobs/wire"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Options configure a Handler; all are required unless they say otherwise.
type Options struct {
	Jobs   *service.Service // nil: no history is kept
	Access *access.Access
	// SeeTheirOwn says whether owner=me shows callers their own jobs without any other permission.
	SeeTheirOwn  bool
	Turns        *ratelimit.Turns // of lists and gets
	Processors   *budget.Queue    // turns for long work
	SearchWithin time.Duration    // how long a page looks for a part of a name; 0: store.SearchWithin
	WriteTimeout time.Duration    // a client that takes no byte for so long is disconnected
	Codings      *coding.Codings  // in which pages are sent; nil: none
	// Places begins an answer in which is told where jobs stand that wait in queues. What it returns says that of some
	// jobs, by uid, as far as the caller may know, and may wait; nil: nobody says so.
	Places func(id auth.Identity, kinds *cache.Kinds, cluster string) func(ctx context.Context, jobList []*jobs.Job) map[string]*wire.Place
}

// Handler answers requests for the history.
type Handler struct{ opts Options }

// New returns a Handler.
func New(opts Options) *Handler { return &Handler{opts} }

// Prefix stands before the Kubernetes path of a kind whose history is asked for.
const Prefix = "/history"

// Target is what a path of the history names.
func Target(path string) (visibility.Target, bool) {
	rest, ok := strings.CutPrefix(path, Prefix)
	if !ok || !utf8.ValidString(rest) || strings.IndexByte(rest, 0) >= 0 { // databases refuse such texts, and no object has such a name
		return visibility.Target{}, false
	}
	return visibility.Parse(rest)
}

// awayFor is after how long clients may ask again while the history's database is away.
const awayFor = 5 * time.Second

// Answer answers a list of jobs, transitions or runs, or what jobs used, or how they ended.
func (h *Handler) Answer(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	if trace := auditrecord.Of(r.Context()); trace != nil {
		trace.Asked(reply.Negotiate(r.Header), r.URL.Query())
	}
	t, err := h.target(r.URL.Path)
	if err != nil {
		return err
	}
	query, err := request.Query(r)
	if err != nil {
		return err
	}
	now := h.now(t)
	q, err := parse(query, t, id.Username, now)
	if err != nil {
		return err
	}
	mediaType, err := q.accepted(r.Header)
	if err != nil {
		return err
	}
	release, err := h.opts.Turns.Take(r.Context(), id.QuotaOwner())
	if err != nil {
		return err
	}
	defer release()
	found, err := h.find(r.Context(), id, t, &q)
	if err != nil {
		return err
	}
	page := page{from: h.opts.Jobs.For(id.QuotaOwner()), task: budget.NewTask(r.Context(), h.opts.Processors, id.QuotaOwner()), seeks: q.filter.Search != ""}
	if page.seeks {
		q.filter.SearchUntil = time.Now().Add(cmp.Or(h.opts.SearchWithin, store.SearchWithin))
	}
	defer page.task.Rest()
	switch q.view {
	case viewTransitions:
		err = h.transitions(r.Context(), &page, found, t, q)
	case viewRuns:
		err = h.runs(r.Context(), &page, found, t, q)
	case viewUsage:
		err = h.usageOf(r.Context(), &page, found, t, q, jobs.At(now))
	case viewSpec, viewLog:
		err = h.kept(r.Context(), &page, id, found, t, q)
	case viewEnds:
		err = h.endsOf(r.Context(), &page, found, t, q)
	default:
		err = h.jobs(r.Context(), &page, id, found, t, q, jobs.At(now))
	}
	if errors.Is(err, store.ErrNewer) || errors.Is(err, store.ErrOlder) {
		return reply.Unavailable("the history's database has the schema of another release of the gateway, and this one cannot use it", awayFor, err)
	}
	if errors.Is(err, service.ErrAway) {
		return reply.Unavailable("the history's database is away; try again in a moment", awayFor, err)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", mediaType)
	in := h.opts.Codings.For(r.Header)
	if q.view == viewLog {
		in = nil // as logs are sent otherwise: what one writes into a log, and another, would tell by its size how alike these are
	}
	return page.send(w, r, in, id.QuotaOwner(), h.opts.WriteTimeout)
}

// now is the time of the cluster that a target is in, as its history's times are.
func (h *Handler) now(t visibility.Target) time.Time {
	if kinds, err := h.opts.Access.Cluster(t.Cluster); err == nil {
		return kinds.Cluster().Now()
	}
	return time.Now()
}

// grant decides what a caller may see. Own says that callers are shown their own jobs in all namespaces. For that they
// have to ask for their own.
func (h *Handler) grant(ctx context.Context, id auth.Identity, t visibility.Target, verb string, asksForOwn bool) (g access.Grant, kind cluster.Kind, own bool, err error) {
	g, kind, own, err = h.permit(ctx, id, t, verb, asksForOwn)
	auditrecord.Of(ctx).Decided(access.ReadVisible(visibility.VisibleTarget{Target: t, Visible: g.Visible}, verb), err)
	if err == nil {
		g.Visible, err = h.narrow(ctx, g.Kinds, id, t, kind, verb, g.Visible)
	}
	return g, kind, own, err
}

// permit is grant, but nothing of it is told to the audit log, and permissions in a namespace count
// for former ones of its name, too.
func (h *Handler) permit(ctx context.Context, id auth.Identity, t visibility.Target, verb string, asksForOwn bool) (g access.Grant, kind cluster.Kind, own bool, err error) {
	own = h.opts.SeeTheirOwn && asksForOwn && !id.Anonymous // all anonymous callers have the same name
	g, kind, err = h.opts.Access.Find(ctx, id, t, verb)
	if id.Cluster != "" && (g.Kinds == nil || id.Cluster != g.Kinds.Cluster().Name()) {
		own = false // of a cluster's service account, another cluster has a namesake
	}
	if err != nil && h.isKnown(ctx, id, g, t) {
		g, err = h.opts.Access.FindGone(ctx, id, t, verb)
	}
	if failed := reply.To(err); err != nil && own && failed.Code == http.StatusForbidden {
		g.Visible, err = visibility.Nothing(), nil
	}
	return g, kind, own, err
}

// find decides what the caller may see, and completes the request's filter with it.
func (h *Handler) find(ctx context.Context, id auth.Identity, t visibility.Target, q *historyRequest) (g access.Grant, err error) {
	verb := "list"
	if t.Name != "" {
		verb = "get"
	}
	g, _, own, err := h.grant(ctx, id, t, verb, q.me)
	if err != nil {
		return g, err
	}
	q.filter.Namespace, q.filter.Name = t.Namespace, t.Name
	if err := restrict(ctx, &q.filter, g.Kinds.Cluster(), g.Visible); err != nil {
		return g, err
	}
	if own {
		q.filter.Own = id.Username
	}
	return g, nil
}

// isKnown reports whether there is a history of a kind that the cluster does not have any more.
func (h *Handler) isKnown(ctx context.Context, id auth.Identity, g access.Grant, t visibility.Target) bool {
	if g.Kinds == nil {
		return false
	}
	if _, err := g.Kinds.Cluster().Preferred(ctx, t.Group, t.Resource); !errors.Is(err, cluster.ErrNoKind) {
		return false
	}
	known, err := h.opts.Jobs.For(id.QuotaOwner()).Knows(ctx, g.Kinds.Cluster(), t.Qualified())
	return err == nil && known
}

// jobs makes a page of jobs.
func (h *Handler) jobs(ctx context.Context, p *page, id auth.Identity, g access.Grant, t visibility.Target, q historyRequest, now jobs.Time) error {
	var creations *seal.Numbers // nil: none is told that needs them
	if p.seeks {
		var err error
		if creations, err = p.from.Numbers(ctx, g.Kinds.Cluster(), service.Creations(t.Qualified())); err != nil {
			return err
		}
	}
	after, err := q.after.job(creations)
	if err != nil {
		return err
	}
	linked := links{handler: h, page: p, caller: id, in: g, target: t, own: q.me, sees: map[string]*store.Filter{}}
	var kept store.Keeping
	var uses map[string]jobs.Use
	var pods []wire.Run
	var places map[string]*wire.Place
	var placesOf func(context.Context, []*jobs.Job) map[string]*wire.Place
	if h.opts.Places != nil {
		placesOf = h.opts.Places(id, g.Kinds, t.Cluster)
	}
	return fill(p, q.limit, func(most int) (jobList []*jobs.Job, err error) {
		p.task.Rest() // database and queues are waited for without a turn
		jobList, kept, err = p.from.JobsAndKept(ctx, g.Kinds.Cluster(), t.Qualified(), q.filter, after, most)
		var unfinished error
		if errors.Is(err, store.ErrUnfinished) {
			unfinished, err = err, nil
		}
		if err == nil {
			err = linked.read(ctx, jobList[:min(len(jobList), chunk)]) // a further one only says that there are more
		}
		if err == nil {
			uses, err = p.from.Uses(ctx, g.Kinds.Cluster(), t.Qualified(), jobList, now)
		}
		if err == nil && placesOf != nil {
			places = placesOf(ctx, jobList[:min(len(jobList), chunk)])
		}
		if err == nil && len(jobList) > 0 && len(q.filter.UIDs) == 1 {
			pods, err = h.podsOf(ctx, p, g, t, q, kept)
		}
		if err == nil {
			err = unfinished
		}
		return jobList, err
	}, func(j *jobs.Job) any {
		after = store.JobAfter{Created: j.Created, UID: j.UID}
		told := linked.told(wire.JobOf(j, g.Kinds.Cluster().Name(), t.Qualified(), now))
		told.Log = new(kept.Has(j.UID, store.KeptLog))
		told.Spec = new(kept.Has(j.UID, store.KeptSpec))
		if use, known := uses[j.UID]; known {
			told.Use(use)
		}
		told.Pods = pods
		told.Queue.Place = places[j.UID]
		return told
	}, func(at *store.Unfinished) string {
		if at != nil {
			return q.goOn(token{Looked: creations.Position(uint64(at.After.Created))})
		}
		return q.goOn(token{Created: int64(after.Created), UID: after.UID})
	})
}

// mostPods is how many of its pods are told with a job, besides those of which a log is kept.
const mostPods = 100

// podsOf are the newest pods of the one job that is asked for, and behind them those of which a log is kept.
func (h *Handler) podsOf(ctx context.Context, p *page, g access.Grant, t visibility.Target, q historyRequest, kept store.Keeping) ([]wire.Run, error) {
	numbers, err := p.from.Numbers(ctx, g.Kinds.Cluster(), service.Runs.Numbering(t.Qualified()))
	if err != nil {
		return nil, err
	}
	q.filter.Since, q.filter.Until = 0, 0 // of the job
	runs, err := p.from.Runs(ctx, g.Kinds.Cluster(), t.Qualified(), q.filter, store.RunAfter{}, mostPods)
	if err == nil && len(runs) == mostPods {
		older := slices.DeleteFunc(kept.Pods(q.filter.UIDs[0]), func(uid string) bool {
			return slices.ContainsFunc(runs, func(run *store.Run) bool { return run.UID == uid })
		})
		var more []*store.Run
		more, err = p.from.RunsOf(ctx, g.Kinds.Cluster(), t.Qualified(), q.filter.UIDs[0], older)
		runs = append(runs, more...)
	}
	pods := make([]wire.Run, len(runs))
	for i, run := range runs {
		pods[i] = wire.RunOf(run, g.Kinds.Cluster().Name(), numbers.Row(run.Seq))
		pods[i].Log = kept.Has(run.Job.UID, store.KeptOfPod(run.UID))
	}
	return pods, err
}

// runs makes a page of runs.
func (h *Handler) runs(ctx context.Context, p *page, g access.Grant, t visibility.Target, q historyRequest) error {
	numbers, err := p.from.Numbers(ctx, g.Kinds.Cluster(), service.Runs.Numbering(t.Qualified()))
	if err != nil {
		return err
	}
	after := store.RunAfter{Created: jobs.Time(q.after.Created), Pod: q.after.UID}
	return fill(p, q.limit, func(most int) ([]*store.Run, error) {
		return p.from.Runs(ctx, g.Kinds.Cluster(), t.Qualified(), q.filter, after, most)
	}, func(run *store.Run) any {
		after = store.RunAfter{Created: run.Created, Pod: run.UID}
		return wire.RunOf(run, g.Kinds.Cluster().Name(), numbers.Row(run.Seq))
	}, func(*store.Unfinished) string { return q.goOn(token{Created: int64(after.Created), UID: after.Pod}) })
}

// transitions makes a page of transitions.
func (h *Handler) transitions(ctx context.Context, p *page, g access.Grant, t visibility.Target, q historyRequest) error {
	numbers, err := p.from.Numbers(ctx, g.Kinds.Cluster(), t.Qualified())
	if err != nil {
		return err
	}
	at := place{numbers: numbers, visible: g.Visible}
	before, err := at.before(q.after)
	if err != nil {
		return err
	}
	return fill(p, q.limit, func(most int) ([]*jobs.Transition, error) {
		return p.from.Transitions(ctx, g.Kinds.Cluster(), t.Qualified(), q.filter, before, most)
	}, func(tr *jobs.Transition) any {
		before = tr.Seq
		at.pass(before)
		return at.number(wire.TransitionOf(tr, g.Kinds.Cluster().Name(), t.Qualified()), tr.Seq)
	}, func(looked *store.Unfinished) string {
		if looked != nil {
			return q.goOn(at.looked(looked.Before))
		}
		return q.goOn(at.token())
	})
}
