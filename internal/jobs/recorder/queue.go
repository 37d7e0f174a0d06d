package recorder

import (
	"context"
	"fmt"
	"time"

	"github.com/kubecast/kubecast/internal/jobs/store"
)

// While the database works on one transaction, the recorder reads on. What it reads meanwhile waits
// in a queue, and is written together: the slower the database, the more at a time.

// mostQueued is how many transitions, or runs, may wait for the database. With its job, each takes
// about 1 KB of memory, and a spec that is kept counts as several if it is large. Once there are
// more, the recorder reads no further.
const mostQueued = 8192

// queue is what a term has read and not written yet.
type queue struct {
	waiting  []*batch
	weight   int          // of those that wait
	inFlight chan written // tells the end of the transaction that is under way; nil: there is none
	broken   bool         // a transaction failed, so those that wait have nothing to follow on
}

// written is how a transaction ended.
type written struct {
	of    *batch
	kept  []store.Kept
	at    store.Log
	err   error
	began time.Time
}

// write puts what was read up to r.read at the end of the queue. It waits if there is too much, and
// returns the error of an earlier transaction.
func (r *Recorder) write(ctx context.Context, b *batch) error {
	if b.isEmpty() {
		return nil
	}
	r.status.writes()
	if err := r.place(ctx, b); err != nil {
		return err
	}
	if err := r.findOwners(ctx, b); err != nil {
		return err
	}
	if err := r.findParents(ctx, b); err != nil {
		return err
	}
	if err := r.findCauses(ctx, b); err != nil {
		return err
	}
	if err := r.placeRuns(ctx, b); err != nil {
		return err
	}
	b.to = r.read
	q := &r.queue
	if last := len(q.waiting) - 1; last >= 0 && q.waiting[last].weight()+b.weight() <= batchSize {
		q.weight -= q.waiting[last].weight()
		q.waiting[last].add(b)
		q.weight += q.waiting[last].weight()
	} else {
		q.waiting = append(q.waiting, b)
		q.weight += b.weight()
	}
	r.startWrite(ctx)
	for q.weight > mostQueued {
		if err := r.awaitWrite(); err != nil {
			return err
		}
		r.startWrite(ctx)
	}
	return nil
}

// startWrite begins the next transaction, if there is something to write and no transaction is under
// way. The term waits for its end (see abort).
func (r *Recorder) startWrite(ctx context.Context) {
	q := &r.queue
	if q.inFlight != nil || len(q.waiting) == 0 || q.broken {
		return
	}
	b, at := q.waiting[0], r.at
	q.waiting[0], q.waiting = nil, q.waiting[1:]
	q.weight -= b.weight()
	inFlight := make(chan written, 1)
	q.inFlight = inFlight
	go func() {
		w := written{of: b, kept: b.keeps(), began: time.Now()}
		w.at, w.err = r.opts.Database.Write(ctx, at, store.Batch{To: b.to, Transitions: b.transitions, Jobs: b.jobs(), After: b.after, Causes: b.causes, Runs: b.runs, Gone: b.gone, Kept: w.kept})
		inFlight <- w
	}()
}

// awaitWrite waits for the end of the transaction that is under way. Afterwards r.at is where the log stands.
func (r *Recorder) awaitWrite() error {
	if r.queue.inFlight == nil {
		return nil
	}
	return r.wrote(<-r.queue.inFlight)
}

// wrote is called with the end of each transaction, exactly once.
func (r *Recorder) wrote(w written) error {
	r.queue.inFlight = nil
	if w.err != nil {
		r.queue.broken = true
		return fmt.Errorf("record: %w", w.err) // the text is the same for each attempt, so that it is logged once
	}
	r.opts.Metrics.wrote(r.opts.Cluster.Name(), r.name.Resource, w.of, time.Since(w.began))
	r.wroteSpecs(w.kept)
	r.at = w.at
	r.ended(w.of)
	r.ending(w.of)
	if r.opts.Wrote != nil && w.of.changes() > 0 {
		r.opts.Wrote(r.name)
	}
	return nil
}

// flush waits until all that was read is written, unless a transaction has failed.
func (r *Recorder) flush(ctx context.Context) error {
	for {
		r.startWrite(ctx)
		if r.queue.inFlight == nil {
			return nil
		}
		if err := r.awaitWrite(); err != nil {
			return err
		}
	}
}

// abort ends a term whose context has ended: what waits is forgotten, since it will be read again.
func (r *Recorder) abort() {
	if r.queue.inFlight != nil {
		<-r.queue.inFlight
	}
	r.queue = queue{}
}
