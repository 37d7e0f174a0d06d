package pending

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/queues"
	"github.com/kubecast/kubecast/internal/stream"
)

// Volcano says nowhere in which order PodGroups wait. It follows from the objects, by the rules of the plugins that Volcano
// has on if nobody configures it: the priority of the PodGroup's class, then when it was made. Where a class is not known, no
// place is.

// volcano is what is known of a cluster's queues of Volcano. It is guarded by its board's lock.
type volcano struct {
	hasList  bool // Queues were read, or could not be
	known    bool // all that follows was, too
	queues   *cache.Snapshot
	classes  *cache.Snapshot // PriorityClasses; nil: they may not be read
	upstream cache.Upstream
	jobs     map[name]*Job            // of PodGroups that wait
	queued   map[string]map[name]*Job // the same by Queue
}

const (
	podGroups       = "podgroups." + queues.VolcanoGroup
	volcanoQueues   = "queues." + queues.VolcanoGroup
	priorityClasses = "priorityclasses.scheduling.k8s.io"
)

// hasNoVolcano takes that there are no Queues, or that the gateway may not read them. Where it is not certain, what was known is
// told further: a stream whose queue is gone ends.
func (b *board) hasNoVolcano() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.volcano.known && b.volcano.queues == nil {
		return
	}
	b.volcano = volcano{hasList: true, known: true, upstream: cache.Upstream{Synced: true, Live: true, Since: time.Now()}}
	b.tellVolcano(nil, true)
}

// tellVolcano tells the lines of Volcano's queues that something has changed, by Queue; all: of all of them. What is under "" is
// of Queues' objects. The lock is held.
func (b *board) tellVolcano(dirty map[string]change, all bool) {
	now := time.Now()
	for q, l := range b.lines {
		what, is := dirty[q.Name]
		if q.Volcano && (is || all) || q == (Queue{}) && (all || what.objects) {
			what.objects = what.objects || all
			l.changed(now, what)
		}
	}
}

// listed opens a kind that the gateway may list, and waits for it. While the cluster is away, what is known of it will do.
func (b *board) listed(ctx context.Context, named string) (*cache.Store, func(), error) {
	kind, err := b.mayList(ctx, named)
	if err != nil && (kind.Resource == "" || b.kinds.Cluster().Away() == nil) {
		return nil, nil, err
	}
	store, release, err := b.kinds.Use(kind, "")
	if err != nil {
		return nil, nil, err
	}
	if err := store.WaitReachable(ctx); err != nil {
		release()
		return nil, nil, err
	}
	return store, release, nil
}

// mayList finds a kind, and whether the gateway may list it.
func (b *board) mayList(ctx context.Context, named string) (cluster.Kind, error) {
	kind, err := b.kinds.Cluster().Named(ctx, named)
	if err != nil {
		return cluster.Kind{}, err
	}
	return kind, b.kinds.Cluster().Lists(ctx, kind)
}

// lacksAgain is after how long it is tried again to read Workloads, PodGroups or PriorityClasses that the gateway may not read.
const lacksAgain = time.Minute

// volcanoStores opens Queues, and, as far as the gateway may read them, PodGroups and PriorityClasses. The others are lacking:
// again is when to try these again. Release is never nil.
func (f *following) volcanoStores(ctx context.Context) (lacking []string, again <-chan time.Time, release func(), err error) {
	var releases []func()
	release = func() {
		for _, r := range releases {
			r()
		}
	}
	for _, named := range []string{volcanoQueues, podGroups, priorityClasses} {
		within, cancel := ctx, context.CancelFunc(func() {})
		if named == priorityClasses { // places can do without
			within, cancel = context.WithTimeout(ctx, lookAgain)
		}
		store, done, err := f.listed(within, named)
		cancel()
		switch {
		case err == nil:
			f.stores, f.named, releases = append(f.stores, store), append(f.named, named), append(releases, done)
		case named == volcanoQueues, named == podGroups && !isNone(err), ctx.Err() != nil:
			return nil, nil, release, err
		default:
			lacking = append(lacking, named)
			if again = time.After(lacksAgain); !isNone(err) {
				again = time.After(lookAgain)
			}
		}
		if named == volcanoQueues {
			f.listsVolcano(store)
		}
	}
	return lacking, again, release, nil
}

// listsVolcano takes Queues before it is known who waits in them.
func (b *board) listsVolcano(store *cache.Store) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.volcano.hasList {
		return
	}
	b.volcano = volcano{hasList: true, queues: store.Snapshot(), upstream: store.Upstream()}
	b.tellList()
}

// followVolcano follows Queues, PodGroups and PriorityClasses until that is not possible any more, or, with nil, until more of
// them may be read.
func (b *board) followVolcano(ctx context.Context) error {
	if b.registry.opts.None {
		return cluster.ErrNoKind
	}
	f := &following{board: b, wakes: stream.NewWakeChannel()}
	lacking, again, release, err := f.volcanoStores(ctx)
	defer release()
	if err != nil {
		return err
	}
	return f.until(ctx, f.buildVolcano, f.readVolcano, lacking, again)
}

// buildVolcano reads all from the present state. It is false if the context has ended.
func (f *following) buildVolcano(ctx context.Context) bool {
	task := budget.NewTask(ctx, f.registry.opts.Processors, f.payer())
	defer task.Rest()
	found := volcano{hasList: true, known: true, upstream: upstreamOf(f.stores), jobs: map[name]*Job{}, queued: map[string]map[name]*Job{}}
	snapshots := map[string]*cache.Snapshot{}
	for i, store := range f.stores {
		s := store.Snapshot()
		f.cursors, snapshots[f.named[i]] = append(f.cursors, store.Topic().From(s.Head, stream.AllNamespaces())), s
	}
	found.queues, found.classes = snapshots[volcanoQueues], snapshots[priorityClasses]
	usual := found.usualPriority()
	for o := range everything(snapshots[podGroups]) {
		if !task.Step(o.Size()) {
			return false
		}
		if queues.PodGroupWaits(o) {
			found.put(newPodGroup(o), usual)
		}
	}
	f.mu.Lock()
	f.volcano = found
	f.tellVolcano(nil, true)
	f.mu.Unlock()
	return true
}

// readVolcano takes in what has changed, and tells the lines. It is false if all has to be read anew.
func (f *following) readVolcano() bool {
	dirty := map[string]change{}
	upstream := upstreamOf(f.stores) // before the events are read: once the watches stand, what was missed is among them
	if !f.each(func(i int, event *cache.Event) bool {
		if f.named[i] == priorityClasses { // another class may move all
			return false
		}
		f.applyVolcano(f.named[i], event, dirty)
		return true
	}) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.volcano.queues = f.stores[0].Snapshot()
	other := upstream.Live != f.volcano.upstream.Live || !upstream.Since.Equal(f.volcano.upstream.Since)
	f.volcano.upstream = upstream
	f.tellVolcano(dirty, other)
	return true
}

// applyVolcano takes in one event of Queues or PodGroups, and notes of which Queues it is. The lock is held.
func (f *following) applyVolcano(named string, event *cache.Event, dirty map[string]change) {
	o := event.Object
	note := func(queue string, objects bool) { dirty[queue] = change{objects: dirty[queue].objects || objects} }
	if named == volcanoQueues {
		note("", true)
		note(o.GetName(), true)
		return
	}
	v := &f.volcano
	if before := v.jobs[nameOf(o)]; before != nil {
		delete(v.jobs, nameOf(o))
		if delete(v.queued[before.Queue], nameOf(o)); len(v.queued[before.Queue]) == 0 {
			delete(v.queued, before.Queue)
		}
		note(before.Queue, false)
	}
	if event.Type != stream.Deleted && queues.PodGroupWaits(o) {
		j := newPodGroup(o)
		v.put(j, v.usualPriority())
		note(j.Queue, false)
	}
}

func newPodGroup(o *cluster.Object) *Job {
	return &Job{
		Job: queues.PodGroupJob(o), Workload: o, Queue: queues.VolcanoQueueOf(o), Since: queues.PodGroupSince(o), class: o.Path("spec.priorityClassName").Str,
		Requests: sync.OnceValue(func() map[string]string { return queues.PodGroupRequests(o) }),
	}
}

// put notes a PodGroup that waits. Usual is the priority of those that name no class that is there.
func (v *volcano) put(j *Job, usual int64) {
	priority := usual
	if v.classes != nil && j.class != "" {
		if class := v.classes.Get("", j.class); class != nil {
			priority = class.Path("value").Int()
		}
	}
	j.rank = queues.PodGroupRank(j.Workload, priority)
	of := nameOf(j.Workload)
	if v.jobs[of] = j; v.queued[j.Queue] == nil {
		v.queued[j.Queue] = map[name]*Job{}
	}
	v.queued[j.Queue][of] = j
}

// usualPriority is the priority of the PriorityClass that is everybody's who names none.
func (v *volcano) usualPriority() (priority int64) {
	if v.classes == nil {
		return 0
	}
	for class := range everything(v.classes) {
		if class.Path("globalDefault").Bool() {
			priority = class.Path("value").Int()
		}
	}
	return priority
}

// mostPlaces bounds how many places of a Queue are told.
const mostPlaces = 20_000

// waiting are the jobs that wait in a Queue, in no order, and whether it is known in which Volcano takes them.
func (v *volcano) waiting(queue string) (jobs []*Job, certain bool) {
	jobs, certain = make([]*Job, 0, len(v.queued[queue])), true
	for _, j := range v.queued[queue] {
		jobs, certain = append(jobs, j), certain && (v.classes != nil || j.class == "")
	}
	return jobs, certain
}

// placesOf are the first places of jobs of a Queue, in Volcano's order; without positions if that is not certain.
func placesOf(jobs []*Job, certain bool) []Place {
	slices.SortFunc(jobs, func(a, b *Job) int { return a.rank.Compare(b.rank) })
	jobs = jobs[:min(len(jobs), mostPlaces)]
	places := make([]Place, len(jobs))
	for i, j := range jobs {
		places[i] = Place{Namespace: j.Workload.GetNamespace(), Name: j.Workload.GetName(), Queue: j.Queue, Job: j}
		if certain {
			places[i].Local, places[i].Whole = i+1, i+1
		}
	}
	return places
}
