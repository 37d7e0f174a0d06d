package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs/feed"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/stream"
)

// Errors of Tail.Next, beside ErrAway.
var (
	// ErrBehind means that what follows a number is not in memory: Service.After reads it from the database.
	ErrBehind = errors.New("this is further back than the end of the log")
	// ErrAhead means that the log ends before a number. From Tail.Next it may come because another
	// replica knew more, and pass within a moment. From Service.After it says that the log is
	// another one, or that the database was restored.
	ErrAhead = errors.New("the log does not reach so far")
	// ErrExpired means that some of what follows a number has been removed, since it was kept for long enough.
	ErrExpired = errors.New("some of it is not kept any more")
)

// tailLength is how many transitions are in memory. A reader that is further behind asks the database itself.
const tailLength = 1024

// TailRecord is a record of a log's end.
type TailRecord struct {
	LogRecord
	plain, sealed form
}

// form is one of the forms in which readers are told an entry.
type form struct {
	once sync.Once
	text string
}

// Text is the change in the form in which readers are told it: all those who see its number, or all
// those for whom that is sealed. Each is made once.
func (e *TailRecord) Text(sealed bool, make func(LogRecord) string) string {
	f := &e.plain
	if sealed {
		f = &e.sealed
	}
	f.once.Do(func() { f.text = make(e.LogRecord) })
	return f.text
}

// tails are the tails that somebody reads.
type tails struct {
	mu      sync.Mutex
	byName  map[tailName]*Tail
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
		of := [2]string{t.cluster, t.name.what.Numbering(t.name.Resource)}
		f := found[of] // a cluster that is being replaced has two tails
		found[of] = followed{f.readers + t.readers, max(f.age, age)}
	}
	return found
}

// tailName is what a tail is the end of.
type tailName struct {
	store.LogName
	what What
}

// Tail is the end of a log, which grows. It is followed once for all its readers: however many there are, the database
// gets one question from time to time. Its methods may be called concurrently.
type Tail struct {
	service *Service
	name    tailName
	cluster string // the cluster's name for people
	poller  feed.Poller
	stop    context.CancelFunc
	readers int           // guarded by tails.mu
	known   chan struct{} // closed once the database has answered
	source  source        // of the tail's own goroutine

	mu      sync.Mutex
	entries []*TailRecord // in order
	since   uint64        // behind this number, all that there is up to head is among the entries; of a run only its last change
	head    uint64        // the last number of the log
	asked   bool          // the database has answered at least once
	current time.Time     // when the end of the log was last known; before that, when the tail began
	outage  feed.Outage
	up      cache.Upstream // of what the log is recorded from
	waiting map[stream.Waiter]struct{}
	asking  map[stream.Waiter]struct{} // these wait for the next answer, whatever it is
}

// following is the database in the name of all tails.
func (a *Service) following() *store.Store { return a.database.For(store.System("tails")) }

// Follow returns the tail of one of a kind's logs for one more reader, which must call Leave. An
// error is the cluster's, or the context's.
func (a *Service) Follow(ctx context.Context, c *cluster.Cluster, kind string, what What) (*Tail, error) {
	identity, err := c.Identity(ctx)
	if err != nil {
		return nil, err
	}
	name := tailName{store.LogName{Cluster: identity, Resource: kind}, what}
	a.tails.mu.Lock()
	defer a.tails.mu.Unlock()
	t := a.tails.byName[name]
	if t == nil {
		ctx, stop := context.WithCancel(context.Background())
		t = &Tail{
			service: a, name: name, cluster: c.Name(), poller: feed.NewPoller(), stop: stop, known: make(chan struct{}), current: time.Now(),
			waiting: map[stream.Waiter]struct{}{}, asking: map[stream.Waiter]struct{}{}, source: source{service: a, cluster: c, log: what.Numbering(kind)},
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
	all := &t.service.tails
	all.mu.Lock()
	defer all.mu.Unlock()
	if t.readers--; t.readers == 0 {
		delete(all.byName, t.name)
		t.stop()
	}
}

// wrote records that a recorder of this replica has written to a log.
func (a *Service) wrote(name store.LogName) {
	if a.opts.Wrote != nil && name.Resource != store.RunsResource {
		a.opts.Wrote()
	}
	a.tails.mu.Lock()
	defer a.tails.mu.Unlock()
	for of, t := range a.tails.byName {
		if of.Cluster == name.Cluster && of.what.Numbering(of.Resource) == name.Resource {
			t.poller.Nudge()
		}
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
	return t.outage.Err()
}

// Holds reports whether all that follows a number is in memory.
func (t *Tail) Holds(after uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return after <= t.head && after >= t.since
}

// Await makes the tail ask the database at once, and wakes the waiter when the database has answered.
func (t *Tail) Await(w stream.Waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asking[w] = struct{}{}
	t.poller.Nudge()
}

// Next is what follows a number, at most so many changes. If nothing follows, the waiter is woken once, when there
// is something to do.
func (t *Tail) Next(after uint64, most int, w stream.Waiter) ([]*TailRecord, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case after > t.head:
		return nil, ErrAhead
	case after < t.since:
		return nil, ErrBehind
	}
	if next := t.entries[t.upTo(after):]; len(next) > 0 {
		return next[:min(len(next), most)], nil
	}
	if err := t.outage.Err(); err != nil {
		return nil, err
	}
	t.waiting[w] = struct{}{}
	return nil, nil
}

// Upstream is how the kind's watch stands from which the log is recorded. Whoever waits after Next
// is woken when that changes.
func (t *Tail) Upstream() cache.Upstream {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.up
}

// run follows the log until the context ends.
func (t *Tail) run(ctx context.Context) {
	once := sync.OnceFunc(func() { close(t.known) })
	t.poller.Run(ctx, func() bool { return true }, func(ctx context.Context) error {
		defer once()
		return t.ask(ctx)
	})
}

// ask asks the database what is new, and wakes the readers that have something to do.
func (t *Tail) ask(ctx context.Context) error {
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, feed.AwayAfter)
	defer cancel()
	t.mu.Lock()
	head, first := t.head, !t.asked
	t.mu.Unlock()
	up := t.source.upstream() // before the log is read: who is told live is to find there what was recorded until then
	log, found, err := t.read(within, head, first)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		t.service.metrics.Failed(ctx, err)
	}
	for _, w := range t.answered(began, log, found, err, up) {
		w.Wake()
	}
	return err
}

// read reads how far the log reaches, and what of it follows a number. The first time it reads only how far: what was
// there before is left to readers that want it.
func (t *Tail) read(ctx context.Context, head uint64, first bool) (log store.Log, found []LogRecord, err error) {
	select {
	case <-t.service.ready:
	default:
		return log, nil, errNotReady
	}
	database, what := t.service.following(), t.name.what
	of, err := database.Find(ctx, t.name.LogName)
	if errors.Is(err, store.ErrNoLog) {
		return store.Log{}, nil, nil
	}
	if err == nil {
		log, err = numbered(ctx, database, what, of)
	}
	if err != nil || first || log.Seq <= head {
		return log, nil, err
	}
	upTo := head + tailLength
	if what == Runs {
		upTo = log.Seq // most numbers may be of other kinds, or of earlier changes
	}
	if found, err = changesAfter(ctx, database, what, of, store.Filter{}, head, upTo, tailLength); err != nil || what == Transitions {
		return log, found, err
	}
	now, err := numbered(ctx, database, what, of) // afterwards: what was removed before it was read leaves no gap that can be seen
	log.Expired = now.Expired
	return log, found, err
}

// answered takes an answer, and returns the waiters that are to be woken.
func (t *Tail) answered(began time.Time, log store.Log, found []LogRecord, err error, up cache.Upstream) (woken []stream.Waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, live := t.head, t.up.Live
	t.up = up
	if err == nil {
		t.extend(log, found)
		t.asked, t.current = true, began
	} else {
		err = errors.Join(ErrAway, err)
	}
	changed := t.outage.Take(began, err, t.asked)
	for w := range t.asking {
		woken = append(woken, w)
	}
	clear(t.asking)
	if t.head == before && !changed && live == up.Live {
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
func (t *Tail) extend(log store.Log, found []LogRecord) {
	if log.Seq < t.head || !t.asked { // the database was restored, or this is the first answer
		t.entries, t.since, t.head = nil, log.Seq, log.Seq
		return
	}
	runs := t.name.what == Runs
	for _, c := range found {
		if !runs && c.Seq != t.head+1 {
			t.entries, t.since = nil, c.Seq-1
		}
		t.entries, t.head = append(t.entries, &TailRecord{LogRecord: c}), c.Seq
	}
	switch {
	case len(found) == tailLength: // there may be more
		t.poller.Nudge()
	case t.head < log.Seq && runs:
		t.head = log.Seq
	case t.head < log.Seq:
		t.entries, t.since, t.head = nil, log.Seq, log.Seq
	}
	drop := max(0, len(t.entries)-tailLength)
	if runs && log.Expired > t.since {
		t.since = min(log.Expired, t.head)
		drop = max(drop, t.upTo(t.since))
	}
	if drop > 0 {
		t.since = max(t.since, t.entries[drop-1].Seq)
		t.entries = append([]*TailRecord(nil), t.entries[drop:]...) // a copy, since readers still use the old slice
	}
}

// upTo is how many entries have numbers up to this one. The caller holds the lock.
func (t *Tail) upTo(seq uint64) int {
	n, _ := slices.BinarySearchFunc(t.entries, seq+1, func(e *TailRecord, seq uint64) int { return cmp.Compare(e.Seq, seq) })
	return n
}
