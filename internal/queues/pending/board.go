package pending

import (
	"context"
	"iter"
	"maps"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/queues"
	"github.com/kubecast/kubecast/internal/stream"
)

// name is a namespaced name.
type name struct{ namespace, name string }

func nameOf(o *cluster.Object) name { return name{o.GetNamespace(), o.GetName()} }

// board knows the queues of a cluster, and what waits in each LocalQueue by the objects. Its goroutine
// reads the objects' changes, and tells the lines whose they are.
type board struct {
	registry *Registry
	kinds    *cache.Kinds
	user     string // who came first
	life     context.Context
	stop     context.CancelFunc

	mu           sync.Mutex
	lines        map[Queue]*line // changed with the registry's lock, too
	hasList      bool            // queues' own objects were read
	known        bool            // all that follows was read
	local, whole *cache.Snapshot
	upstream     cache.Upstream         // how their watches were before what follows was read
	jobs         map[name]*Job          // of Workloads that wait
	queued       map[name]map[name]*Job // the same by LocalQueue
	admitted     map[name]*admitted     // Workloads that were given quota, and are not over
	volcano      volcano                // the same of Volcano's queues
	left         map[name]time.Time     // Workloads that waited until then, and do not wait any more; of the last moments
}

// admitted is a job that was let in.
type admitted struct {
	*Job
	clusterQueue string
	since        time.Time
}

func newBoard(r *Registry, kinds *cache.Kinds, user string) *board {
	b := &board{registry: r, kinds: kinds, user: user, lines: map[Queue]*line{}}
	b.life, b.stop = context.WithCancel(r.life)
	return b
}

func (b *board) add(l *line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines[l.queue] = l
}

// remove ends a line, and returns how many are left.
func (b *board) remove(l *line) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lines[l.queue] == l {
		delete(b.lines, l.queue)
	}
	l.stop()
	return len(b.lines)
}

func (b *board) run(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { keep(ctx, b.followVolcano, b.hasNoVolcano) })
	keep(ctx, b.follow, b.hasNone)
}

// hasNone takes that there are no queues of Kueue, or that the gateway may not read them.
func (b *board) hasNone() {
	b.mu.Lock()
	if b.known && b.local == nil {
		b.mu.Unlock()
		return
	}
	b.hasList, b.known, b.local, b.whole, b.jobs, b.queued, b.admitted = true, true, nil, nil, nil, nil, nil
	b.upstream = cache.Upstream{Synced: true, Live: true, Since: time.Now()}
	b.mu.Unlock()
	b.changedAll()
}

// lists takes queues' own objects before it is known who waits in them: the list needs no more.
func (b *board) lists(stores []*cache.Store) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hasList {
		return
	}
	b.hasList, b.local, b.whole, b.upstream = true, stores[0].Snapshot(), stores[1].Snapshot(), upstreamOf(stores)
	b.tellList()
}

// tellList tells the list of queues that it is another. The lock is held.
func (b *board) tellList() {
	if l := b.lines[Queue{}]; l != nil {
		l.changed(time.Now(), change{objects: true})
	}
}

// Resources are the kinds that are followed.
const (
	localQueues   = "localqueues"
	clusterQueues = "clusterqueues"
	workloads     = "workloads"
)

// open opens one of Kueue's kinds, and waits for it.
func (b *board) open(ctx context.Context, resource string) (*cache.Store, func(), error) {
	kind, err := b.kinds.Cluster().Named(ctx, resource+"."+queues.Group)
	if err != nil {
		return nil, nil, err
	}
	store, release, err := b.kinds.Use(kind, "")
	if err != nil {
		return nil, nil, err
	}
	if err := store.WaitSynced(ctx); err != nil {
		release()
		return nil, nil, err
	}
	return store, release, nil
}

// follow follows the objects until that is not possible any more, or, with nil, until Workloads may be read, too. Where they
// may not, queues have no jobs but those that Kueue says.
func (b *board) follow(ctx context.Context) error {
	if b.registry.opts.None {
		return cluster.ErrNoKind
	}
	f := &following{board: b, wakes: stream.NewWakeChannel()}
	var again <-chan time.Time
	var lacking []string
	for _, resource := range []string{localQueues, clusterQueues, workloads} {
		store, release, err := b.open(ctx, resource)
		switch {
		case err == nil:
			defer release()
			f.stores = append(f.stores, store)
		case resource == workloads && isNone(err):
			lacking, again = []string{workloads + "." + queues.Group}, time.After(lacksAgain)
		default:
			return err
		}
		if resource == clusterQueues {
			b.lists(f.stores)
		}
	}
	return f.until(ctx, f.build, f.read, lacking, again)
}

// payer is in whose turn all Workloads are looked through: a present reader.
func (b *board) payer() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.lines {
		return l.payer()
	}
	return b.user
}

// build reads all from the present state. It is false if the context has ended.
func (f *following) build(ctx context.Context) bool {
	task := budget.NewTask(ctx, f.registry.opts.Processors, f.payer())
	defer task.Rest()
	upstream, snapshots := upstreamOf(f.stores), make([]*cache.Snapshot, 3) // the last is nil if Workloads may not be read
	for i, store := range f.stores {
		snapshots[i] = store.Snapshot()
		f.cursors = append(f.cursors, store.Topic().From(snapshots[i].Head, stream.AllNamespaces()))
	}
	found := board{jobs: map[name]*Job{}, queued: map[name]map[name]*Job{}, admitted: map[name]*admitted{}}
	for o := range everything(snapshots[2]) {
		if !task.Step(o.Size()) {
			return false
		}
		found.put(o)
	}
	f.mu.Lock()
	f.hasList, f.known, f.local, f.whole, f.upstream = true, true, snapshots[0], snapshots[1], upstream
	f.jobs, f.queued, f.admitted, f.left = found.jobs, found.queued, found.admitted, map[name]time.Time{}
	f.mu.Unlock()
	f.changedAll()
	return true
}

// everything are all objects of a kind; none if the snapshot is nil.
func everything(snapshot *cache.Snapshot) iter.Seq[*cluster.Object] {
	if snapshot == nil {
		return func(func(*cluster.Object) bool) {}
	}
	return snapshot.List(stream.AllNamespaces(), cache.Selector{}, "", "")
}

// put notes a Workload in its present state, and returns in which LocalQueues it waited before and waits now.
func (b *board) put(o *cluster.Object) (lines []name) {
	lines = b.take(nameOf(o))
	if queue, since, ok := queues.Admitted(o); ok {
		b.admitted[nameOf(o)] = &admitted{newJob(o), queue, since}
		return lines
	}
	if !queues.Waits(o) {
		return lines
	}
	j := newJob(o)
	in := name{o.GetNamespace(), j.Queue}
	if b.jobs[nameOf(o)] = j; b.queued[in] == nil {
		b.queued[in] = map[name]*Job{}
	}
	b.queued[in][nameOf(o)] = j
	return append(lines, in)
}

// take takes a Workload out, and returns in which LocalQueue it waited.
func (b *board) take(of name) (lines []name) {
	delete(b.admitted, of)
	j := b.jobs[of]
	if j == nil {
		return nil
	}
	delete(b.jobs, of)
	in := name{of.namespace, j.Queue}
	if delete(b.queued[in], of); len(b.queued[in]) == 0 {
		delete(b.queued, in)
	}
	return []name{in}
}

// read takes in what has changed, and tells the lines. It is false if all has to be read anew.
func (f *following) read() bool {
	now, dirty := time.Now(), map[string]change{}
	upstream := upstreamOf(f.stores) // before the events are read: once the watches stand, what was missed is among them
	if !f.each(func(i int, event *cache.Event) bool {
		f.apply(i, event, now, dirty)
		return true
	}) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.local, f.whole = f.stores[0].Snapshot(), f.stores[1].Snapshot()
	if other := upstream.Live != f.upstream.Live || !upstream.Since.Equal(f.upstream.Since); other {
		f.upstream = upstream
		for q := range f.lines {
			if !q.Volcano {
				dirty[q.Name] = change{objects: true}
			}
		}
	}
	maps.DeleteFunc(f.left, func(_ name, at time.Time) bool { return now.Sub(at) > keptLeft })
	for queue, what := range dirty {
		if l := f.lines[Queue{Name: queue}]; l != nil {
			l.changed(now, what)
		}
	}
	return true
}

// keptLeft is for how long it is known that a Workload has left. By then Kueue knows, too.
const keptLeft = 10 * time.Second

// change is what has changed of a ClusterQueue.
type change struct {
	objects bool // queues' own objects
	left    bool // a job does not wait any more
}

// apply takes in one event of a store, and notes of which ClusterQueues it is, and whether queues' own objects are others.
func (f *following) apply(store int, event *cache.Event, now time.Time, dirty map[string]change) {
	o := event.Object
	note := func(queue string, what change) {
		before := dirty[queue]
		dirty[queue] = change{before.objects || what.objects, before.left || what.left}
	}
	switch store {
	case 0:
		note("", change{objects: true})
		note(o.Path("spec.clusterQueue").Str, change{objects: true})
		if before := event.Old; before != nil {
			note(before.Path("spec.clusterQueue").Str, change{objects: true})
		}
	case 1:
		note("", change{objects: true})
		note(o.GetName(), change{objects: true})
	default:
		var lines []name
		if event.Type == stream.Deleted {
			lines = f.take(nameOf(o))
		} else {
			lines = f.put(o)
		}
		waits := f.jobs[nameOf(o)] != nil
		if delete(f.left, nameOf(o)); len(lines) > 0 && !waits {
			f.left[nameOf(o)] = now
		}
		for _, line := range lines {
			if queue := f.clusterQueueOf(line); queue != "" {
				note(queue, change{left: !waits})
			}
		}
	}
}

// clusterQueueOf is the ClusterQueue of a LocalQueue; "": there is none. The lock is held.
func (b *board) clusterQueueOf(local name) string {
	if b.local == nil {
		return ""
	}
	if o := b.local.Get(local.namespace, local.name); o != nil {
		return o.Path("spec.clusterQueue").Str
	}
	return ""
}

// hasLeft reports whether a Workload is known not to wait any more. The lock is held.
func (b *board) hasLeft(workload name) bool {
	_, left := b.left[workload]
	return left || b.admitted[workload] != nil
}

// has reports whether the cluster has queues.
func (b *board) has() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.local != nil
}

// changedAll tells all lines that there may be something new.
func (b *board) changedAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.lines {
		l.changed(time.Now(), change{objects: true})
	}
}

// upstreamOf is how the watches of stores are: fresh only if all of them are.
func upstreamOf(stores []*cache.Store) cache.Upstream {
	all := cache.Upstream{Synced: true, Live: true}
	for _, s := range stores {
		if u := s.Upstream(); !u.Live && all.Live || u.Live == all.Live && u.Since.After(all.Since) {
			all = u
		}
	}
	return all
}
