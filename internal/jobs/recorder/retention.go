package recorder

import (
	"context"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

const (
	// expireAtOnce is how many jobs are removed at once: so few that recording waits only for a
	// moment. Of their runs, the database decides.
	expireAtOnce = 100
	// expireRest is how long nothing is removed after a removal, as a multiple of the time that the
	// removal took; it is at least leastRest. So most of the time readers have the database's disk
	// for themselves, however slow it is. If the database is a file, the same holds for the
	// processors.
	expireRest, leastRest = 3, 100 * time.Millisecond
	// expireAgain is how long after everything was removed the next search for more begins.
	expireAgain = 10 * time.Minute
)

// expireWithin is how long a removal may take, its wait for a turn included.
const expireWithin = 10 * time.Second

// expire removes the jobs of a log that have been kept for long enough, little by little, until the
// context ends. The recorder that holds the lease has it done. So if there are several replicas,
// one of them does it.
//
// It runs beside the recording, and not in its turn at the database. A failure does not end the
// recording. A database that accepts rows may still be too slow to find those that have to go.
func (r *Recorder) expire(ctx context.Context, log store.Log) {
	if r.opts.Keep == 0 || r.opts.Expiring == nil {
		return
	}
	due := time.NewTimer(max(renewal, time.Until(r.expireNext)))
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
		}
		rest := r.expireSome(ctx, log)
		r.expireNext = time.Now().Add(rest)
		due.Reset(rest)
	}
}

// expireSome removes some jobs, and returns how long nothing is to be removed after that.
func (r *Recorder) expireSome(ctx context.Context, log store.Log) (rest time.Duration) {
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, expireWithin)
	defer cancel()
	removed, err := r.opts.Expiring.Expire(within, log, jobs.At(r.opts.Cluster.Time(began).Add(-r.opts.Keep)), expireAtOnce)
	r.opts.Metrics.Removed(removed)
	if ctx.Err() != nil {
		return 0
	}
	if err != nil {
		r.opts.Metrics.Failed(ctx, err)
		r.log.Warn("what was kept for long enough is not removed for now", "error", store.Named(err))
	}
	if err != nil || !removed.More {
		return expireAgain
	}
	return max(leastRest, expireRest*time.Since(began))
}
