package recorder

import (
	"context"
	"time"

	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/store"
)

const (
	// expireAtOnce is how many jobs are removed at once: so few that recording waits only for a moment.
	expireAtOnce = 100
	// expireRest is how long nothing is removed after a removal, as a multiple of the time that the removal took; it is
	// at least leastRest. So most of the time readers have the database's disk for themselves, however slow it is. If the
	// database is a file, the same holds for the processors.
	expireRest, leastRest = 3, 100 * time.Millisecond
	// expireAgain is how long after everything was removed the next search for more begins.
	expireAgain = 10 * time.Minute
)

// expire removes some of the jobs that have been kept for long enough, and returns how long nothing is to be removed
// after that. The recorder that holds the lease calls it, between two batches. So if there are several replicas, one of
// them does it.
//
// A failure does not end the recording. A database that accepts rows may still be too slow to find those that have to
// go.
func (r *Recorder) expire(ctx context.Context) (rest time.Duration) {
	if r.opts.Keep == 0 {
		return expireAgain
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, renewal)
	defer cancel()
	jobs, transitions, err := r.opts.Database.Expire(ctx, r.at, history.At(r.opts.Cluster.Time(began).Add(-r.opts.Keep)), expireAtOnce)
	r.opts.Metrics.Removed(jobs, transitions)
	if err != nil {
		r.log.Warn("what was kept for long enough is not removed for now", "cause", string(store.CauseOf(err)), "error", err)
	}
	rest = max(leastRest, expireRest*time.Since(began))
	if err != nil || jobs < expireAtOnce {
		rest = expireAgain
	}
	r.expireNext = time.Now().Add(rest)
	return rest
}
