package livequery

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// Snapshot is the answer at one revision. It never changes, and may be read concurrently.
type Snapshot struct {
	Ref
	At       time.Time      // when the newest change came to be known; zero for a state that was read whole
	Upstream cache.Upstream // whether what the store knows is fresh; if it is live, the snapshot has all that was missed before
	Ranking  *cache.Ranking // a copy; nil for counts
	Tally    *cache.Tally   // a copy; nil for an order
}

// Ref is what is left of a Snapshot when nobody needs its objects any more. No two snapshots have the same.
type Ref struct {
	stream.Revision // at which it is true
	// Changed is since when it is: at all revisions between the two it is the same. It may be later
	// than the true one, since the time before the query was kept is not known; it is never
	// earlier.
	Changed stream.Revision

	all    uint64        // everything up to this version is in it; less than its own, if there may be more of that
	number uint64        // of the snapshots by this cursor: two may be of one version
	forgot int           // how often it was forgotten which objects have left the order
	cursor *cache.Cursor // that it came by; only Void may be asked of it
}

// IsZero reports whether it is of no snapshot.
func (m Ref) IsZero() bool { return m.cursor == nil }

// Known is what a client knows that was told the snapshot.
func (m Ref) Known() stream.Known { return stream.Known{All: m.all, Some: max(m.all, m.Version)} }

// Void reports whether another history has begun since, in which the version means something else.
func (m Ref) Void() bool { return m.cursor != nil && m.cursor.Void() }

// Left reports whether an object is not in the order any more that was there in an earlier snapshot. It is not known (ok is
// false) if the order was made anew between the two, or too many have left.
func (m *Snapshot) Left(o *cluster.Object, since Ref) (left, ok bool) {
	if since.cursor != m.cursor || since.forgot != m.forgot {
		return false, false
	}
	return m.Ranking.Left(o), true
}

// query is a Query that is kept. Its goroutine alone changes the answer, and shows it as snapshots.
type query struct {
	Query
	store    *cache.Store
	match    func(*cluster.Object) bool // the selector; nil: everything
	drop     func(error)
	cancel   context.CancelFunc
	wakes    *stream.WakeChannel
	snapshot atomic.Pointer[Snapshot]
	bytes    atomic.Int64

	ownership atomic.Pointer[ownership] // changed with the registry's lock only

	// Guarded by the registry's lock.
	readers int
	askers  map[string]int // readers by user
	idle    *time.Timer    // ends it; nil while it is asked

	keep   int          // how many objects at the beginning of an order are kept at least
	places atomic.Int64 // how many places readers look at; it is changed with the registry's lock only

	mu         sync.Mutex
	waiting    map[*Reader]awaited
	subscribed map[Window]*subscription // by those who wait
	asked      chan struct{}            // closed once there is a snapshot that was made after it; nil: nobody waits for that
	err        error                    // why there is no answer any more

	// The goroutine's own.
	ranking          *cache.Ranking
	tally            *cache.Tally
	cursor           *cache.Cursor
	now, changed     stream.Revision
	all              uint64 // everything up to this version is in the answer
	at               time.Time
	number           uint64 // of the snapshot that was shown last
	upstreamStatus   upstreamStatus
	pendingRefreshes []chan struct{} // taken over from asked
	due              stream.Place    // what is before it is in the answer that they were promised
	read             []batch         // events that came while the answer was made
	ahead            int             // bytes of their objects
	space            [batchSize]*cache.Event
	window           []*cluster.Object // likewise
}

func newQuery(asked Query, store *cache.Store, keep int, drop func(error)) *query {
	return &query{
		Query: asked, keep: keep, store: store, match: asked.Selector.Match(), drop: drop, wakes: stream.NewWakeChannel(), waiting: map[*Reader]awaited{}, subscribed: map[Window]*subscription{}, askers: map[string]int{},
	}
}

// run keeps the answer until the context ends.
func (q *query) run(ctx context.Context, processors *budget.Queue, user string) {
	defer func() {
		q.end(ErrClosed)
		q.pay()
	}()
	if err := q.store.WaitSynced(ctx); err != nil {
		q.drop(err)
		return
	}
	defer func() { q.cursor.Disarm() }()
	task := budget.NewTask(ctx, processors, user)
	defer task.Rest()
	for q.build(task) {
		for q.follow(ctx, task) {
			task.Rest()
			select {
			case <-q.wakes.C:
			case <-ctx.Done():
				return
			}
		}
		q.cursor.Disarm()
	}
}

// build makes the answer from the present state. It is false if the context has ended.
func (q *query) build(task *budget.Task) bool {
	q.upstreamStatus = statusOf(q.store) // before the state is read, which then has what was missed
	snapshot, changed := q.store.View(q.Target.Namespaces())
	q.cursor, q.read, q.ahead = q.store.Topic().From(snapshot.Head, q.Target.Namespaces()), nil, 0
	seen := 0
	step := func(bytes int) bool {
		if seen += bytes; seen > readAfter {
			seen = 0
			q.readAhead()
		}
		return task.Step(bytes)
	}
	objects := q.Target.List(snapshot, q.Selector.Stepping(step), "", "")
	named := func(yield func(*cluster.Object) bool) {
		for o := range objects {
			if (q.Target.Name == "" || o.GetName() == q.Target.Name) && !yield(o) {
				return
			}
		}
	}
	if q.By.String() != "" {
		q.tally = q.By.Tally()
		for o := range named {
			if !step(o.Size()) {
				break
			}
			q.tally.Add(o)
		}
	} else {
		q.ranking = q.Order.Ranking(named, max(q.keep, int(q.places.Load())), step)
	}
	q.now, q.all, q.changed, q.at = snapshot.Revision(), snapshot.Head.Known().All, changed, time.Time{}
	return task.Err() == nil
}

// batchSize is how many events are read at a time.
const batchSize = 128

// batch is events, and up to which version the answer has everything once it has them.
type batch struct {
	events   []*cache.Event
	position uint64
}

const (
	// readAfter is after how many bytes that were looked at for an answer the events that came meanwhile are read. The ring
	// may not hold them until an answer about a million objects is made.
	readAfter = 8 << 20
	// mostAhead is how many batches are read ahead at most, and aheadBytes how large their objects may be together.
	mostAhead  = 512
	aheadBytes = 64 << 20
)

// readAhead reads what has come since the state of which the answer is made. That the cursor was overtaken is found out by
// follow.
func (q *query) readAhead() {
	for len(q.read) < mostAhead && q.ahead < aheadBytes {
		events, position, err := q.cursor.Next(make([]*cache.Event, 0, batchSize), nil)
		if err != nil || len(events) == 0 {
			return
		}
		for _, event := range events {
			q.ahead += event.Object.Size()
		}
		q.read = append(q.read, batch{events, position})
	}
}

// next is what follows, and whether more was read already. If there is no more, the next event wakes the query.
func (q *query) next() (_ batch, more bool, err error) {
	if len(q.read) > 0 {
		b := q.read[0]
		q.read[0] = batch{} // it must not keep objects alive
		if q.read = q.read[1:]; len(q.read) == 0 {
			q.read = nil
		}
		return b, true, nil
	}
	events, position, err := q.cursor.Next(q.space[:0], q.wakes)
	return batch{events, position}, len(events) == batchSize, err
}

// sameRevision is for how long the rest of a revision is waited for that deletes something. There
// may be more of it, which mostly comes with it, and nothing says where it ends. What comes later
// is one more change of the answer, at the same version.
const sameRevision = 5 * time.Millisecond

// mostUntold is after how many events at the latest an answer is shown, where a revision ends:
// changes that do not end would show nothing.
const mostUntold = 8 * batchSize

// follow brings the answer up to date, and shows it. It is false if it has to be made anew.
func (q *query) follow(ctx context.Context, task *budget.Task) bool {
	q.workFor(task)
	defer clear(q.space[:])             // it must not keep objects alive
	upstreamStatus := statusOf(q.store) // before the events are read: once the store is live, what it had missed is among them
	before, events, awaited := q.changed, 0, false
	for more := true; more; {
		var b batch
		var err error
		if b, more, err = q.next(); err != nil {
			return false
		}
		for _, event := range b.events {
			task.Step(2 * q.Selector.Cost(event.Object))
			if q.apply(event) {
				q.changed, q.at = event.Revision(), event.At
			}
			q.now = q.now.Later(event.Revision())
		}
		q.all = max(q.all, b.position)
		q.now = q.now.Later(stream.Revision{Version: b.position, Part: 1})
		events += len(b.events)
		if !q.holds() {
			return false
		}
		if more && events >= mostUntold && b.position >= q.now.Version {
			q.tell(task, before, q.upstreamStatus, q.hasDue())
			before, events = q.changed, 0
			q.workFor(task)
		}
		if !more && !awaited && b.position < q.now.Version {
			awaited, more = true, true
			select {
			case <-time.After(sameRevision):
			case <-ctx.Done():
			}
		}
	}
	q.tell(task, before, upstreamStatus, true)
	return true
}

// holds reports whether the answer has all places that readers look at. So many objects may have left the beginning of an
// order that it has to be looked for what stands there now.
func (q *query) holds() bool {
	return q.ranking == nil || q.ranking.Holds(int(q.places.Load()))
}

// hasDue reports whether the answer has what was promised.
func (q *query) hasDue() bool {
	if len(q.read) > 0 {
		return false // the cursor is ahead of the answer
	}
	place, _ := q.cursor.Place()
	order, ok := place.Compare(q.due)
	return ok && order >= 0
}

// workFor has the task go on in the name of any of those who wait, if there are any.
func (q *query) workFor(task *budget.Task) {
	if user := q.take(); user != "" {
		task.For(user)
	}
}

// tell shows the answer and the status of its store, and wakes those for whom it may be another.
// Before is since when it was what was shown last. Pays says whether it has what was promised to
// those who asked for a refresh.
func (q *query) tell(task *budget.Task, before stream.Revision, now upstreamStatus, pays bool) {
	shown, stood := q.snapshot.Load(), q.upstreamStatus
	q.upstreamStatus = now
	q.show()
	told := pays && len(q.pendingRefreshes) > 0
	if pays {
		q.pay()
	}
	switch {
	case shown == nil || shown.cursor != q.cursor || !now.same(stood):
		q.wake(func(awaited) bool { return true })
	case told:
		q.wake(func(a awaited) bool { return !a.still })
	case q.changed != before:
		q.wakeMoved(task)
	}
}

// upstreamStatus is what readers tell of the store beside what it has.
type upstreamStatus struct {
	upstream cache.Upstream
	gone     bool
}

func statusOf(store *cache.Store) upstreamStatus {
	return upstreamStatus{store.Upstream(), store.Err() != nil}
}

func (s upstreamStatus) same(as upstreamStatus) bool {
	return s.gone == as.gone && s.upstream.Live == as.upstream.Live && s.upstream.Since.Equal(as.upstream.Since)
}

// show publishes the answer as it is now.
func (q *query) show() {
	q.number++
	forgot := 0
	if q.ranking != nil {
		forgot = q.ranking.Forgot()
	}
	snapshot := &Snapshot{Ref: Ref{q.now, q.changed, q.all, q.number, forgot, q.cursor}, At: q.at, Upstream: q.upstreamStatus.upstream}
	size := int64(queryBytes)
	if q.tally != nil {
		snapshot.Tally = q.tally.Copy()
		size += q.tally.Size()
	} else {
		snapshot.Ranking = q.ranking.Copy()
		size += q.ranking.Size()
	}
	q.snapshot.Store(snapshot)
	if before := q.bytes.Swap(size); before == 0 {
		q.ownership.Load().charge.Set(size) // from then on it is measured
	}
}

// queryBytes is what a query occupies beside its answer.
const queryBytes = 8 << 10

// apply brings an event into the answer, and reports whether that changed it.
func (q *query) apply(event *cache.Event) bool {
	o := event.Object
	if !q.covers(o) {
		return false
	}
	is := event.Type != stream.Deleted && q.matches(o)
	if q.tally == nil {
		old, now := event.Old, o
		if old != nil && !q.ranking.HoldsAll() && !q.matches(old) {
			old = nil
		}
		if !is {
			now = nil
		}
		return q.ranking.Change(old, now)
	}
	was := event.Old != nil && q.matches(event.Old)
	switch {
	case was && is:
		return q.tally.Replace(event.Old, o)
	case was:
		q.tally.Remove(event.Old)
	case is:
		q.tally.Add(o)
	}
	return was || is
}

// covers reports whether an object is one that the query is about.
func (q *query) covers(o *cluster.Object) bool {
	return q.Target.Visible.Sees(o) && (q.Target.Namespace == "" || o.GetNamespace() == q.Target.Namespace) && (q.Target.Name == "" || o.GetName() == q.Target.Name)
}

func (q *query) matches(o *cluster.Object) bool { return q.match == nil || q.match(o) }

// refresh asks for a snapshot that is made from now on. The channel is closed once it is there, or will never be.
func (q *query) refresh() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		over := make(chan struct{})
		close(over)
		return over
	}
	if q.asked == nil {
		q.asked = make(chan struct{})
		q.wakes.Wake()
	}
	return q.asked
}

// take takes over what was asked for until now, and returns in whose name to work: any of those who
// wait. In the name of one alone, whose other work is endless, all of them would wait for that. It
// is "" if nobody waits.
func (q *query) take() (user string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked != nil {
		q.pendingRefreshes = append(q.pendingRefreshes, q.asked)
		q.asked, q.due = nil, q.store.Topic().Head().Place()
	}
	for r := range q.waiting { // begins at any of them, though not at all equally often
		return r.user
	}
	return ""
}

// pay says that what was taken over is there, or will never be.
func (q *query) pay() {
	for _, asked := range q.pendingRefreshes {
		close(asked)
	}
	q.pendingRefreshes = nil
}

// wake wakes some of those who wait.
func (q *query) wake(whom func(awaited) bool) {
	var wake []stream.Waiter
	q.mu.Lock()
	for r, a := range q.waiting {
		if whom(a) {
			wake = append(wake, a.waiter)
			delete(q.waiting, r)
			q.left(a.subscription)
		}
	}
	q.mu.Unlock()
	for _, w := range wake {
		w.Wake()
	}
}

// end says that there is no answer any more, and ends the goroutine.
func (q *query) end(err error) {
	q.mu.Lock()
	if q.err == nil {
		q.err = err
	}
	asked := q.asked
	q.asked = nil
	q.mu.Unlock()
	q.cancel()
	if asked != nil {
		close(asked)
	}
	q.wake(func(awaited) bool { return true })
}
