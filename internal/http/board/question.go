package board

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

// View is the answer at one revision. It never changes, and may be read concurrently.
type View struct {
	Moment
	At       time.Time      // when the newest change came to be known; zero for a state that was read whole
	Upstream cache.Upstream // whether what the store knows is fresh; if it is live, the view has all that was missed before
	Ranking  *cache.Ranking // a copy; nil for counts
	Tally    *cache.Tally   // a copy; nil for an order
}

// Moment is what is left of a View when nobody needs its objects any more. Two views have different ones.
type Moment struct {
	stream.Revision // at which it is true
	// Changed is since when it is: at all revisions between the two it is the same. It may be later than the true one, since
	// the time before the question was kept is not known; it is never earlier.
	Changed stream.Revision

	all    uint64        // everything up to this version is in it; less than its own, if there may be more of that
	number uint64        // of the views by this cursor: two may be of one version
	cursor *cache.Cursor // that it came by; only Void may be asked of it
}

// IsZero reports whether it is of no view.
func (m Moment) IsZero() bool { return m.cursor == nil }

// Known is what a client knows that was told the view.
func (m Moment) Known() stream.Known { return stream.Known{All: m.all, Some: max(m.all, m.Version)} }

// Void reports whether another history has begun since, in which the version means something else.
func (m Moment) Void() bool { return m.cursor != nil && m.cursor.Void() }

// question is a Question that is kept. Its goroutine alone changes the answer, and shows it as views.
type question struct {
	Question
	store  *cache.Store
	match  func(*cluster.Object) bool // the selector; nil: everything
	drop   func(error)
	cancel context.CancelFunc
	bell   *stream.Bell
	view   atomic.Pointer[View]
	bytes  atomic.Int64

	payment atomic.Pointer[payment] // changed with the board's lock only

	// Guarded by the board's lock.
	readers int
	askers  map[string]int // readers by user
	idle    *time.Timer    // ends it; nil while it is asked

	mu      sync.Mutex
	waiting map[*Reader]awaited
	windows map[Places]*window // that those who wait have
	asked   chan struct{}      // closed once there is a view that was made after it; nil: nobody waits for that
	err     error              // why there is no answer any more

	// The goroutine's own.
	ranking      *cache.Ranking
	tally        *cache.Tally
	cursor       *cache.Cursor
	now, changed stream.Revision
	all          uint64 // everything up to this version is in the answer
	at           time.Time
	number       uint64 // of the view that was shown last
	standing     standing
	owed         []chan struct{} // taken over from asked
	due          stream.Place    // what is before it is in the answer that they were promised
	space        [batchSize]*cache.Event
	places       []*cluster.Object // likewise
}

func newQuestion(asked Question, store *cache.Store, drop func(error)) *question {
	return &question{
		Question: asked, store: store, match: asked.Selector.Match(), drop: drop, bell: stream.NewBell(), waiting: map[*Reader]awaited{}, windows: map[Places]*window{}, askers: map[string]int{},
	}
}

// run keeps the answer until the context ends.
func (q *question) run(ctx context.Context, processors *budget.Queue, user string) {
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
			case <-q.bell.C:
			case <-ctx.Done():
				return
			}
		}
		q.cursor.Disarm()
	}
}

// build makes the answer from the present state. It is false if the context has ended.
func (q *question) build(task *budget.Task) bool {
	snapshot, changed := q.store.View(q.Part.Scope())
	q.cursor = q.store.Topic().From(snapshot.Head, q.Part.Scope())
	objects := q.Part.List(snapshot, q.Selector.Stepping(task.Step), "", "")
	named := func(yield func(*cluster.Object) bool) {
		for o := range objects {
			if (q.Part.Name == "" || o.GetName() == q.Part.Name) && !yield(o) {
				return
			}
		}
	}
	if q.By.String() != "" {
		q.tally = q.By.Tally()
		for o := range named {
			if !task.Step(o.Size()) {
				break
			}
			q.tally.Add(o)
		}
	} else {
		q.ranking = q.Order.Ranking(named, task.Step)
	}
	q.now, q.all, q.changed, q.at = snapshot.Revision(), snapshot.Head.Known().All, changed, time.Time{}
	return task.Err() == nil
}

// batchSize is how many events are read at a time.
const batchSize = 128

// sameRevision is for how long the rest of a revision is waited for that deletes something. There may be more of it, which mostly comes
// with it, and nothing says where it ends. What comes later is one more change of the answer, at the same version.
const sameRevision = 5 * time.Millisecond

// mostUntold is after how many events at the latest an answer is shown, where a revision ends: changes that do not end would show nothing.
const mostUntold = 8 * batchSize

// follow brings the answer up to date, and shows it. It is false if it has to be made anew.
func (q *question) follow(ctx context.Context, task *budget.Task) bool {
	q.workFor(task)
	defer clear(q.space[:])         // it must not keep objects alive
	standing := standingOf(q.store) // before the events are read: once the store is live, what it had missed is among them
	before, events, awaited := q.changed, 0, false
	for more := true; more; {
		batch, position, err := q.cursor.Next(q.space[:0], q.bell)
		if err != nil {
			return false
		}
		for _, event := range batch {
			task.Step(2 * q.Selector.Cost(event.Object))
			if q.apply(event) {
				q.changed, q.at = event.Revision(), event.At
			}
			q.now = q.now.Later(event.Revision())
		}
		q.all = max(q.all, position)
		q.now = q.now.Later(stream.Revision{Version: position, Part: 1})
		events += len(batch)
		more = len(batch) == batchSize
		if more && events >= mostUntold && position >= q.now.Version {
			q.tell(task, before, q.standing, q.hasDue())
			before, events = q.changed, 0
			q.workFor(task)
		}
		if !more && !awaited && position < q.now.Version {
			awaited, more = true, true
			select {
			case <-time.After(sameRevision):
			case <-ctx.Done():
			}
		}
	}
	q.tell(task, before, standing, true)
	return true
}

// hasDue reports whether the answer has what was promised.
func (q *question) hasDue() bool {
	place, _ := q.cursor.Place()
	order, ok := place.Compare(q.due)
	return ok && order >= 0
}

// workFor has the task go on in the name of any of those who wait, if there are any.
func (q *question) workFor(task *budget.Task) {
	if user := q.take(); user != "" {
		task.For(user)
	}
}

// tell shows the answer, and how the store stands, and wakes those for whom it may be another. Before is since when it was what was shown
// last; pays, whether it is what is owed.
func (q *question) tell(task *budget.Task, before stream.Revision, now standing, pays bool) {
	shown, stood := q.view.Load(), q.standing
	q.standing = now
	q.show()
	told := pays && len(q.owed) > 0
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

// standing is what readers tell of the store beside what it has.
type standing struct {
	upstream cache.Upstream
	gone     bool
}

func standingOf(store *cache.Store) standing { return standing{store.Upstream(), store.Err() != nil} }

func (s standing) same(as standing) bool {
	return s.gone == as.gone && s.upstream.Live == as.upstream.Live && s.upstream.Since.Equal(as.upstream.Since)
}

// show publishes the answer as it is now.
func (q *question) show() {
	q.number++
	view := &View{Moment: Moment{q.now, q.changed, q.all, q.number, q.cursor}, At: q.at, Upstream: q.standing.upstream}
	size := int64(questionBytes)
	if q.tally != nil {
		view.Tally = q.tally.Copy()
		size += q.tally.Size()
	} else {
		view.Ranking = q.ranking.Copy()
		size += q.ranking.Size()
	}
	q.view.Store(view)
	if before := q.bytes.Swap(size); before == 0 {
		q.payment.Load().charge.Set(size) // from then on it is measured
	}
}

// questionBytes is what a question occupies beside its answer.
const questionBytes = 8 << 10

// apply brings an event into the answer, and reports whether that changed it.
func (q *question) apply(event *cache.Event) bool {
	o := event.Object
	if !q.Part.Visible.Sees(o) || q.Part.Namespace != "" && o.GetNamespace() != q.Part.Namespace || q.Part.Name != "" && o.GetName() != q.Part.Name {
		return false
	}
	is := event.Type != stream.Deleted && (q.match == nil || q.match(o))
	if q.tally == nil {
		if is {
			q.ranking.Put(o)
			return true
		}
		return q.ranking.Remove(o)
	}
	was := event.Old != nil && (q.match == nil || q.match(event.Old))
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

// refresh asks for a view that is made from now on. The channel is closed once it is there, or will never be.
func (q *question) refresh() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		over := make(chan struct{})
		close(over)
		return over
	}
	if q.asked == nil {
		q.asked = make(chan struct{})
		q.bell.Wake()
	}
	return q.asked
}

// take takes over what was asked for until now, and returns in whose name to work: any of those who wait. In the name of
// one alone, whose other work is endless, all of them would wait for that. It is "" if nobody waits.
func (q *question) take() (user string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked != nil {
		q.owed = append(q.owed, q.asked)
		q.asked, q.due = nil, q.store.Topic().Head().Place()
	}
	for r := range q.waiting { // begins at any of them, though not at all equally often
		return r.user
	}
	return ""
}

// pay says that what was taken over is there, or will never be.
func (q *question) pay() {
	for _, asked := range q.owed {
		close(asked)
	}
	q.owed = nil
}

// wake wakes some of those who wait.
func (q *question) wake(whom func(awaited) bool) {
	var wake []stream.Waiter
	q.mu.Lock()
	for r, a := range q.waiting {
		if whom(a) {
			wake = append(wake, a.waiter)
			delete(q.waiting, r)
			q.left(a.window)
		}
	}
	q.mu.Unlock()
	for _, w := range wake {
		w.Wake()
	}
}

// end says that there is no answer any more, and ends the goroutine.
func (q *question) end(err error) {
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
