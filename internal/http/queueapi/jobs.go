package queueapi

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history/store"
	"github.com/kubecast/kubecast/internal/history/wire"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/queues"
)

// waiting is a job that waits.
type waiting struct {
	// Position and ClusterPosition are its places in its LocalQueue and in its ClusterQueue, from 1;
	// nil: nobody says so.
	Position        *int              `json:"position"`
	ClusterPosition *int              `json:"clusterPosition"`
	Namespace       string            `json:"namespace"`
	Queue           string            `json:"queue"`    // its LocalQueue
	Resource        string            `json:"resource"` // its kind, as jobs.batch
	Name            string            `json:"name"`
	UID             string            `json:"uid"`
	Owner           string            `json:"owner"` // whose it is, by the history; "": that is not known
	Since           time.Time         `json:"since"`
	Requests        map[string]string `json:"requests"` // of all its pods together
	Starts          *wire.Starts      `json:"starts"`   // nil: there is too little to say
}

// hidden is a job that waits and that the caller may not see.
type hidden struct {
	Position *int `json:"position"` // in the queue that was asked for
	Hidden   bool `json:"hidden"`
}

// line is who waits where: in a ClusterQueue, or in one LocalQueue of it.
type line struct{ clusterQueue, namespace, name string }

func (l line) isLocal() bool { return l.name != "" }

// place is a Workload that waits.
type place struct {
	namespace, name string
	workload        *cluster.Object // nil: the cache has not seen it yet
	local, whole    *int
}

// jobs are those who wait in a line, at most so many of them.
func (l *look) jobs(ctx context.Context, in line, limit int) ([]any, error) {
	of, err := l.own(ctx, workloads)
	if err != nil || of == nil {
		return []any{}, err
	}
	places, err := l.places(ctx, in, of)
	if err != nil {
		return nil, err
	}
	told := make([]any, 0, min(limit, len(places)))
	shown := []*waiting{}
	sees := jobsSeen{look: l, namespace: in.namespace, kinds: map[queues.Job]*seenKind{}}
	for _, p := range places[:min(limit, len(places))] {
		if p.workload != nil && !l.task.Step(p.workload.Size()) {
			return nil, l.task.Err()
		}
		position := p.whole
		if in.isLocal() {
			position = p.local
		}
		job, kind, err := sees.job(ctx, p)
		if err != nil {
			return nil, err
		}
		if kind == nil {
			told = append(told, hidden{position, true})
			continue
		}
		one := &waiting{
			Position: p.local, ClusterPosition: p.whole, Namespace: p.namespace, Queue: queues.Queued(p.workload), Resource: kind.String(),
			Name: job.Name, UID: job.UID, Since: queues.Since(p.workload), Requests: queues.Requests(p.workload),
		}
		told, shown = append(told, one), append(shown, one)
	}
	l.owners(ctx, shown)
	l.expect(ctx, in, shown)
	return told, nil
}

// expect says when jobs will start.
func (l *look) expect(ctx context.Context, in line, jobs []*waiting) {
	if l.opts.Archive == nil || len(jobs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, placesWithin)
	defer cancel()
	reader, err := l.pending.Read(l.kinds, in.clusterQueue, l.id.QuotaOwner())
	if err != nil {
		return
	}
	defer reader.Close()
	if reader.Ready(ctx) != nil {
		return
	}
	known, err := reader.Snapshot(nil, 0)
	if err != nil || known == nil {
		return
	}
	for _, j := range jobs {
		if p := known.Find(j.Namespace, j.Name, j.UID); p != nil {
			j.Starts = startsOf(p)
		}
	}
}

// places are who wait, in Kueue's order. Where nobody says what that is, they have no positions.
func (l *look) places(ctx context.Context, in line, of *part) (places []place, err error) {
	order, err := l.kinds.Cluster().PendingWorkloads(ctx, in.clusterQueue)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return l.unordered(ctx, in, of)
	}
	for i, p := range order.Pending {
		if !in.isLocal() || p.Namespace == in.namespace && p.LocalQueue == in.name {
			places = append(places, place{namespace: p.Namespace, name: p.Name, workload: of.get(p.Namespace, p.Name), local: new(p.Position + 1), whole: new(i + 1)})
		}
	}
	return places, nil
}

// unordered are the Workloads that wait by what they say themselves.
func (l *look) unordered(ctx context.Context, in line, of *part) (places []place, err error) {
	type name struct{ namespace, name string }
	within := map[name]bool{{in.namespace, in.name}: true}
	if !in.isLocal() {
		local, err := l.own(ctx, localQueues)
		if err != nil {
			return nil, err
		}
		for o := range local.all() {
			within[name{o.GetNamespace(), o.GetName()}] = o.Path("spec.clusterQueue").Str == in.clusterQueue
		}
	}
	type ranked struct {
		place
		rank queues.Rank
	}
	var found []ranked
	for o := range of.all() {
		if !l.task.Step(o.Size()) {
			return nil, l.task.Err()
		}
		if within[name{o.GetNamespace(), queues.Queued(o)}] && queues.Waits(o) {
			found = append(found, ranked{place{namespace: o.GetNamespace(), name: o.GetName(), workload: o}, queues.RankOf(o)})
		}
	}
	slices.SortFunc(found, func(a, b ranked) int { return a.rank.Compare(b.rank) })
	for _, r := range found {
		places = append(places, r.place)
	}
	return places, nil
}

// jobsSeen says which jobs the caller may see. What of a kind may be seen is asked once.
type jobsSeen struct {
	look      *look
	namespace string                   // in which all of them are; "": anywhere
	kinds     map[queues.Job]*seenKind // by group and kind alone
}

type seenKind struct {
	kind    cluster.Kind
	visible []*access.Visibility // of list and of get
}

const (
	// mostKinds bounds of how many kinds it is asked what may be seen, since a Workload may name any. Jobs of more are hidden,
	// but for those of kinds that Kueue knows.
	mostKinds = 16
	// longestName bounds names and uids: longer ones are no object's.
	longestName = 253
)

// job is the job of a Workload; a nil kind: the caller may not see it.
func (s *jobsSeen) job(ctx context.Context, p place) (queues.Job, *cluster.Kind, error) {
	if p.workload == nil {
		return queues.Job{}, nil, nil
	}
	job := queues.JobOf(p.workload)
	if !isName(job.Name) || !isName(job.UID) {
		return job, nil, nil
	}
	of := s.of(ctx, queues.Job{Group: job.Group, Kind: job.Kind})
	for _, visible := range of.visible {
		if visible.Shows().Sees(p.namespace, job.Name) {
			return job, &of.kind, ctx.Err()
		}
	}
	return job, nil, ctx.Err()
}

func isName(text string) bool {
	return len(text) <= longestName && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// of asks what the caller may see of a kind. Whatever cannot be decided is not seen: a Workload of
// somebody else, who may name any kind, is no reason to refuse the answer.
func (s *jobsSeen) of(ctx context.Context, name queues.Job) *seenKind {
	if known := s.kinds[name]; known != nil {
		return known
	}
	known := &seenKind{}
	if len(s.kinds) >= mostKinds && !queues.IsJob(name.Group, name.Kind) {
		return known
	}
	s.kinds[name] = known
	kinds := s.look.kinds
	kind, err := kinds.Cluster().KindOf(ctx, name.Group, name.Kind)
	if err != nil {
		return known
	}
	known.kind = kind
	t := access.Target{Cluster: s.look.cluster, Group: kind.Group, Version: kind.Version, Resource: kind.Resource}
	if kind.Namespaced {
		t.Namespace = s.namespace
	}
	for _, verb := range []string{"list", "get"} {
		visible, ok, err := s.look.opts.Access.See(ctx, kinds, s.look.id, t, kind, verb)
		if err == nil && ok {
			known.visible = append(known.visible, visible)
			auditrecord.Of(ctx).Decided(access.Part{Target: t, Visible: visible}.Read(verb), nil)
		}
	}
	return known
}

// ownersAtOnce bounds how many jobs the history is asked for at once.
const ownersAtOnce = 500

// owners says whose the jobs are. While the history is away, that is not known.
func (l *look) owners(ctx context.Context, jobs []*waiting) {
	if l.opts.Archive == nil {
		return
	}
	byKind := map[string][]*waiting{}
	for _, j := range jobs {
		byKind[j.Resource] = append(byKind[j.Resource], j)
	}
	from := l.opts.Archive.For(l.id.QuotaOwner())
	for kind, all := range byKind {
		for some := range slices.Chunk(all, ownersAtOnce) {
			byUID := map[string][]*waiting{}
			var filter store.Filter
			for _, j := range some {
				if byUID[j.UID] == nil {
					filter.UIDs = append(filter.UIDs, j.UID)
				}
				byUID[j.UID] = append(byUID[j.UID], j)
			}
			found, err := from.Jobs(ctx, l.kinds.Cluster(), kind, filter, store.JobAfter{}, len(some))
			if err != nil {
				return
			}
			for _, j := range found {
				for _, one := range byUID[j.UID] { // a Workload may name any uid
					if j.Namespace == one.Namespace && j.Name == one.Name && j.Deleted == 0 {
						one.Owner = j.Owner
					}
				}
			}
		}
	}
}
