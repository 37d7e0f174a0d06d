package recorder

import (
	"context"
	"time"

	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/store"
)

const (
	// expireAtOnce is how many jobs are removed at a time: so few that recording waits for a moment only.
	expireAtOnce = 100
	// expireRest is how many times as long as the last removal took nothing is removed, and leastRest how long at least. So readers have
	// the database's disk and, with a file, this process' processors for themselves most of the time, however slow these are.
	expireRest, leastRest = 3, 100 * time.Millisecond
	// expireAgain is how long after all was removed it is looked for more.
	expireAgain = 10 * time.Minute
)

// expire removes some of the jobs that have been kept for long enough, and says for how long nothing is to be removed then. It is called by who
// holds the lease, so that of several replicas one does it, and between two batches of what is recorded.
//
// A failure does not end the recording: a database that takes rows may still be too slow to find those that are to go.
func (r *Recorder) expire(ctx context.Context) (rest time.Duration) {
	if r.opts.Keep == 0 {
		return expireAgain
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, renewal)
	defer cancel()
	jobs, transitions, err := r.opts.Database.Expire(ctx, r.at, history.At(began.Add(-r.opts.Keep)), expireAtOnce)
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
