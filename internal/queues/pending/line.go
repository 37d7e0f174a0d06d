package pending

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

const (
	// pace is how often a queue is looked at anew at most.
	pace = 100 * time.Millisecond
	// paceShare is by how much longer than a snapshot took there is none. Where Kueue says the order, it is asked less often.
	paceShare = 10
	// settles is within what Kueue knows of a change as the gateway does: it watches the same objects, and
	// may be behind. So it is asked once more after that.
	settles = 300 * time.Millisecond
	// differs and differsMost are between what it is asked again while it says that others wait than the objects do.
	differs, differsMost = 250 * time.Millisecond, time.Minute
	// asksSoon is for how long it is waited until it may be asked again, before it is told what the objects say.
	asksSoon = 300 * time.Millisecond
	// mostTold is of how many jobs of a ClusterQueue it is found out whose they are, and when they start, and
	// mostOfOne of how many of each LocalQueue whose they are, wherever these stand.
	mostTold, mostOfOne = 1000, 100
)

// line is a queue that is followed, or the objects of all queues. Its goroutine makes the snapshots.
type line struct {
	board *board
	queue Queue
	life  context.Context
	stop  context.CancelFunc
	wakes *stream.WakeChannel
	ready chan struct{} // closed once there is a snapshot

	// Guarded by the registry's lock.
	readers int
	idle    *time.Timer // ends it; nil while it is read

	mu        sync.Mutex
	users     []string // of its readers, or the last who was one
	snapshot  *Snapshot
	waiting   map[*Reader]stream.Waiter
	changedAt time.Time // when the newest change came to be known
	objects   bool      // queues' own objects have changed since the newest snapshot
	left      bool      // a job has left since then
	stale     bool      // Kueue is to be asked again
	kinds     kinds
	owners    owners
	starts    *starts // has a lock of its own

	looking sync.WaitGroup // for kinds, owners, and when jobs start

	// The goroutine's own.
	order  cluster.PendingOrder
	err    error // why there is no order
	asks   bool  // Kueue is to be asked
	unlike *backoff.Backoff
}

// newLine makes a line. The caller holds the registry's lock.
func newLine(b *board, queue Queue) *line {
	l := &line{
		board: b, queue: queue, wakes: stream.NewWakeChannel(), ready: make(chan struct{}), waiting: map[*Reader]stream.Waiter{},
		changedAt: time.Now(), unlike: backoff.New(differs, differsMost),
	}
	l.life, l.stop = context.WithCancel(b.life)
	l.starts = b.registry.startsOf(b.kinds, queue, l.wakes.Wake)
	l.wakes.Wake()
	return l
}

// joins counts a reader more, and leaves one less.
func (l *line) joins(user string, isFirst bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isFirst {
		l.users = l.users[:0]
	}
	l.users = append(l.users, user)
}

func (l *line) leaves(user string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.users, user); i >= 0 && len(l.users) > 1 {
		l.users = slices.Delete(l.users, i, i+1)
	}
}

// payer is in whose turn it is asked for all: the reader who is there for longest.
func (l *line) payer() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.users[0]
}

// changed tells that something of the queue has changed.
func (l *line) changed(at time.Time, what change) {
	l.mu.Lock()
	l.changedAt, l.objects, l.left, l.stale = at, l.objects || what.objects, l.left || what.left, true
	l.mu.Unlock()
	l.wakes.Wake()
}

func (l *line) run(ctx context.Context) {
	defer l.end()
	defer l.looking.Wait()
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wakes.C:
		case <-due.C:
			l.asks = true
		}
		changedAt, stale, left := l.lastChange()
		l.asks = l.asks || stale
		if left && !l.order.Asked.IsZero() && l.err == nil {
			l.show(changedAt) // that moves up what stood behind, whatever Kueue says then
		}
		if wait := time.Until(l.order.Until); l.asks && 0 < wait && wait <= asksSoon {
			backoff.Pause(ctx, wait)
		}
		if l.asks && l.isKueues() && l.board.has() && !time.Now().Before(l.order.Until) {
			l.asks = false
			l.ask(ctx)
		}
		began := time.Now()
		alike := l.show(changedAt)
		took := time.Since(began)
		if wait, again := l.again(changedAt, alike); again {
			due.Reset(max(wait, pace))
		}
		backoff.Pause(ctx, max(pace, paceShare*took))
	}
}

// isKueues reports whether it is a ClusterQueue of Kueue that is followed, and so Kueue that says the order.
func (l *line) isKueues() bool { return l.queue.Name != "" && !l.queue.Volcano }

// lastChange is when the newest change came to be known, whether that was since it was looked last, and whether a job has left then.
func (l *line) lastChange() (at time.Time, stale, left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, stale, left = l.changedAt, l.stale, l.left
	l.stale, l.left = false, false
	return at, stale, left
}

// ask asks Kueue for its order. While the cluster is away, the newest one is kept.
func (l *line) ask(ctx context.Context) {
	order, err := l.board.kinds.Cluster().PendingWorkloads(ctx, l.queue.Name)
	switch {
	case ctx.Err() != nil:
	case err != nil && l.wasAsked() && l.board.kinds.Cluster().Away() != nil:
		l.order.Until = time.Now().Add(time.Second)
	case err != nil && order.Until.IsZero():
		l.order, l.err = cluster.PendingOrder{Until: time.Now().Add(time.Second)}, err
	default:
		l.order, l.err = order, err
	}
}

// wasAsked reports whether it is known what Kueue says, or that it does not say it.
func (l *line) wasAsked() bool { return !l.order.Asked.IsZero() || l.err != nil }

// again reports whether Kueue is to be asked again although nothing changes, and after what. That may be
// over by now: to make a snapshot may have taken longer.
func (l *line) again(changedAt time.Time, alike bool) (wait time.Duration, again bool) {
	switch {
	case !l.isKueues(), !l.board.has(): // that there are queues is a change
		return 0, false
	case l.asks, l.err != nil, l.order.Asked.IsZero():
		return time.Until(l.order.Until), true
	case l.order.Asked.Before(changedAt.Add(settles)):
		l.unlike.Reset()
		return max(time.Until(l.order.Until), time.Until(changedAt.Add(settles))), true
	case !alike:
		return l.unlike.Next(), true
	}
	return 0, false
}

// show makes a snapshot, and tells whoever waits, if it says something new. It reports whether Kueue
// says that those wait who do by the objects.
func (l *line) show(changedAt time.Time) (alike bool) {
	l.mu.Lock()
	objects := l.objects
	l.objects = false
	l.mu.Unlock()
	b := l.board
	b.mu.Lock()
	isKnown := b.known
	switch {
	case l.queue.Volcano:
		isKnown = b.volcano.known
	case l.queue == Queue{}:
		isKnown = b.hasList && b.volcano.hasList
	case b.local != nil: // the first snapshot is waited for, and must not say that nobody waits
		isKnown = isKnown && l.wasAsked()
	}
	if !isKnown {
		b.mu.Unlock()
		return false
	}
	var jobs []*Job
	var certain bool
	s := &Snapshot{At: changedAt, Local: b.local, Whole: b.whole, Volcano: b.volcano.queues, Upstream: b.upstream}
	if l.queue.Volcano || l.queue.Name == "" && !b.volcano.upstream.Live {
		s.Upstream = b.volcano.upstream
	}
	switch {
	case l.queue.Volcano:
		jobs, certain = b.volcano.waiting(l.queue.Name)
	case l.queue.Name != "" && b.local != nil:
		s.Places, alike = l.places()
	}
	b.mu.Unlock()
	switch {
	case l.queue.Volcano:
		s.Places = placesOf(jobs, certain)
	case l.err != nil:
		slices.SortFunc(s.Places, func(a, b Place) int { return a.Job.rank.Compare(b.Job.rank) })
	}
	l.lookUpKinds(s)
	l.lookUpOwners(s)
	l.expect(s)
	l.publish(s, objects)
	return alike
}

// places are who waits, in Kueue's order, without those that have left since it said so; where nobody says what the order is, in none, and
// without positions. The board's lock is held.
func (l *line) places() (places []Place, alike bool) {
	b := l.board
	if l.err != nil {
		for in, jobs := range b.queued {
			if b.clusterQueueOf(in) != l.queue.Name {
				continue
			}
			for of, j := range jobs {
				places = append(places, Place{Namespace: of.namespace, Name: of.name, Queue: in.name, Job: j})
			}
		}
		return places, true
	}
	found, ahead := 0, map[name]int{} // by LocalQueue: Kueue counts those of one name in several namespaces together
	places = make([]Place, 0, len(l.order.Pending))
	for _, p := range l.order.Pending {
		of, in := name{p.Namespace, p.Name}, name{p.Namespace, p.LocalQueue}
		job := b.jobs[of]
		if job == nil && b.hasLeft(of) {
			continue
		}
		ahead[in]++
		if job != nil && job.Queue == p.LocalQueue {
			found++
		}
		places = append(places, Place{Namespace: p.Namespace, Name: p.Name, Queue: p.LocalQueue, Job: job, Local: ahead[in], Whole: len(places) + 1})
	}
	wait := 0
	for in, jobs := range b.queued {
		if b.clusterQueueOf(in) == l.queue.Name {
			wait += len(jobs)
		}
	}
	return places, found == len(l.order.Pending) && wait == found
}

// publish makes a snapshot the newest, if it says something new, and wakes whoever waits for one.
func (l *line) publish(s *Snapshot, objects bool) {
	l.mu.Lock()
	before := l.snapshot
	if before != nil && !objects && s.says(before) {
		l.mu.Unlock()
		return
	}
	if s.Number = 1; before != nil {
		s.Number = before.Number + 1
	} else {
		close(l.ready)
	}
	l.snapshot = s
	l.mu.Unlock()
	l.wakeAll()
}

func (l *line) wakeAll() {
	l.mu.Lock()
	waiters := make([]stream.Waiter, 0, len(l.waiting))
	for r, w := range l.waiting {
		waiters = append(waiters, w)
		delete(l.waiting, r)
	}
	l.mu.Unlock()
	for _, w := range waiters {
		w.Wake()
	}
}

// end tells whoever waits that there is nothing more.
func (l *line) end() {
	l.stop()
	l.wakeAll()
}
