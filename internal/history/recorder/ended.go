package recorder

import (
	"time"

	"github.com/kubecast/kubecast/internal/history"
)

// lately is how long ago a job may have ended that is told of again when a recorder begins: whoever
// recorded it may have been killed before what follows from it was done.
const lately = time.Minute

// ended tells of the jobs that came to an end in a batch that was written. Of parts of other jobs
// nothing follows: their pods are the topmost job's.
func (r *Recorder) ended(b *batch) {
	if r.opts.Ended == nil {
		return
	}
	var jobs []*history.Job
	for i, t := range b.transitions {
		if t.To.Ended() && b.after[i].Parent.UID == "" {
			jobs = append(jobs, b.after[i])
		}
	}
	if len(jobs) > 0 {
		r.opts.Ended(r.at, jobs, false)
	}
}

// endedLately tells of the jobs that had ended a moment before the recorder began.
func (r *Recorder) endedLately() {
	if r.opts.Ended == nil {
		return
	}
	since := history.At(r.opts.Cluster.Now().Add(-lately))
	var jobs []*history.Job
	for _, job := range r.living {
		if job.State.Ended() && job.Ended >= since && job.Parent.UID == "" {
			jobs = append(jobs, job)
		}
	}
	if len(jobs) > 0 {
		r.opts.Ended(r.at, jobs, true)
	}
}
