package reasons

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/ownerref"
	"github.com/kubecast/kubecast/internal/stream"
)

// Options configure a Watch; all are required.
type Options struct {
	Kinds  *cache.Kinds
	Jobs   []string                          // the kinds of jobs, as resource.group
	Serves func(group, resource string) bool // which kinds the gateway serves
	Log    *slog.Logger
}

// Watch knows why the jobs of one cluster wait. Its methods may be called concurrently.
type Watch struct {
	opts    Options
	sources []source
	wanted  chan struct{} // closed once somebody listens
	want    func()

	mu        sync.Mutex
	objects   *ownerref.Graph[object] // those that say something, or belong to another object
	counts    bool                    // all pods are counted
	unread    map[string]bool         // kinds that have not been read yet
	listeners map[*Listener]struct{}
	upwards   map[kindOf]upward                  // the kinds that are read
	events    map[ownerref.ID][]event            // what autoscalers say of pods, the newest first
	consumers map[named]map[ownerref.ID]struct{} // by ProvisioningRequest, the pods that name it and find no node
	settled   chan struct{}                      // closed once unread was empty

	eventsAreRead chan struct{} // closed once Events were read, or are not to be had
	eventsRead    func()
}

// object is what is known of one object.
type object struct {
	of   string     // the source's kind
	says *statement // nil: it only belongs to another one
	own  *statement // what a pod says itself that finds no node, whatever is said of it beside that; nil of all others
}

// lessSaid orders what objects say: what weighs more counts, and of equal weight what is newer.
func lessSaid(a, b object) bool {
	return a.says.weight < b.says.weight || a.says.weight == b.says.weight && a.says.At < b.says.At
}

// New returns a Watch that reads nothing before somebody listens.
func New(opts Options) *Watch {
	w := &Watch{
		opts: opts, wanted: make(chan struct{}), objects: ownerref.NewGraph(lessSaid),
		unread: map[string]bool{}, listeners: map[*Listener]struct{}{}, upwards: map[kindOf]upward{},
		settled: make(chan struct{}), events: map[ownerref.ID][]event{}, consumers: map[named]map[ownerref.ID]struct{}{},
	}
	w.want = sync.OnceFunc(func() { close(w.wanted) })
	w.eventsAreRead = make(chan struct{})
	w.eventsRead = sync.OnceFunc(func() { close(w.eventsAreRead) })
	for _, s := range sourcesFor(opts.Jobs) {
		if resource, group, _ := strings.Cut(s.kind, "."); opts.Serves(group, resource) {
			w.sources = append(w.sources, s)
			w.unread[s.kind] = true
		}
	}
	return w
}

// Run reads until the context ends.
func (w *Watch) Run(ctx context.Context) error {
	select {
	case <-w.wanted:
	case <-ctx.Done():
		return nil
	}
	var reading sync.WaitGroup
	for _, s := range w.sources {
		reading.Go(func() { w.keep(ctx, s) })
	}
	reading.Go(func() { w.keepEvents(ctx) })
	reading.Go(func() { w.forgetOldEvents(ctx) })
	reading.Wait()
	return nil
}

// mostWait is how long to wait before looking again for a kind that was not there, could not be listed, or did not
// answer.
const mostWait = time.Minute

// keep reads a kind whenever the cluster has it and lets the gateway list it. While the cluster is away, what its
// objects said last counts.
func (w *Watch) keep(ctx context.Context, s source) {
	w.opts.Kinds.Retry(ctx, mostWait, func(ctx context.Context) error { return w.keepOnce(ctx, s) }, func(err error) {
		if isLacking(err) {
			w.retain(s, nil)
		}
		w.opts.Log.Debug("a kind does not say why jobs wait", "cluster", w.opts.Kinds.Cluster().Name(), "kind", s.kind, "error", err)
	})
}

// keepOnce reads a kind once, and returns why that has ended. A kind that may not be listed is not watched.
func (w *Watch) keepOnce(ctx context.Context, s source) error {
	kind, err := w.opts.Kinds.Cluster().Named(ctx, s.kind)
	if err == nil {
		err = w.opts.Kinds.Cluster().Lists(ctx, kind)
	}
	if err != nil {
		return err
	}
	return w.opts.Kinds.FollowOnce(ctx, s.kind, func(ctx context.Context, using *cache.Store) error { return w.read(ctx, s, using) })
}

// isLacking reports whether a cluster does not have a kind, or does not let it be listed. An error of a list says so,
// too.
func isLacking(err error) bool {
	return cache.IsLacking(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// read reads a kind until its store or the context ends.
func (w *Watch) read(ctx context.Context, s source, using *cache.Store) error {
	if err := using.WaitSynced(ctx); err != nil {
		return err
	}
	w.reads(s, using.Kind(), using)
	defer func() {
		if ctx.Err() == nil { // else others may still ask, who end with this one
			w.reads(s, using.Kind(), nil)
		}
	}()
	if s.lookedUp {
		w.retain(s, nil)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-using.Gone():
			return using.Err()
		}
	}
	for {
		snapshot := using.Snapshot()
		found := map[ownerref.ID]bool{}
		if s.counted {
			w.countAnew()
		}
		for o := range snapshot.List(stream.AllNamespaces(), cache.Selector{}, "", "") {
			if w.see(s, using.Kind(), o, nil, false) {
				found[ownerref.Of(using.Kind(), o)] = true
			}
		}
		w.retain(s, found)
		if err := w.follow(ctx, s, using, using.Topic().From(snapshot.Head, stream.AllNamespaces())); err != nil {
			return err
		}
	}
}

// follow reads changes. It returns nil where it cannot go on, as after a restore: then everything has to be read again.
func (w *Watch) follow(ctx context.Context, s source, using *cache.Store, cursor *cache.Cursor) error {
	defer cursor.Disarm()
	wakes := stream.NewWakeChannel()
	for {
		events, _, err := cursor.Next(make([]*cache.Event, 0, 256), wakes)
		if err != nil {
			return nil //nolint:nilerr // reading again heals it
		}
		for _, e := range events {
			w.see(s, using.Kind(), e.Object, e.Old, e.Type == stream.Deleted)
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-using.Gone():
			return using.Err()
		case <-wakes.C:
		}
	}
}

// see takes what an object says, and whose it is, or forgets it if that is nothing, which it
// reports as false. What the object says is a part of its text, which the cache keeps anyway. Old
// is what it was before, if that was seen.
func (w *Watch) see(s source, kind cluster.Kind, o, old *cluster.Object, deleted bool) (kept bool) {
	id, known := ownerref.Of(kind, o), object{of: s.kind}
	var owners []ownerref.ID
	if !deleted && id.UID != "" {
		owners = s.ownersOf(o)
	}
	kept = len(owners) > 0
	if kept && s.says != nil {
		var said statement
		if said, kept = s.says(o); said.At == 0 {
			said.At = jobs.At(time.Now())
		}
		said.Version = o.Version()
		known.says = &said
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	was, before, there := w.objects.Get(id)
	if s.counted && kept && known.says.weight == aPodFindsNoNode {
		known.own = known.says
		known.says = w.withOthers(id, known.own)
	}
	if s.counted {
		if old != nil {
			w.count(old, there && (was.own != nil || was.says.isStuck()), -1)
		}
		if !deleted {
			w.count(o, kept && (known.own != nil || known.says.isStuck()), 1)
		}
	}
	if s.kind == provisioningRequests {
		defer w.provisioned(named{o.GetNamespace(), o.GetName()})
	}
	if !kept {
		w.forget(id)
		return false
	}
	if there && slices.Equal(before, owners) && was.sameAs(known) {
		if was.own != nil {
			known.own.At = was.own.At
		}
		if was.says != nil {
			known.says.At = was.says.At // the texts are the newer object's, since the cache does not keep the older one
		}
		w.consumeNot(id, was)
		w.objects.Replace(id, known)
		w.consume(id, known)
		return true
	}
	w.forget(id)
	w.put(id, owners, known)
	return true
}

// put takes what is known of an object that was forgotten. The caller holds the lock.
func (w *Watch) put(id ownerref.ID, owners []ownerref.ID, known object) {
	w.objects.Put(id, owners, known, known.says != nil)
	w.consume(id, known)
	w.notify(id)
}

// retain forgets what a kind's objects said, but for those that were found.
func (w *Watch) retain(s source, found map[ownerref.ID]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.counted {
		w.counts = true
	}
	var gone []ownerref.ID
	w.objects.Each(func(id ownerref.ID, o object) {
		if o.of == s.kind && !found[id] {
			gone = append(gone, id)
		}
	})
	for _, id := range gone {
		w.forget(id)
	}
	if s.kind == provisioningRequests {
		for _, request := range slices.Collect(maps.Keys(w.consumers)) {
			w.provisioned(request)
		}
	}
	if delete(w.unread, s.kind); len(w.unread) == 0 {
		select {
		case <-w.settled:
		default:
			close(w.settled)
		}
	}
}

// countAnew forgets what was counted, until everything has been read again.
func (w *Watch) countAnew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts = false
	w.objects.CountNothing()
}

// forget says that an object says nothing any more. The caller holds the lock.
func (w *Watch) forget(id ownerref.ID) {
	w.notify(id) // whose it was
	if was, _, there := w.objects.Get(id); there {
		w.consumeNot(id, was)
	}
	w.objects.Remove(id)
}

// sameAs reports whether two objects say the same.
func (o object) sameAs(other object) bool {
	if o.says == nil || other.says == nil {
		return o.says == other.says
	}
	a, b := *o.says, *other.says
	a.At, b.At, a.Version, b.Version, a.evicted.Version, b.evicted.Version = 0, 0, 0, 0, 0, 0
	return a == b
}

// notify tells listeners that something else is said of the objects to which an object belongs. The
// caller holds the lock.
func (w *Watch) notify(id ownerref.ID) {
	w.objects.Above(id, func(owner ownerref.ID) {
		for l := range w.listeners {
			l.changed[JobKey{owner.Namespace, owner.UID}] = struct{}{}
		}
	})
}

// Why is why a job waits; the zero Reason if nothing says so. Known is false until all kinds were
// read. Until then there may be a reason nevertheless. Steps are what the answer cost.
func (w *Watch) Why(job ownerref.ID) (why jobs.Reason, known bool, steps int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	best, known, steps := w.best(job)
	if best == nil {
		return why, known, steps
	}
	if why = w.withClasses(best); best.isStuck() && w.counts {
		pods, further := w.objects.Sum(job)
		if steps += further; pods.All > 1 && pods.Stuck > 0 {
			why = inPart(pods, why)
		}
	}
	return why, known, steps
}

// best is what counts of what is said of a job; nil: nothing is said. The caller holds the lock.
func (w *Watch) best(job ownerref.ID) (best *statement, known bool, steps int) {
	found, ok, steps := w.objects.Best(job)
	if ok {
		best = found.says
	}
	return best, len(w.unread) == 0, steps
}

// Queueing is what the job's queue says of it, and evicted why it has taken the job back and not
// let it in again since; zero if it says nothing of it. A queue's Workload names its job itself, so
// nothing else is looked at, however much there is below the job: recorders ask this at
// transitions, of which a namespace may have any number.
func (w *Watch) Queueing(job ownerref.ID) (why, evicted jobs.Reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if best, ok := w.objects.Said(job); ok && best.says.weight == aQueueHolds { // nothing weighs more
		return best.says.Reason, best.says.evicted
	}
	return why, evicted
}

// ReadsQueues reports whether it is read now what queues say of jobs.
func (w *Watch) ReadsQueues() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, read := w.upwards[kindOf{"kueue.x-k8s.io", "Workload"}]
	return read
}

// JobKey is one of which something else may be said.
type JobKey struct{ Namespace, UID string }

// Listener learns of which jobs something else is said.
type Listener struct {
	watch   *Watch
	changed map[JobKey]struct{} // guarded by the Watch's lock
}

// Listen returns a Listener, which has to be closed.
func (w *Watch) Listen() *Listener {
	w.want()
	l := &Listener{watch: w, changed: map[JobKey]struct{}{}}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listeners[l] = struct{}{}
	return l
}

// Close ends the listening.
func (l *Listener) Close() {
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	delete(l.watch.listeners, l)
}

// Changed are the jobs of which something else may be said since the last call, among other objects.
func (l *Listener) Changed() []JobKey {
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	jobs := slices.Collect(maps.Keys(l.changed))
	clear(l.changed)
	return jobs
}
