package recorder

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/owners"
	"github.com/kubecast/kubecast/internal/jobs/reasons"
	"github.com/kubecast/kubecast/internal/jobs/rules"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/stream"
)

// Database is what a recorder needs of a store.Store.
type Database interface {
	Take(ctx context.Context, name store.LogName, people, holder string, lease time.Duration) (store.Log, error)
	Release(ctx context.Context, name store.LogName, holder string) error
	Living(ctx context.Context, log store.Log) ([]*jobs.Job, error)
	LivingRuns(ctx context.Context, pods store.Log) ([]*store.Run, error)
	JobsOf(ctx context.Context, cluster string, wanted map[string][]string) (map[jobs.Ref]store.OwningJob, error)
	TransitionsAfter(ctx context.Context, log store.Log, f store.Filter, after, upTo uint64, limit int) ([]*jobs.Transition, error)
	RunsOfJobs(ctx context.Context, log store.Log, uids []string) (map[string][]*jobs.Run, error)
	Write(ctx context.Context, log store.Log, b store.Batch) (store.Log, error)
	Began(ctx context.Context, pods store.Log, at jobs.Time) error
}

// Expiring is what the removal of old jobs needs of a store.Store.
type Expiring interface {
	Expire(ctx context.Context, log store.Log, before jobs.Time, limit int) (store.Removed, error)
}

// Options say what is recorded, and where.
type Options struct {
	Database Database
	Expiring Expiring // the same database, in the name of what removes old jobs; nil: nothing is removed
	Cluster  *cluster.Cluster
	Store    *cache.Store        // of the kind; in use for as long as the recorder runs
	Rule     *rules.Rule         // nil: the kind is pods, and what is recorded are the lives of those that belong to jobs
	Waits    *reasons.Watch      // of the cluster; nil: nobody says why jobs wait; pods need it
	Owners   *owners.Finder      // of the cluster; nil: jobs name their owners themselves
	Holder   string              // the name of this recorder, unique among all that share the database
	Keep     time.Duration       // how long after its deletion a job is kept; 0: for ever
	KeepSpec bool                // whether the spec of each job is kept at its end
	Ended    EndedFunc           // may be nil
	Ending   EndingFunc          // of a recorder of pods; may be nil
	Wrote    func(store.LogName) // is called after each transaction that wrote transitions, and must not wait; may be nil
	Metrics  *Metrics            // may be nil
	Log      *slog.Logger
}

// EndedFunc is told of jobs of a log that have come to an end, after that was written. Again says
// that they may have been told before, by a recorder that was killed a moment later. It must not
// wait. Notifications and webhooks do not depend on it: they are written with the transition (see
// store.Writer).
type EndedFunc func(log store.Log, jobList []*jobs.Job, again bool)

// EndingFunc is told of pods of jobs, in the log of pods, that have ended without completing or are
// to be deleted, after that was written; again is as EndedFunc's. It must not wait.
type EndingFunc func(log store.Log, pods []*store.Run, again bool)

const (
	// lease is how long after its last sign of life a recorder is replaced by another one.
	lease = 10 * time.Second
	// renewal is how often the lease is renewed. The position is then saved even if nothing was written.
	renewal = 3 * time.Second
	// leastWait and mostWait bound the wait after an error.
	leastWait, mostWait = time.Second, 15 * time.Second
	// batchSize is how many events are read at once. If one revision has more events, all of these are read.
	batchSize = 512
)

// Recorder records one log. Run is for one goroutine.
type Recorder struct {
	opts Options
	name store.LogName
	log  *slog.Logger

	resource string // of the log
	status   status

	rewritten  bool            // versions went back, so the position is one of another history
	expireNext time.Time       // when the next removal of old jobs is due; of the goroutine that removes
	placeNext  time.Time       // when it may be asked again which namespaces live
	placeTold  string          // the last reason why it could not
	overTold   map[string]bool // namespaces of which it was logged that they have used up their budgets

	// Of one term.
	at         store.Log            // the position in the database
	from       uint64               // the version of that position when the term began
	read       uint64               // everything up to this version has been read
	checked    bool                 // the jobs have been compared with the objects
	living     map[string]*jobs.Job // by uid
	lives      *podLives            // of a recorder of pods; nil of others
	waits      *waits               // nil: nobody says why jobs wait
	progresses *progresses
	reviews    *reviews // of transitions to states that have a cause, of which more may become known
	queue      queue    // what was read and is not written yet
	cursor     *cache.Cursor
	wakes      *stream.WakeChannel
}

// New makes a recorder.
func New(opts Options) *Recorder {
	opts.Database = counted{opts.Database, opts.Metrics}
	r := &Recorder{
		opts: opts, log: opts.Log.With("cluster", opts.Cluster.Name(), "kind", opts.Store.Kind().String()), wakes: stream.NewWakeChannel(), overTold: map[string]bool{},
	}
	if r.resource = opts.Store.Kind().String(); opts.Rule == nil {
		r.resource = store.RunsResource
	}
	now := time.Now()
	r.status.now = Status{Phase: Waiting, Since: now, Caught: now, Behind: true}
	return r
}

// Status may be called at any time.
func (r *Recorder) Status() Status { return r.status.get() }

// Cluster is the name of the cluster.
func (r *Recorder) Cluster() string { return r.opts.Cluster.Name() }

// Resource is that of the log: the kind, or store.RunsResource.
func (r *Recorder) Resource() string { return r.resource }

// Store is the store of the kind that is recorded.
func (r *Recorder) Store() *cache.Store { return r.opts.Store }

// Run records until the context ends, or the kind is no longer served.
func (r *Recorder) Run(ctx context.Context) error {
	retry, news := backoff.New(leastWait, mostWait), backoff.News{}
	for {
		began, wait := time.Now(), renewal
		err := r.serveTerm(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, cache.ErrNotServed):
			return err
		case errors.Is(err, stream.ErrEpoch):
			r.rewritten = true
			continue
		case errors.Is(err, store.ErrHeld):
			r.status.become(Standby, nil)
		default:
			r.status.become(Waiting, err)
			if time.Since(began) > mostWait { // the term had worked before it failed
				retry.Reset()
				news.Over()
			}
			wait = retry.Next()
			if news.Is(err) {
				r.log.Warn("history is not recorded for now", "error", store.Named(err))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.opts.Store.Gone():
			return r.opts.Store.Err()
		case <-time.After(wait):
		}
	}
}

// serveTerm takes the log and records until something goes wrong.
func (r *Recorder) serveTerm(ctx context.Context) error {
	r.cursor, r.living, r.checked = nil, nil, false
	if err := r.opts.Store.WaitSynced(ctx); err != nil {
		return err
	}
	identity, err := r.opts.Cluster.Identity(ctx)
	if err != nil {
		return err
	}
	r.name = store.LogName{Cluster: identity, Resource: r.resource}
	if r.at, err = r.take(ctx); err != nil {
		return err
	}
	defer r.release(ctx)
	if err := r.begin(ctx); err != nil {
		return err
	}
	r.endedLately()
	r.endingStill()
	r.listen()
	defer r.unlisten()
	r.from, r.read = r.at.Version, r.at.Version
	ctx, cancel := context.WithCancel(ctx)
	defer r.abort()
	var removing sync.WaitGroup
	defer removing.Wait()
	defer cancel()
	if err := r.resume(ctx); err != nil {
		return err
	}
	defer func() { r.cursor.Disarm() }()
	r.status.become(Recording, nil)
	r.log.Info("history is recorded", "version", r.at.Version, "seq", r.at.Seq, "living", r.known())
	log := r.at
	removing.Go(func() { r.expire(ctx, log) })
	err = r.follow(ctx)
	// What was read is written, even if reading fails: nobody may be able to read it again.
	return errors.Join(err, r.flush(ctx))
}

// begin reads what is known of what is in the cluster.
func (r *Recorder) begin(ctx context.Context) error {
	if r.resource == store.RunsResource {
		return r.beginLives(ctx)
	}
	jobList, err := r.opts.Database.Living(ctx, r.at)
	if err != nil {
		return err
	}
	r.living, r.progresses = make(map[string]*jobs.Job, len(jobList)), newProgresses()
	r.reviews = newReviews()
	for _, job := range jobList {
		r.living[job.UID] = job
		r.reviewAgain(job)
	}
	if err := r.reviewLeft(ctx); err != nil {
		return err
	}
	return r.settle(ctx)
}

// settle waits for a while until it is known what controls what: else it would not be known of what
// the jobs are parts that have ended before a first start.
func (r *Recorder) settle(ctx context.Context) error {
	if r.opts.Waits == nil {
		return nil
	}
	settling, cancel := context.WithTimeout(ctx, renewal) // the lease is not renewed meanwhile
	defer cancel()
	r.opts.Waits.Settle(settling)
	return ctx.Err()
}

// known is of how many objects in the cluster something is known.
func (r *Recorder) known() int {
	if r.lives != nil {
		return len(r.lives.living)
	}
	return len(r.living)
}

func (r *Recorder) take(ctx context.Context) (store.Log, error) {
	return r.opts.Database.Take(ctx, r.name, r.opts.Cluster.Name(), r.opts.Holder, lease)
}

// release lets another recorder go on at once, even if the context has ended.
func (r *Recorder) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewal)
	defer cancel()
	if err := r.opts.Database.Release(ctx, r.name, r.opts.Holder); err != nil {
		r.log.Debug("the lease ends by itself", "error", err)
	}
}

// resume finds the place from which reading goes on, after all that was read.
func (r *Recorder) resume(ctx context.Context) error {
	if r.read == 0 || r.rewritten {
		return r.compare(ctx)
	}
	known := stream.UpTo(r.read)
	topic := r.opts.Store.Topic()
	cursor, err := topic.Resume(known, stream.AllNamespaces())
	if errors.Is(err, stream.ErrAhead) {
		// Either another replica had seen more, or versions went back while no gateway was there to see it.
		exists, unknown := r.opts.Cluster.HasVersion(ctx, r.opts.Store.Kind(), known.All)
		switch {
		case unknown != nil:
			return unknown
		case !exists:
			r.log.Warn("the position is ahead of the cluster, which was restored: jobs are compared", "version", known.All)
			return r.compare(ctx)
		}
		cursor, err = topic.Ahead(known, stream.AllNamespaces())
	}
	if errors.Is(err, stream.ErrExpired) {
		cursor, err = r.opts.Store.CaughtUp(ctx, known, stream.AllNamespaces())
		if errors.Is(err, cache.ErrNoCatchUp) {
			if cursor, ok, failed := r.skipGap(ctx, err, 0); failed != nil {
				return failed
			} else if ok {
				r.cursor = cursor
				return nil
			}
			r.log.Warn("the cluster has no longer what happened in the meantime: jobs are compared", "version", known.All, "error", err)
			return r.compare(ctx)
		}
	}
	if err == nil {
		r.cursor = cursor
	}
	return err
}

// passedOver is called after everything up to a position was read. If a relist passed over a part
// of that, the part is read again from the API server. The API server may still have it, since a
// relist may have no worse reason than a watch that broke off. If again is false, what was read is
// all that can be known.
func (r *Recorder) passedOver(ctx context.Context, position uint64) (again bool, err error) {
	if !r.cursor.PassedOver(r.read, position) {
		return false, nil
	}
	cursor, err := r.opts.Store.CaughtUpTo(ctx, position, stream.UpTo(r.read), stream.AllNamespaces())
	switch {
	case errors.Is(err, cache.ErrNoCatchUp):
		if cursor, ok, failed := r.skipGap(ctx, err, position); ok || failed != nil {
			if ok {
				r.cursor.Disarm()
				r.cursor = cursor
			}
			return ok, failed
		}
		r.log.Warn("the cluster has no longer what happened while its watch was lost: what a list found is recorded as late", "after", r.read, "version", position, "error", err)
		return false, r.beginsAnew(ctx)
	case err != nil:
		return false, err
	}
	r.cursor.Disarm()
	r.cursor = cursor
	return true, nil
}

// follow reads and writes until something goes wrong.
func (r *Recorder) follow(ctx context.Context) error {
	renew := time.NewTicker(renewal)
	defer renew.Stop()
	looks := time.NewTicker(r.looksEach())
	defer looks.Stop()
	for {
		events, position, more, err := r.next()
		if errors.Is(err, stream.ErrSlow) { // the database could not keep up, and the API server has what the ring has no longer
			r.cursor.Disarm()
			if err := r.resume(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if again, err := r.passedOver(ctx, position); err != nil {
			return err
		} else if again {
			continue
		}
		if err := r.record(ctx, events, position); err != nil {
			return err
		}
		r.tell(more)
		if more {
			select {
			case <-renew.C:
				if err := r.renew(ctx); err != nil {
					return err
				}
			case <-looks.C:
				if err := r.reconsider(ctx); err != nil {
					return err
				}
			case w := <-r.queue.inFlight:
				if err := r.wrote(w); err != nil {
					return err
				}
			default:
			}
			r.startWrite(ctx)
			continue
		}
		if err := r.check(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.opts.Store.Gone():
			return r.opts.Store.Err()
		case <-renew.C:
			if err := r.renew(ctx); err != nil {
				return err
			}
		case <-looks.C:
			if err := r.reconsider(ctx); err != nil {
				return err
			}
		case w := <-r.queue.inFlight:
			if err := r.wrote(w); err != nil {
				return err
			}
		case <-r.wakes.C:
		}
		r.startWrite(ctx)
	}
}

// tell tells the status where the recorder stands.
func (r *Recorder) tell(more bool) {
	version := r.read
	writing := r.queue.inFlight != nil
	if writing {
		version = r.at.Version
	}
	r.status.stands(version, r.at.Seq, r.known(), more || writing)
}

// renew renews the lease. If nothing was written there, it also saves the position. A recorder that was taken for dead
// in the meantime learns of it here.
func (r *Recorder) renew(ctx context.Context) error {
	if err := r.awaitWrite(); err != nil {
		return err
	}
	at, err := r.take(ctx)
	if err != nil {
		return err
	}
	if at.Version != r.at.Version || at.Seq != r.at.Seq {
		return store.ErrMoved
	}
	if r.read == at.Version || len(r.queue.waiting) > 0 { // what waits moves the position
		return nil
	}
	r.at, err = r.opts.Database.Write(ctx, at, store.Batch{To: r.read})
	return err
}

// next reads events up to the end of a revision, and returns the position after them; more says that there are further
// events. If it ended within a revision, a second recorder could go on from there, and would see states of objects that
// are no longer true.
func (r *Recorder) next() (events []*cache.Event, position uint64, more bool, err error) {
	batch := make([]*cache.Event, 0, batchSize)
	for {
		if batch, position, err = r.cursor.Next(batch, r.wakes); err != nil {
			return nil, 0, false, err
		}
		if len(batch) < cap(batch) {
			return batch, position, false, nil
		}
		last := batch[len(batch)-1].Pos
		whole := len(batch) - 1
		for whole > 0 && batch[whole-1].Pos == last {
			whole--
		}
		if whole > 0 {
			r.cursor.Back(batch[whole:])
			return batch[:whole], batch[whole-1].Pos, true, nil
		}
		grown := make([]*cache.Event, len(batch), 2*cap(batch))
		copy(grown, batch)
		batch = grown
	}
}

// record writes what the events change, if they change anything.
func (r *Recorder) record(ctx context.Context, events []*cache.Event, position uint64) error {
	var b batch
	for _, e := range events {
		before, relist := e.FromRelist()
		how := sight{at: e.At, late: relist && before < e.Pos} // late, unless it is the rest of a revision that was read
		if how.at.IsZero() {                                   // the event is from the API server's history
			how.at, how.replayed = time.Now(), true
		}
		r.see(&b, e.Object, e.Type == stream.Deleted, how)
	}
	r.read = max(r.read, position)
	return r.write(ctx, &b)
}
