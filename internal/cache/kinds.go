package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// ErrNotWatchable means that a kind does not support list and watch, so it cannot be served.
var ErrNotWatchable = errors.New("the kind cannot be listed and watched")

// ErrClosed means that the gateway is shutting down.
var ErrClosed = errors.New("the cache is closed")

// ErrTooManyKinds means that at the moment no further kind can be cached for this user.
var ErrTooManyKinds = errors.New("too many kinds are in use")

// Options configure the stores of one cluster.
type Options struct {
	Preload   []string            // kinds to watch from the start, as resource[.group]
	IdleAfter time.Duration       // how long after its last use a store is stopped; 0: it is never stopped
	AtMost    int                 // how many kinds are cached at once; 0: no limit
	Indexes   map[string][]string // paths to index, by kind; kinds are written as in Preload
	Topic     stream.Options      // bounds of each store's topic
	CatchUp   CatchUpBound        // of one catch-up
}

// Kinds are the stores of one cluster.
type Kinds struct {
	cluster *cluster.Cluster
	opts    Options
	log     *slog.Logger
	start   chan *running // to Run, which owns the goroutines
	closed  chan struct{} // closed when Run ends

	caughtUp *keptCatchUps

	mu      sync.Mutex
	stores  map[cluster.Kind]*running
	preload map[string]func() error // by name of a kind to preload: says why it is not there yet; nil once it is synced
	changed chan struct{}           // closed when what the cluster serves may have changed
	removed bool                    // the cluster is no longer one of the gateway's
}

// running is a store with what Kinds needs to stop it in time.
type running struct {
	store *Store
	users map[string]int     // the users that use it now, and how often
	last  string             // the user that began to use it last
	idle  time.Time          // when its last user released it
	stop  context.CancelFunc // nil until it was started
}

// NewKinds returns the stores of a cluster; none is started before Run. An error names the key of an index that is
// not a path. Whether the kinds exist is not checked: the indexes of one that does not are never used.
func NewKinds(c *cluster.Cluster, opts Options, log *slog.Logger) (*Kinds, error) {
	for kind, paths := range opts.Indexes {
		if _, err := newState(paths); err != nil {
			return nil, fmt.Errorf("cache.indexes.%s: %w", kind, err)
		}
	}
	k := &Kinds{
		cluster: c,
		opts:    opts,
		log:     log.With("cluster", c.Name()),
		start:   make(chan *running),
		closed:  make(chan struct{}),

		caughtUp: &keptCatchUps{bound: opts.CatchUp.Bytes},

		stores:  map[cluster.Kind]*running{},
		preload: map[string]func() error{},
		changed: make(chan struct{}),
	}
	for _, name := range opts.Preload {
		notBegun := fmt.Errorf("%w: %s: not begun", ErrNotSynced, name)
		k.preload[name] = func() error { return notBegun }
	}
	return k, nil
}

// Cluster is the cluster that the stores are of.
func (k *Kinds) Cluster() *cluster.Cluster { return k.cluster }

// Run keeps the stores running until the context ends, and waits for all of them.
func (k *Kinds) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer close(k.closed) // before the wait: a goroutine of the group may be waiting for a store to start
	defer cancel()
	for _, name := range k.opts.Preload {
		group.Go(func() { k.keep(ctx, name) })
	}
	group.Go(func() { _ = k.cluster.Run(ctx) })
	group.Go(func() { _ = k.cluster.FollowDefinitions(ctx, (*definitions)(k)) })
	sweep := time.NewTicker(max(k.opts.IdleAfter/8, time.Second))
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-k.start:
			ctx, stop := context.WithCancel(ctx)
			k.mu.Lock()
			r.stop = stop
			k.mu.Unlock()
			group.Go(func() {
				defer stop()
				_ = r.store.run(ctx, r.store.lists)
			})
			group.Go(func() {
				select {
				case <-r.store.Gone():
					k.drop(r)
				case <-ctx.Done():
				}
			})
		case <-sweep.C:
			k.stopIdle()
		}
	}
}

// drop stops a store whose kind is gone. Its users can still read what it holds.
func (k *Kinds) drop(r *running) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stores[r.store.kind] == r {
		delete(k.stores, r.store.kind)
	}
	r.stop()
}

// Use returns the store of a kind for a user, and starts it if it does not run. The gateway itself is the user "".
// The caller must call release when it no longer needs the store; further calls do nothing. An error wraps
// ErrNotWatchable, ErrTooManyKinds, ErrNotServed or ErrClosed.
func (k *Kinds) Use(kind cluster.Kind, user string) (_ *Store, release func(), err error) {
	if !kind.Watchable {
		return nil, nil, fmt.Errorf("%w: %s", ErrNotWatchable, kind)
	}
	k.mu.Lock()
	if k.isClosed() {
		k.mu.Unlock()
		return nil, nil, ErrClosed
	}
	if k.removed {
		k.mu.Unlock()
		return nil, nil, fmt.Errorf("%w: cluster %s was removed", ErrNotServed, k.cluster.Name())
	}
	r := k.stores[kind]
	begin := r == nil || r.store.Err() != nil
	if begin {
		if err := k.makeRoom(user); err != nil {
			k.mu.Unlock()
			return nil, nil, fmt.Errorf("%w: %s", err, kind)
		}
		began := time.Now()
		var store *Store
		restart := func() { k.cluster.WentBack(kind, began, store.Followed()) }
		store, err = newStore(kind, k.opts.Topic, k.opts.Indexes[kind.String()], restart, k.log)
		if err != nil {
			k.mu.Unlock()
			return nil, nil, err
		}
		store.catchUps = newCatchUps(k.opts.CatchUp, k.caughtUp, func(ctx context.Context, after, until uint64) ([]cluster.PastChange, error) {
			return k.cluster.History(ctx, kind, after, until, cluster.HistoryBound{Events: k.opts.CatchUp.Events, Bytes: k.opts.CatchUp.Bytes})
		})
		store.away = k.cluster.Away
		store.gone.served = func() bool { return k.serves(kind) }
		store.lists = k.cluster.ListWatch(kind, store)
		store.reaching.newest = func(ctx context.Context) (uint64, error) { return k.cluster.Newest(ctx, kind) }
		store.reaching.confirm = func(ctx context.Context, until uint64) error {
			return store.lists.Confirm(ctx, until, func() (int, uint64) {
				snapshot := store.Snapshot()
				return snapshot.Len(), snapshot.Version()
			})
		}
		r = &running{store: store, users: map[string]int{}}
		k.stores[kind] = r
	}
	r.users[user]++
	r.last = user
	k.mu.Unlock()
	if begin {
		select {
		case k.start <- r:
		case <-k.closed:
			return nil, nil, ErrClosed
		}
	}
	released := false // rather than a sync.OnceFunc, which allocates more: there is one for each get
	return r.store, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if released {
			return
		}
		released = true
		if r.users[user]--; r.users[user] == 0 {
			delete(r.users, user)
		}
		r.idle = time.Now()
	}, nil
}

func (k *Kinds) isClosed() bool {
	select {
	case <-k.closed:
		return true
	default:
		return false
	}
}

// stopIdle stops the stores that have not been used for Options.IdleAfter.
func (k *Kinds) stopIdle() {
	if k.opts.IdleAfter == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for kind, r := range k.stores {
		if len(r.users) == 0 && r.stop != nil && time.Since(r.idle) >= k.opts.IdleAfter {
			k.stopOne(kind, r)
		}
	}
}

// stopOne stops a store without users. The caller holds the lock.
func (k *Kinds) stopOne(kind cluster.Kind, r *running) {
	r.stop()
	delete(k.stores, kind)
	k.log.Info("kind is idle, its watch ends", "kind", kind.String())
}

// keep uses a kind to preload for as long as the gateway runs.
func (k *Kinds) keep(ctx context.Context, name string) {
	var news backoff.News
	k.Follow(ctx, name, func(ctx context.Context, store *Store) error {
		k.awaitPreload(name, store)
		if err := store.WaitSynced(ctx); err != nil {
			return err
		}
		k.setPreload(name, nil)
		news.Over() // what comes later is another trouble
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-store.Gone():
			return store.Err()
		}
	}, func(err error) {
		k.setPreload(name, err)
		if news.Is(err) {
			k.log.Warn("kind to preload is not there yet", "kind", name, "error", err)
		}
	})
}

// Follow calls use with the store of a kind, given as resource[.group], until the context ends.
// When use returns, or the cluster is away or does not have the kind (yet, or any more), failed is
// told why, and Follow tries again: after a second at first, later every half minute, and when the
// definitions change. It is for the gateway itself, whose kinds are not limited.
func (k *Kinds) Follow(ctx context.Context, name string, use func(context.Context, *Store) error, failed func(error)) {
	k.Retry(ctx, 30*time.Second, func(ctx context.Context) error { return k.FollowOnce(ctx, name, use) }, failed)
}

// discoveryLag is how long discovery may lag behind a changed definition.
const discoveryLag = 500 * time.Millisecond

// Retry calls try until the context ends. When it returns, failed is told why, and it is called
// again: after a second at first, later after the longest wait, and when the definitions change.
func (k *Kinds) Retry(ctx context.Context, most time.Duration, try func(context.Context) error, failed func(error)) {
	for retry := backoff.New(time.Second, most); ; {
		changed := k.Changed()
		err := try(ctx)
		if ctx.Err() != nil {
			return
		}
		failed(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(retry.Next()):
			continue
		case <-changed:
		}
		retry.Reset()
		if !backoff.Pause(ctx, discoveryLag) {
			return
		}
	}
}

// FollowOnce calls use with the store of a kind. It returns why use returned, or why it was not called.
func (k *Kinds) FollowOnce(ctx context.Context, name string, use func(context.Context, *Store) error) error {
	kind, err := k.cluster.Named(ctx, name)
	if err != nil {
		return err
	}
	store, release, err := k.Use(kind, "")
	if err != nil {
		return err
	}
	defer release()
	return use(ctx, store)
}

// setPreload says why a kind to preload is not there; nil: it is. That it is lacking stands until it is there: an
// API server that is away says nothing of it, and must not make a gateway unready that was ready without it.
func (k *Kinds) setPreload(name string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil && !IsLacking(err) && IsLacking(k.preload[name]()) {
		return
	}
	k.preload[name] = func() error { return err }
}

// awaitPreload has what a store waits for told as the reason why its kind is not there yet.
func (k *Kinds) awaitPreload(name string, store *Store) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.preload[name]()
	k.preload[name] = func() error {
		err := store.Upstream().unsynced(store.kind)
		if err != nil && IsLacking(was) {
			return was
		}
		return err
	}
}

// Ready is nil when all kinds to preload are synced. Kinds that the cluster does not have, or does not let the
// gateway see, do not count: waiting for them would keep the others from being served. Missing names them.
func (k *Kinds) Ready() error { return errors.Join(k.preloadErrors(false)...) }

// Missing names the kinds to preload that the cluster does not have, or does not let the gateway see; nil if there
// are none.
func (k *Kinds) Missing() error { return errors.Join(k.preloadErrors(true)...) }

// IsLacking reports whether a cluster does not have a kind, or does not let the gateway see it.
func IsLacking(err error) bool {
	return errors.Is(err, cluster.ErrNoKind) || errors.Is(err, ErrRefused) || errors.Is(err, ErrVersions) || errors.Is(err, ErrNotWatchable) || errors.Is(err, ErrNotServed)
}

func (k *Kinds) preloadErrors(missing bool) (found []error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range k.opts.Preload {
		err := k.preload[name]()
		if err != nil && IsLacking(err) == missing {
			found = append(found, fmt.Errorf("cluster %s: %s: %w", k.cluster.Name(), name, err))
		}
	}
	return found
}

// All returns the stores that run now, ordered by their kinds' paths.
func (k *Kinds) All() []*Store {
	k.mu.Lock()
	defer k.mu.Unlock()
	stores := make([]*Store, 0, len(k.stores))
	for _, r := range k.stores {
		stores = append(stores, r.store)
	}
	slices.SortFunc(stores, func(a, b *Store) int { return strings.Compare(a.kind.Path(), b.kind.Path()) })
	return stores
}
