package recorder

import (
	"context"
	"time"

	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/store"
)

const (
	// expireAtOnce is how many jobs are removed at a time: so few that nobody notices, and more in a renewal than come to an end.
	expireAtOnce = 500
	// expireAgain is how long after all was removed it is looked for more.
	expireAgain = 10 * time.Minute
)

// expire removes some of the jobs that have been kept for long enough. It is called by who holds the lease, each time when that was
// renewed, so that of several replicas one does it, and between two batches of what is recorded.
//
// A failure does not end the recording: a database that takes rows may still be too slow to find those that are to go.
func (r *Recorder) expire(ctx context.Context) {
	now := time.Now()
	if r.opts.Keep == 0 || now.Before(r.expireNext) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, renewal)
	defer cancel()
	jobs, transitions, err := r.opts.Database.Expire(ctx, r.at, history.At(now.Add(-r.opts.Keep)), expireAtOnce)
	r.opts.Metrics.Removed(jobs, transitions)
	if err != nil {
		r.log.Warn("what was kept for long enough is not removed for now", "cause", string(store.CauseOf(err)), "error", err)
	}
	if err != nil || jobs < expireAtOnce {
		r.expireNext = now.Add(expireAgain)
	}
}
