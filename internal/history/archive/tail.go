package archive

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/store"
	"github.com/kubecast/kubecast/internal/stream"
)

// Errors of Tail.Next, beside ErrAway.
var (
	// ErrBehind means that what follows a number is not in memory: Archive.After reads it from the database.
	ErrBehind = errors.New("this is further back than the end of the log")
	// ErrAhead means that the log ends before a number. From Tail.Next it may come because another replica knew more, and
	// pass within a moment. From Archive.After it says that the log is another one, or that the database was restored.
	ErrAhead = errors.New("the log does not reach so far")
	// ErrExpired means that some of what follows a number has been removed, since it was kept for long enough.
	ErrExpired = errors.New("some of it is not kept any more")
)

const (
	// pollEach is how often the database is asked what other replicas have written. Recorders of this replica say it
	// themselves.
	pollEach = 250 * time.Millisecond
	// tailLength is how many transitions are in memory. A reader that is further behind asks the database itself.
	tailLength = 1024
	// awayAfter is for how long the database may fail before readers are told.
	awayAfter = 3 * time.Second
)

// Entry is a transition of a log's end.
type Entry struct {
	*history.Transition
	plain, sealed form
}

// form is one of the forms in which readers are told an entry.
type form struct {
	once sync.Once
	text string
}

// Text is the transition in the form in which readers are told it: all those who see its number, or all those for whom that is sealed. Each is made once.
func (e *Entry) Text(sealed bool, make func(*history.Transition) string) string {
	f := &e.plain
	if sealed {
		f = &e.sealed
	}
	f.once.Do(func() { f.text = make(e.Transition) })
	return f.text
}

// tails are the tails that somebody reads.
type tails struct {
	mu      sync.Mutex
	byName  map[store.LogName]*Tail
	reading sync.WaitGroup
}

// close ends all tails, even if somebody still reads them.
func (all *tails) close() {
	all.mu.Lock()
	for _, t := range all.byName {
		t.stop()
	}
	all.mu.Unlock()
	all.reading.Wait()
}

// followed says how many readers follow a log, and for how long its end has not been known.
type followed struct {
	readers int
	age     time.Duration
}

// followed returns that by cluster and kind.
func (all *tails) followed() map[[2]string]followed {
	all.mu.Lock()
	defer all.mu.Unlock()
	found := map[[2]string]followed{}
	for _, t := range all.byName {
		t.mu.Lock()
		age := time.Since(t.current)
		t.mu.Unlock()
		of := [2]string{t.cluster, t.name.Resource}
		f := found[of] // a cluster that is being replaced has two tails
		found[of] = followed{f.readers + t.readers, max(f.age, age)}
	}
	return found
}

// Tail is the end of a log, which grows. It is followed once for all its readers: however many there are, the database
// gets one question from time to time. Its methods may be called concurrently.
type Tail struct {
	archive *Archive
	name    store.LogName
	cluster string // the cluster's name for people
	nudged  *stream.Bell
	stop    context.CancelFunc
	readers int           // guarded by tails.mu
	known   chan struct{} // closed once the database has answered
	source  source        // of the tail's own goroutine

	mu      sync.Mutex
	entries []*Entry       // in order and without gaps, the last of them with the number head
	head    uint64         // the last number of the log
	asked   bool           // the database has answered at least once
	current time.Time      // when the end of the log was last known; before that, when the tail began
	failing time.Time      // since when questions have failed; zero: they do not fail
	err     error          // why readers cannot be told what there is; nil: they can
	up      cache.Upstream // of what the log is recorded from
	waiting map[stream.Waiter]struct{}
	asking  map[stream.Waiter]struct{} // these wait for the next answer, whatever it is
}

// following is the database in the name of all tails.
func (a *Archive) following() *store.Store { return a.database.For(store.System("tails")) }

// Follow returns the tail of a kind's log for one more reader, which must call Leave. An error is the cluster's, or the
// context's.
func (a *Archive) Follow(ctx context.Context, c *cluster.Cluster, kind string) (*Tail, error) {
	identity, err := c.Identity(ctx)
	if err != nil {
		return nil, err
	}
	name := store.LogName{Cluster: identity, Resource: kind}
	a.tails.mu.Lock()
	defer a.tails.mu.Unlock()
	t := a.tails.byName[name]
	if t == nil {
		ctx, stop := context.WithCancel(context.Background())
		t = &Tail{
			archive: a, name: name, cluster: c.Name(), nudged: stream.NewBell(), stop: stop, known: make(chan struct{}), current: time.Now(),
			waiting: map[stream.Waiter]struct{}{}, asking: map[stream.Waiter]struct{}{}, source: source{archive: a, cluster: c, kind: kind},
		}
		a.tails.byName[name] = t
		a.tails.reading.Go(func() { t.run(ctx) })
	}
	t.readers++
	return t, nil
}

// Leave records that a reader has left. It is not woken any more.
func (t *Tail) Leave(w stream.Waiter) {
	t.mu.Lock()
	delete(t.waiting, w)
	delete(t.asking, w)
	t.mu.Unlock()
	all := &t.archive.tails
	all.mu.Lock()
	defer all.mu.Unlock()
	if t.readers--; t.readers == 0 {
		delete(all.byName, t.name)
		t.stop()
	}
}

// wrote records that a recorder of this replica has written to a log.
func (a *Archive) wrote(name store.LogName) {
	if a.opts.Wrote != nil {
		a.opts.Wrote()
	}
	a.tails.mu.Lock()
	defer a.tails.mu.Unlock()
	if t := a.tails.byName[name]; t != nil {
		t.nudged.Wake()
	}
}

// Ready waits until it is known how far the log reaches. The error is ErrAway, or of the context.
func (t *Tail) Ready(ctx context.Context) error {
	select {
	case <-t.known:
	case <-ctx.Done():
		return ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Holds reports whether all that follows a number is in memory.
func (t *Tail) Holds(after uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return after <= t.head && t.head-after <= uint64(len(t.entries))
}

// Await makes the tail ask the database at once, and wakes the waiter when the database has answered.
func (t *Tail) Await(w stream.Waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asking[w] = struct{}{}
	t.nudged.Wake()
}

// Next is what follows a number, at most so many transitions. If nothing follows, the waiter is woken once, when there
// is something to do.
func (t *Tail) Next(after uint64, most int, w stream.Waiter) ([]*Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	behind := t.head - after
	switch {
	case after > t.head:
		return nil, ErrAhead
	case behind > uint64(len(t.entries)):
		return nil, ErrBehind
	case behind > 0:
		next := t.entries[uint64(len(t.entries))-behind:]
		return next[:min(len(next), most)], nil
	}
	if t.err != nil {
		return nil, t.err
	}
	t.waiting[w] = struct{}{}
	return nil, nil
}

// Upstream is how the kind's watch stands from which the log is recorded. Whoever waits after Next is woken when that changes.
func (t *Tail) Upstream() cache.Upstream {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.up
}

// run follows the log until the context ends.
func (t *Tail) run(ctx context.Context) {
	poll := time.NewTimer(0)
	defer poll.Stop()
	for first := true; ; first = false {
		wait := pollEach
		if !t.ask(ctx) {
			wait = awayAfter / 3
		}
		if first {
			close(t.known)
		}
		poll.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		case <-t.nudged.C:
		}
	}
}

// ask asks the database what is new, and wakes the readers that have something to do. It reports false if there was no
// answer.
func (t *Tail) ask(ctx context.Context) bool {
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, awayAfter)
	defer cancel()
	t.mu.Lock()
	head, first := t.head, !t.asked
	t.mu.Unlock()
	up := t.source.upstream() // before the log is read: who is told live is to find there what was recorded until then
	log, found, err := t.read(within, head, first)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		t.archive.metrics.Failed(ctx, err)
	}
	for _, w := range t.answered(began, log, found, err, up) {
		w.Wake()
	}
	return err == nil
}

// read reads how far the log reaches, and what of it follows a number. The first time it reads only how far: what was
// there before is left to readers that want it.
func (t *Tail) read(ctx context.Context, head uint64, first bool) (log store.Log, found []*history.Transition, err error) {
	select {
	case <-t.archive.ready:
	default:
		return log, nil, errNotReady
	}
	log, err = t.archive.following().Find(ctx, t.name)
	if errors.Is(err, store.ErrNoLog) {
		return store.Log{}, nil, nil
	}
	if err != nil || first || log.Seq <= head {
		return log, nil, err
	}
	found, err = t.archive.following().TransitionsAfter(ctx, log, store.Filter{}, head, head+tailLength, tailLength)
	return log, found, err
}

// answered takes an answer, and returns the waiters that are to be woken.
func (t *Tail) answered(began time.Time, log store.Log, found []*history.Transition, err error, up cache.Upstream) (woken []stream.Waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, could, live := t.head, t.err == nil, t.up.Live
	t.up = up
	switch {
	case err == nil:
		t.extend(log, found)
		t.asked, t.current, t.failing, t.err = true, began, time.Time{}, nil
	case t.failing.IsZero():
		t.failing = began
		fallthrough
	default:
		if !t.asked || time.Since(t.failing) >= awayAfter { // a shorter failure is nothing that readers need to know
			t.err = errors.Join(ErrAway, err)
		}
	}
	for w := range t.asking {
		woken = append(woken, w)
	}
	clear(t.asking)
	if t.head == before && could == (t.err == nil) && live == up.Live {
		return woken
	}
	for w := range t.waiting {
		woken = append(woken, w)
	}
	clear(t.waiting)
	return woken
}

// extend takes what was found behind the head. If something in between is not kept any more, only what follows it stays
// in memory. Readers then ask the database, and find out. The caller holds the lock.
func (t *Tail) extend(log store.Log, found []*history.Transition) {
	if log.Seq < t.head { // the database was restored
		t.entries, t.head = nil, log.Seq
		return
	}
	for _, tr := range found {
		if tr.Seq != t.head+1 {
			t.entries = nil
		}
		t.entries, t.head = append(t.entries, &Entry{Transition: tr}), tr.Seq
	}
	switch {
	case len(found) == tailLength: // there may be more
		t.nudged.Wake()
	case t.head < log.Seq:
		t.entries, t.head = nil, log.Seq
	}
	if over := len(t.entries) - tailLength; over > 0 {
		t.entries = append([]*Entry(nil), t.entries[over:]...) // a copy, since readers still use the old slice
	}
}
