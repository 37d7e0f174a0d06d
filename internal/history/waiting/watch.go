package waiting

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
	"github.com/kubecast/kubecast/internal/history"
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
	objects   map[string]*object             // by uid: the objects that say something, or belong to another object
	belonging map[string]map[string]struct{} // by uid: the uids of the objects that belong to it
	unread    map[string]bool                // kinds that have not been read yet
	listeners map[*Listener]struct{}
}

// object is what is known of one object.
type object struct {
	of     string   // the source's kind
	owners []string // uids
	says   *statement
}

// New returns a Watch that reads nothing before somebody listens.
func New(opts Options) *Watch {
	w := &Watch{
		opts: opts, wanted: make(chan struct{}), objects: map[string]*object{}, belonging: map[string]map[string]struct{}{},
		unread: map[string]bool{}, listeners: map[*Listener]struct{}{},
	}
	w.want = sync.OnceFunc(func() { close(w.wanted) })
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
			w.replace(s, nil)
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
	for {
		snapshot := using.Snapshot()
		found := map[string]*object{}
		for o := range snapshot.List(stream.AllNamespaces(), cache.Selector{}, "", "") {
			if known := s.read(o); known != nil {
				found[strings.Clone(o.UID())] = known
			}
		}
		w.replace(s, found)
		if err := w.follow(ctx, s, using, using.Topic().From(snapshot.Head, stream.AllNamespaces())); err != nil {
			return err
		}
	}
}

// follow reads changes. It returns nil where it cannot go on, as after a restore: then everything has to be read again.
func (w *Watch) follow(ctx context.Context, s source, using *cache.Store, cursor *cache.Cursor) error {
	defer cursor.Disarm()
	bell := stream.NewBell()
	for {
		events, _, err := cursor.Next(make([]*cache.Event, 0, 256), bell)
		if err != nil {
			return nil //nolint:nilerr // reading again heals it
		}
		for _, e := range events {
			var known *object
			if e.Type != stream.Deleted {
				known = s.read(e.Object)
			}
			w.mu.Lock()
			w.set(e.Object.UID(), known)
			w.mu.Unlock()
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-using.Gone():
			return using.Err()
		case <-bell.C:
		}
	}
}

// read is what has to be kept of an object, or nil. What the object says is a part of its text, which the cache keeps
// anyway.
func (s source) read(o *cluster.Object) *object {
	known := &object{of: s.kind, owners: s.ownersOf(o)}
	if len(known.owners) == 0 {
		return nil
	}
	if s.says == nil {
		return known
	}
	said, ok := s.says(o)
	if !ok {
		return nil
	}
	if said.At == 0 {
		said.At = history.At(time.Now())
	}
	known.says = &said
	return known
}

// replace sets everything that a kind's objects say, by uid.
func (w *Watch) replace(s source, found map[string]*object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, o := range w.objects {
		if o.of == s.kind && found[uid] == nil {
			w.set(uid, nil)
		}
	}
	for uid, o := range found {
		w.set(uid, o)
	}
	delete(w.unread, s.kind)
}

// set records what is known of an object; nil for nothing. The caller holds the lock.
func (w *Watch) set(uid string, known *object) {
	was := w.objects[uid]
	if was == nil && known == nil {
		return
	}
	if was != nil && known != nil && slices.Equal(was.owners, known.owners) && was.sameAs(known) {
		if was.says != nil {
			known.says.At = was.says.At // the texts are the newer object's, since the cache does not keep the older one
		}
		w.objects[uid] = known
		return
	}
	uid = strings.Clone(uid)
	if was != nil {
		w.notify(uid, 0) // whose it was
		for _, owner := range was.owners {
			delete(w.belonging[owner], uid)
			if len(w.belonging[owner]) == 0 {
				delete(w.belonging, owner)
			}
		}
		delete(w.objects, uid)
	}
	if known == nil {
		return
	}
	w.objects[uid] = known
	for _, owner := range known.owners {
		if w.belonging[owner] == nil {
			w.belonging[owner] = map[string]struct{}{}
		}
		w.belonging[owner][uid] = struct{}{}
	}
	w.notify(uid, 0)
}

// sameAs reports whether two objects say the same.
func (o *object) sameAs(other *object) bool {
	if o.says == nil || other.says == nil {
		return o.says == other.says
	}
	a, b := *o.says, *other.says
	a.At, b.At = 0, 0
	return a == b
}

// maxDepth is how many levels of owners a job may be above the object that explains it: TrainJob, JobSet, Job, Pod.
const maxDepth = 5

// notify tells listeners that something new is said of the objects to which an object belongs. The caller holds the lock.
func (w *Watch) notify(uid string, depth int) {
	o := w.objects[uid]
	if o == nil || depth == maxDepth {
		return
	}
	for _, owner := range o.owners {
		for l := range w.listeners {
			l.changed[owner] = struct{}{}
		}
		w.notify(owner, depth+1)
	}
}

// Why is why a job waits; the zero Reason if nothing says so. Known is false until all kinds were read. Until then there
// may be a reason nevertheless.
func (w *Watch) Why(uid string) (why history.Reason, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var best statement
	var bestUID string
	w.each(uid, 0, func(uid string, s *statement) {
		// Among statements of the same weight the newest counts, and among equally new ones always the same.
		if s.weight > best.weight || s.weight == best.weight && (s.At > best.At || s.At == best.At && uid < bestUID) {
			best, bestUID = *s, uid
		}
	})
	return best.Reason, len(w.unread) == 0
}

// each visits everything that is said of a job. The caller holds the lock.
func (w *Watch) each(uid string, depth int, visit func(string, *statement)) {
	if depth == maxDepth {
		return
	}
	for other := range w.belonging[uid] {
		if says := w.objects[other].says; says != nil {
			visit(other, says)
		}
		w.each(other, depth+1, visit)
	}
}

// Listener learns of which jobs something else is said.
type Listener struct {
	watch   *Watch
	changed map[string]struct{} // guarded by the Watch's lock
}

// Listen returns a Listener, which has to be closed.
func (w *Watch) Listen() *Listener {
	w.want()
	l := &Listener{watch: w, changed: map[string]struct{}{}}
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

// Changed are the uids of which something else may be said since the last call: those of jobs, and others.
func (l *Listener) Changed() []string {
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	uids := slices.Collect(maps.Keys(l.changed))
	clear(l.changed)
	return uids
}
