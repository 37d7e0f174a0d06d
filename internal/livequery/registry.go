package livequery

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Options configure a Registry; all are required.
type Options struct {
	Queries    int           // kept at once
	Bytes      int64         // that their answers may occupy together, beside the objects
	Linger     time.Duration // for how long a query is kept once nobody asks it
	Keep       int           // how many objects at the beginning of an order are kept at least; more if somebody looks further
	Processors *budget.Queue // turns for making an answer from a whole state
	Registerer prometheus.Registerer
}

var (
	// ErrFull means that no more queries can be kept, or not this one any longer.
	ErrFull = errors.New("too many queries are kept")
	// ErrClosed means that the registry's time has ended.
	ErrClosed = errors.New("the registry is closed")
)

// Query is what a registry keeps the answer to: counts by a grouping, or an order.
type Query struct {
	Target   visibility.VisibleTarget
	Selector cache.Selector
	Order    cache.Order
	By       cache.Grouping // counts by it are asked for, unless it is the zero value
	Places   int            // how many places of the order, from its beginning on, are looked at; it makes no other query
}

// key identifies a query.
type key struct {
	store               *cache.Store
	target              visibility.VisibleTargetKey
	selector, order, by string
}

func (q Query) key(store *cache.Store) key {
	return key{store, q.Target.Key(), q.Selector.Key(), q.Order.String(), q.By.String()}
}

// Registry keeps queries. Its methods may be called concurrently.
type Registry struct {
	opts    Options
	memory  *budget.Memory
	metrics metrics

	mu      sync.Mutex
	life    context.Context // ends with Run
	stop    context.CancelFunc
	kept    map[key]*query
	paid    map[string]int // how many of them each user pays for
	running sync.WaitGroup
}

// New returns a registry that keeps nothing.
func New(opts Options) *Registry {
	b := &Registry{opts: opts, memory: budget.NewMemory(opts.Bytes), kept: map[key]*query{}, paid: map[string]int{}}
	b.life, b.stop = context.WithCancel(context.Background())
	b.metrics = newMetrics(b, opts.Registerer)
	return b
}

// Run ends with its context, and with it all queries.
func (b *Registry) Run(ctx context.Context) {
	<-ctx.Done()
	b.mu.Lock()
	b.stop()
	b.mu.Unlock()
	b.running.Wait()
}

// Ask returns a reader of a query about a store for a user, who may come to pay for it: see
// reassign. The reader must be closed. An error is ErrFull or ErrClosed, or that of
// cache.Kinds.Use.
func (b *Registry) Ask(kinds *cache.Kinds, store *cache.Store, asked Query, user string) (*Reader, error) {
	b.mu.Lock()
	r, err := b.ask(kinds, store, asked, user)
	if err != nil {
		b.mu.Unlock()
		return nil, err
	}
	q := r.query
	settle := b.reassign(q, user)
	b.mu.Unlock()
	settle()
	r.fresh = q.refresh()
	return r, nil
}

// ask counts a reader more. The lock is held.
func (b *Registry) ask(kinds *cache.Kinds, store *cache.Store, asked Query, user string) (*Reader, error) {
	if b.life.Err() != nil {
		return nil, ErrClosed
	}
	of := asked.key(store)
	q := b.kept[of]
	if q == nil {
		// A query that cannot be kept must displace none, so this comes first.
		used, release, err := kinds.Use(store.Kind(), user)
		if err != nil {
			return nil, err
		}
		if used != store { // the kind is another one since
			release()
			return nil, cache.ErrNotServed
		}
		if len(b.kept) >= b.opts.Queries && !b.dropIdle() && !b.displace(user) {
			release()
			return nil, ErrFull
		}
		q = b.begin(of, asked, store, release, user)
	}
	q.readers++
	q.askers[user]++
	q.places.Store(max(q.places.Load(), int64(min(asked.Places, mostPlaces))))
	if q.idle != nil {
		q.idle.Stop()
		q.idle = nil
	}
	return &Reader{registry: b, key: of, query: q, user: user}, nil
}

// mostPlaces bounds what is made of numbers that clients send. No kind has so many objects.
const mostPlaces = 1 << 40

// Find is the snapshot of a query if it is kept already, and the same as at all revisions between
// two; nil if it is not. A nil registry keeps nothing.
func (b *Registry) Find(store *cache.Store, asked Query, first, last stream.Revision) *Snapshot {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	q := b.kept[asked.key(store)]
	b.mu.Unlock()
	if q == nil {
		return nil
	}
	if snapshot := q.snapshot.Load(); snapshot != nil && snapshot.Changed.Compare(last) <= 0 && first.Compare(snapshot.Revision) <= 0 && !snapshot.Void() {
		q.ownership.Load().charge.Use()
		return snapshot
	}
	return nil
}

// begin keeps one more query. The lock is held.
func (b *Registry) begin(of key, asked Query, store *cache.Store, release func(), user string) *query {
	ctx, cancel := context.WithCancel(b.life)
	var q *query
	q = newQuery(asked, store, b.opts.Keep, func(err error) { b.drop(of, q, err) })
	q.cancel = cancel
	b.kept[of] = q
	b.pay(q, user)
	b.running.Go(func() {
		defer release()
		defer func() { q.ownership.Load().charge.Release() }()
		q.run(ctx, b.opts.Processors, user)
	})
	return q
}

// ownership is who pays for a query.
type ownership struct {
	user   string
	charge *budget.Entry
}

// pay makes a user pay for a query. The lock is held. What the answer occupies is charged by query.show.
func (b *Registry) pay(q *query, user string) {
	drop := func() { q.drop(ErrFull) }
	q.ownership.Store(&ownership{user, b.memory.Enter(user, math.MaxInt64, drop).Measure(q.bytes.Load)})
	b.paid[user]++
}

// reassign makes a user who asks a query pay for it if the one who does asks it no more, or pays
// for more than the user then will. So who has left pays for nothing that others keep, and who has
// asked first what many ask is not the first to lose. The lock is held; what is returned is to be
// called without it.
func (b *Registry) reassign(q *query, to string) (settle func()) {
	before := q.ownership.Load()
	if before.user == to || q.askers[before.user] > 0 && b.paid[to]+1 >= b.paid[before.user] {
		return func() {}
	}
	b.unpay(before.user)
	b.pay(q, to)
	now := q.ownership.Load()
	return func() {
		before.charge.Release()
		if size := q.bytes.Load(); size > 0 {
			now.charge.Set(size)
		}
	}
}

func (b *Registry) unpay(user string) {
	if b.paid[user]--; b.paid[user] == 0 {
		delete(b.paid, user)
	}
}

// remove takes a query out, if it is still kept: there may be another by its key since, which stays. The lock is held.
func (b *Registry) remove(of key, q *query) bool {
	if b.kept[of] != q {
		return false
	}
	delete(b.kept, of)
	b.unpay(q.ownership.Load().user)
	return true
}

// drop ends a query, if it is still kept.
func (b *Registry) drop(of key, q *query, err error) {
	b.mu.Lock()
	removed := b.remove(of, q)
	b.mu.Unlock()
	if !removed {
		return
	}
	if errors.Is(err, ErrFull) {
		b.metrics.displaced.Inc()
	}
	q.end(err)
}

// dropIdle makes room for another query, if one is kept that nobody asks. The lock is held.
func (b *Registry) dropIdle() bool {
	for of, q := range b.kept {
		if q.readers == 0 {
			b.remove(of, q)
			q.end(ErrFull)
			return true
		}
	}
	return false
}

// displace makes room for another query of a user at the cost of whoever pays for most, as the
// memory does: so nobody can keep others from asking. It is false if nobody pays for more than the
// user will. The lock is held.
func (b *Registry) displace(user string) bool {
	var victim key
	most := b.paid[user] + 1
	var losing *query
	for of, q := range b.kept {
		by := q.ownership.Load().user
		// Of one who pays for most, the query that the fewest others ask.
		if n := b.paid[by]; n > most || losing != nil && by == losing.ownership.Load().user && q.readers < losing.readers {
			most, victim, losing = n, of, q
		}
	}
	if losing == nil {
		return false
	}
	b.remove(victim, losing)
	b.metrics.displaced.Inc()
	losing.end(ErrFull)
	return true
}

// leave counts a reader of a user less.
func (b *Registry) leave(of key, q *query, user string) {
	b.mu.Lock()
	settle := b.left(of, q, user)
	b.mu.Unlock()
	settle()
}

// left counts a reader less. The lock is held; what is returned is to be called without it.
func (b *Registry) left(of key, q *query, user string) (settle func()) {
	q.readers--
	if q.askers[user]--; q.askers[user] == 0 {
		delete(q.askers, user)
	}
	switch {
	case b.kept[of] != q:
	case q.readers > 0:
		if q.askers[q.ownership.Load().user] == 0 {
			return b.reassign(q, b.lightest(q))
		}
	default:
		q.idle = time.AfterFunc(b.opts.Linger, func() {
			b.mu.Lock()
			idle := q.readers == 0 && b.remove(of, q)
			b.mu.Unlock()
			if idle {
				q.end(ErrClosed)
			}
		})
	}
	return func() {}
}

// lightest is who of those that ask a query pays for the fewest. The lock is held.
func (b *Registry) lightest(q *query) (user string) {
	least := math.MaxInt
	for asker := range q.askers {
		if n := b.paid[asker]; n < least || n == least && asker < user {
			least, user = n, asker
		}
	}
	return user
}

// Stats is what a registry keeps at a moment.
type Stats struct {
	Queries, Readers int
	Bytes            int64 // that the answers occupy beside the objects
}

// Stats returns what is kept now.
func (b *Registry) Stats() (s Stats) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Queries = len(b.kept)
	for _, q := range b.kept {
		s.Readers += q.readers
		s.Bytes += q.bytes.Load()
	}
	return s
}

// Kept is a query that is kept, as operators are told of it: without what it selects by, which may be secret.
type Kept struct {
	Query
	Kind       cluster.Kind
	QuotaOwner string // of those who ask; or who asked last
	Readers    int
	Bytes      int64     // that its answer occupies beside the objects
	Snapshot   *Snapshot // the newest; nil: there is none yet
}

// List returns what is kept now, what occupies most first.
func (b *Registry) List() (all []Kept) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for of, q := range b.kept {
		all = append(all, Kept{q.Query, of.store.Kind(), q.ownership.Load().user, q.readers, q.bytes.Load(), q.snapshot.Load()})
	}
	slices.SortFunc(all, func(a, b Kept) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.QuotaOwner, b.QuotaOwner), strings.Compare(a.Order.String(), b.Order.String()))
	})
	return all
}
