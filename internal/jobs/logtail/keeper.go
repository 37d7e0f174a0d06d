package logtail

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// Database is what a Keeper needs of a store.Store.
type Database interface {
	Runs(ctx context.Context, log store.Log, f store.Filter, after store.RunAfter, limit int) ([]*store.Run, error)
	Keeps(ctx context.Context, log store.Log, uids []string) (store.Keeping, error)
	Kept(ctx context.Context, log store.Log, uid string, kind store.KeptKind) (store.Kept, error)
	Keep(ctx context.Context, log store.Log, k store.Kept) error
}

// Options configure a Keeper; all are required.
type Options struct {
	Cluster  *cluster.Cluster
	Database Database // in the name of what keeps logs
	Bytes    int      // of each log that are kept
	Metrics  *Metrics
	Log      *slog.Logger
}

const (
	// atOnce is how many logs of a cluster are read at a time, and ofOne how many of these are one
	// namespace's: a node that does not answer keeps others' waiting no longer than it takes to
	// give up one of them.
	atOnce, ofOne = 4, 2
	// perSecond is how many logs are read in a second. Each takes three requests to the API server,
	// of which one goes on to a node.
	perSecond = 20
	// mostWaiting is how many jobs and pods may wait. More than these end only where something is wrong, and
	// of them these are enough to see what.
	mostWaiting = 1000
	// within bounds one attempt.
	within = 10 * time.Second
	// refusedFor is how long no log of a namespace is asked for after one was refused. The
	// permission may be given at any time.
	refusedFor = time.Minute
	// awayPause is how long after an attempt for which the database was away the next one comes,
	// and awayFor for how long there are such. That long pods usually stay.
	awayPause, awayFor = 5 * time.Second, 15 * time.Minute
)

// pauses are how long after the end of a job, and then after each attempt, its log is read. The
// pods' ends are recorded apart from the job's, and may be known a moment later; pods that are made
// to end have a moment to write why.
var pauses = []time.Duration{500 * time.Millisecond, 3 * time.Second, 10 * time.Second}

// podPauses are those of a pod. One that is to be deleted may be gone at any time, with what it
// wrote: it is read at once, and then until the time is over that such pods are usually given. One
// that has ended is read until that succeeds.
var podPauses = []time.Duration{0, time.Second, 3 * time.Second, 10 * time.Second, 15 * time.Second}

// Keeper keeps the ends of the logs of a cluster's jobs.
type Keeper struct {
	opts      Options
	pauses    []time.Duration
	podPauses []time.Duration
	pause     time.Duration // after a refusal
	away      time.Duration // between attempts while the database is away
	rate      *rate.Limiter
	wakes     chan struct{} // holds a token once something was added, or was read

	mu       sync.Mutex
	queue    *queue
	told     bool            // that a log was refused
	overTold map[string]bool // namespaces of which it was logged that they have used up their budgets
}

// New makes a Keeper.
func New(opts Options) *Keeper {
	return &Keeper{
		opts: opts, pauses: pauses, podPauses: podPauses, pause: refusedFor, away: awayPause, rate: rate.NewLimiter(perSecond, perSecond), wakes: make(chan struct{}, 1),
		queue: newQueue(mostWaiting, ofOne), overTold: map[string]bool{},
	}
}

// Ended says that jobs have come to an end, which was written to their log. Again says that it may
// have been said before. It does not wait.
func (k *Keeper) Ended(log store.Log, jobList []*jobs.Job, again bool) {
	now := time.Now()
	k.mu.Lock()
	for _, job := range jobList {
		k.opts.Metrics.count(dropped, k.queue.add(&item{log: log, job: job, again: again, came: now, due: now.Add(k.pauses[0])}))
	}
	k.mu.Unlock()
	k.ring()
}

// Ending says that pods of jobs have ended without completing, or are to be deleted, which was
// written to the log of pods. Again says that it may have been said before. It does not wait.
func (k *Keeper) Ending(log store.Log, pods []*store.Run, again bool) {
	now := time.Now()
	k.mu.Lock()
	for _, pod := range pods {
		if len(pod.UID) > store.MostPodUID {
			continue
		}
		of := store.Log{LogName: store.LogName{Cluster: log.Cluster, Resource: pod.Job.Resource}, ID: pod.Of}
		job := &jobs.Job{ObjectID: jobs.ObjectID{UID: pod.Job.UID, Namespace: pod.Namespace, Name: pod.Job.Name}}
		k.opts.Metrics.count(dropped, k.queue.add(&item{log: of, job: job, pod: pod.Run, again: again, came: now, due: now.Add(k.podPauses[0])}))
	}
	k.mu.Unlock()
	k.ring()
}

// pausesOf are those of an item.
func (k *Keeper) pausesOf(it *item) []time.Duration {
	if it.pod != nil {
		return k.podPauses
	}
	return k.pauses
}

func (k *Keeper) ring() {
	select {
	case k.wakes <- struct{}{}:
	default:
	}
}

// Run reads logs until the context ends.
func (k *Keeper) Run(ctx context.Context) {
	var reading sync.WaitGroup
	for range atOnce {
		reading.Go(func() {
			for it := k.next(ctx); it != nil; it = k.next(ctx) {
				k.try(ctx, it)
			}
		})
	}
	reading.Wait()
}

// next waits for an item whose turn it is; nil once the context has ended.
func (k *Keeper) next(ctx context.Context) *item {
	for {
		it, wait := k.due(time.Now())
		if it != nil {
			k.ring()             // another one may be due, for another reader
			_ = k.rate.Wait(ctx) // else the context has ended, and so will the attempt
			return it
		}
		var due <-chan time.Time
		if wait > 0 {
			due = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.wakes:
		case <-due:
		}
	}
}

// due takes the item whose turn it is; else something may be due after a while (see queue.next).
func (k *Keeper) due(now time.Time) (it *item, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.queue.next(now)
}

// try reads a log, and has it read once more if that may lead to more.
func (k *Keeper) try(ctx context.Context, it *item) {
	attempt, cancel := context.WithTimeout(ctx, within)
	more, err := k.keep(attempt, it)
	cancel()
	k.mu.Lock()
	defer k.ring()
	defer k.mu.Unlock()
	k.queue.done(it)
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, cluster.ErrLogsRefused) || apierrors.IsForbidden(err) {
		k.opts.Metrics.count(dropped, k.queue.add(it)) // it is still due
		k.refuse(it.job.Namespace, err)
		return
	}
	if isAway(err) && time.Since(it.came) < awayFor {
		it.due = time.Now().Add(k.away)
		k.opts.Metrics.count(dropped, k.queue.add(it))
		return
	}
	it.tries++
	switch {
	case more && it.tries < len(k.pausesOf(it)):
		it.due = time.Now().Add(k.pausesOf(it)[it.tries])
		k.opts.Metrics.count(dropped, k.queue.add(it))
	case it.kept:
		k.opts.Metrics.count(kept, 1)
	case err == nil:
		k.opts.Metrics.count(nothing, 1)
	case errors.Is(err, store.ErrOverBudget):
		k.opts.Metrics.count(over, 1)
		k.tellOver(it.job.Namespace)
	default:
		k.opts.Metrics.count(failed, 1)
		k.opts.Log.Debug("the end of a log is not kept", "job", it.job.Namespace+"/"+it.job.Name, "error", err)
	}
	if it.kept {
		k.told = false
	}
}

// databaseError is an error of the database, and not of the cluster.
type databaseError struct{ error }

func (e databaseError) Unwrap() error { return e.error }

// isAway reports whether the database could not be used, and may be later.
func isAway(err error) bool {
	var db databaseError
	return errors.As(err, &db) && store.CauseOf(db.error) != store.CauseOther
}

// tellOver logs once that a namespace has used up its budget.
func (k *Keeper) tellOver(namespace string) {
	if !k.overTold[namespace] {
		k.overTold[namespace] = true
		k.opts.Log.Warn("a namespace has used up its budget of what is kept of jobs, so some of their logs are not", "namespace", namespace, "key", "history.keepBudget")
	}
}

// refuse notes that logs of a namespace are refused: permissions may be given in some namespaces
// only, and a node may refuse, too.
func (k *Keeper) refuse(namespace string, err error) {
	k.queue.refuse(namespace, time.Now().Add(k.pause))
	k.opts.Metrics.count(refused, 1)
	if !k.told {
		k.told = true
		k.opts.Log.Warn("the ends of jobs' logs are not kept for now: the gateway needs to get pods and pods/log, or history.keepLogTail: 0", "error", err)
	}
}
