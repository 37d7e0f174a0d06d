package webhook

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/outbox"
)

// times are how long things take that tests want to be shorter.
type times struct {
	lease time.Duration // it is renewed three times within this
	poll  time.Duration // how often the database is asked what is due, and by others whether the lease is free
	grace time.Duration // how long attempts may go on when a term ends
}

var usual = times{lease: 5 * time.Second, poll: 500 * time.Millisecond, grace: 2 * time.Second}

const (
	// knownMost is about how many jobs with messages are in memory, and leastShare how many of each
	// namespace at least; the others are read when these are fewer.
	knownMost  = 1000
	leastShare = 16
	// namespacesAtOnce is of how many namespaces it is read at once what is due.
	namespacesAtOnce = 32
	// refill is how soon it is read again what there is, if there is more.
	refill = 20 * time.Millisecond
)

// run sends to a target whenever nobody else does.
func (t *target) run(ctx context.Context, store *outbox.Store, batcher *batcher, renewer *leaseRenewer) {
	defer close(t.ended)
	defer t.client.CloseIdleConnections()
	if t.after != nil { // it has the lease in the same holder's name
		<-t.after.ended
		t.after = nil
	}
	var news backoff.News
	for ctx.Err() == nil {
		began, err := t.begin(ctx, store, batcher, renewer)
		if began {
			news.Over()
		}
		if err != nil && !errors.Is(err, outbox.ErrHeld) && ctx.Err() == nil && news.Is(err) {
			t.log.Warn("nothing is sent to a webhook for now", "error", err)
		}
		backoff.Pause(ctx, jittered(t.times.poll))
	}
}

// begin sends for as long as this replica has the lease. It reports whether it had it at all.
func (t *target) begin(ctx context.Context, store *outbox.Store, batcher *batcher, renewer *leaseRenewer) (began bool, err error) {
	holder := renewer.holder
	within, cancel := context.WithTimeout(ctx, t.times.lease)
	defer cancel()
	state, err := store.State(within, t.Name)
	if err != nil {
		return false, err
	}
	if state.Held && state.Holder != holder {
		return false, outbox.ErrHeld
	}
	if state, err = store.Take(within, t.Name, t.url, holder, t.times.lease); err != nil {
		return false, err
	}
	t.mu.Lock()
	t.sending, t.counted, t.change, t.unsaved = true, false, state.Switch, false
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.sending = false
	}()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[outbox.OrderingKey](100*time.Millisecond, 10*time.Second)
	of := &term{
		target: t, store: store, holder: holder, renewer: renewer,
		batcher: batcher, rotation: newRotation(), places: map[string]outbox.MessageKey{},
	}
	of.queue = workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[outbox.OrderingKey]{
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[outbox.OrderingKey]{
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[outbox.OrderingKey]{Queue: of.rotation}),
		}),
	})
	t.log.Info("this replica sends to a webhook")
	err = of.run(ctx)
	return true, err
}

// term is the time for which this replica has the lease of a target.
type term struct {
	*target
	store    *outbox.Store
	holder   string
	renewer  *leaseRenewer
	queue    workqueue.TypedRateLimitingInterface[outbox.OrderingKey]
	batcher  *batcher
	rotation *rotation // what waits in the queue
	failing  bool      // guarded by target.mu

	// Of feed alone.
	after  string                       // the namespace that was read last; "": the next is the first
	places map[string]outbox.MessageKey // where to go on in a namespace
}

// run sends until the lease is lost, which is the error, or the context ends.
func (t *term) run(ctx context.Context) (err error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	t.renewer.add(t, end)
	defer t.renewer.remove(t)
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var around, workers sync.WaitGroup
	around.Go(func() { t.feed(ctx) })
	around.Go(func() { t.count(ctx) })
	for range t.Concurrency {
		workers.Go(func() { t.work(ctx, sending) })
	}
	<-ctx.Done()
	t.queue.ShutDown()
	grace := time.AfterFunc(t.times.grace, stop)
	workers.Wait()
	grace.Stop()
	around.Wait()
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.times.grace)
	defer cancel()
	err = t.store.Release(releasing, t.Name, t.holder)
	if lost := context.Cause(ctx); !errors.Is(lost, context.Canceled) {
		return lost
	}
	return err
}

// rests reports whether the target is off, or wants to be left alone.
func (t *target) rests() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.change.Off != 0 || t.change.Hold > now()
}

// feed puts the jobs that have something to be sent into the queue.
func (t *term) feed(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wakes.C:
		case <-timer.C:
		}
		wait := t.times.poll
		if !t.rests() {
			more, err := t.fill(ctx)
			if more {
				wait = refill
			}
			if failed++; err == nil {
				failed = 0
			} else if ctx.Err() == nil {
				if failed == 1 {
					t.log.Warn("reading due messages failed", "error", err)
				}
				wait = min(time.Duration(failed)*time.Second, 5*time.Second)
			}
		}
		timer.Reset(wait)
	}
}

// fill reads of some namespaces what is due; more says that there may be more than was read.
func (t *term) fill(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.times.lease)
	defer cancel()
	if t.Digest > 0 {
		m, err := t.store.Oldest(ctx, t.Name, outbox.Digests)
		ready := m != nil && m.Due <= now()
		if err == nil && m == nil { // one after the other: what comes meanwhile is of the next
			ready, err = t.store.Compose(ctx, t.Name, now())
		}
		if ready {
			t.queue.Add(outbox.Digests)
		}
		return false, err
	}
	names, err := t.store.Namespaces(ctx, t.Name, t.after, namespacesAtOnce)
	if err != nil {
		return false, err
	}
	if t.after == "" {
		names = append([]string{""}, names...)
	}
	if t.after = ""; len(names) >= namespacesAtOnce {
		t.after, more = names[len(names)-1], true
	}
	for _, namespace := range names {
		share, waiting := t.rotation.share(namespace)
		if waiting >= share/2 {
			more = true
			continue
		}
		jobs, next, err := t.store.Due(ctx, t.Name, namespace, now(), t.places[namespace], share)
		if err != nil {
			return false, err
		}
		for _, job := range jobs {
			t.rotation.belongs(job, namespace)
			t.queue.Add(job)
		}
		if delete(t.places, namespace); next != (outbox.MessageKey{}) {
			t.places[namespace], more = next, true
		}
	}
	return more, nil
}

// work sends what jobs have, one after the other.
func (t *term) work(ctx, sending context.Context) {
	for {
		job, down := t.queue.Get()
		if down {
			return
		}
		t.serve(ctx, sending, job)
		t.queue.Done(job)
	}
}

// serve sends the oldest message of a job. If it is accepted, the job stands in line again for its next one.
func (t *term) serve(ctx, sending context.Context, job outbox.OrderingKey) {
	if ctx.Err() != nil || t.rests() {
		return // it is found again
	}
	m, err := t.next(ctx, job)
	if err != nil {
		t.queue.AddRateLimited(job)
		return
	}
	t.queue.Forget(job)
	if m != nil && t.deliver(ctx, sending, m) {
		t.queue.Add(job)
	}
}

// next is the message of a job that is to be sent now; nil: there is none.
func (t *term) next(ctx context.Context, job outbox.OrderingKey) (*outbox.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, t.times.lease)
	defer cancel()
	m, err := t.store.Oldest(ctx, t.Name, job)
	if err != nil || m == nil {
		return m, err
	}
	if m.Due > now() {
		return nil, t.store.Postpone(ctx, t.Name, m)
	}
	if err := t.store.Explain(ctx, m); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		t.log.Warn("why a job came to its state cannot be read; its message says what it said", "id", m.ID, "error", err) // rather than hold it back
	}
	return m, nil
}

// deliver makes an attempt, and records what became of it. It reports whether the message was accepted and is gone.
func (t *term) deliver(ctx, sending context.Context, m *outbox.Message) bool {
	event, err := eventOf(m)
	r := result{outcome: unmade}
	if err == nil {
		r = t.send(sending, m.ID, event)
	} else {
		r.answer = readable(err.Error())
	}
	if sending.Err() != nil && r.outcome != delivered {
		return false // broken off, which is not the target's fault
	}
	t.tell(m, r)
	at := time.Now()
	s := &sentResult{of: t.target, term: ctx, done: make(chan bool, 1), outcome: &outbox.AttemptResult{Target: t.Name, MessageKey: m.MessageKey, Attempts: m.Attempts + 1, Answer: r.answer}}
	switch r.outcome {
	case delivered:
		s.outcome.Delivered = true
		t.metrics.delay.WithLabelValues(t.Name).Observe(at.Sub(m.At.Std()).Seconds())
	case gone:
		s.outcome = nil // it waits until the target is switched on again
		s.changes = true
		t.set(outbox.Switch{Off: jobs.At(at), Reason: r.answer})
		t.log.Warn("a webhook is switched off, since it answers 410 Gone; another URL switches it on, or an operator (docs/notifications.md)")
	case held:
		until := jobs.At(at.Add(r.after))
		s.changes = true
		t.set(outbox.Switch{Hold: until})
		if s.outcome.Due = until; at.Sub(m.At.Std()) < uncounted {
			s.outcome.Attempts = m.Attempts
			break
		}
		fallthrough
	default:
		due, again := next(s.outcome.Attempts, at)
		s.outcome.Due, s.outcome.Dead = max(due, s.outcome.Due), !again
		if !again {
			t.log.Warn("a message is given up; it is a dead letter, which an operator can have sent again", "id", m.ID, "attempts", s.outcome.Attempts)
		}
	}
	return t.batcher.add(s) && r.outcome == delivered
}

// set changes whether and when anything is sent.
func (t *target) set(change outbox.Switch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.change.Off != 0 && change.Off == 0 {
		return // another attempt has found it gone
	}
	change.Hold = max(change.Hold, t.change.Hold)
	t.change, t.unsaved = change, true
	t.changed++
}

// tell remembers an answer, and logs when a target begins to fail, and when it no longer does.
func (t *term) tell(m *outbox.Message, r result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = outbox.LastAnswer{At: now(), Text: r.answer}
	fails := r.outcome != delivered
	if fails == t.failing {
		return
	}
	if t.failing = fails; fails {
		t.log.Warn("a webhook does not accept a message", "outcome", r.outcome, "id", m.ID)
	} else {
		t.log.Info("a webhook accepts messages again")
	}
}

// count counts the messages of the target from time to time, for metrics. The more there are, the longer this takes,
// and the less often it is done.
func (t *term) count(ctx context.Context) {
	const rest = 20
	for {
		began := time.Now()
		within, cancel := context.WithTimeout(ctx, time.Minute)
		counts, err := t.store.Counts(within, t.Name)
		cancel()
		if err == nil {
			t.mu.Lock()
			t.counts, t.counted = counts, true
			t.mu.Unlock()
		}
		if !backoff.Pause(ctx, max(t.times.lease, rest*time.Since(began))) {
			return
		}
	}
}
