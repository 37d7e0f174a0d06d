package recorder

import (
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
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
	var jobList []*jobs.Job
	for i, t := range b.transitions {
		if t.To.Ended() && b.after[i].Parent.UID == "" {
			jobList = append(jobList, b.after[i])
		}
	}
	if len(jobList) > 0 {
		r.opts.Ended(r.at, jobList, false)
	}
}

// ending tells of the pods in a batch that was written that end otherwise than by completing, and
// are still there: what they wrote can be read for as long as that.
func (r *Recorder) ending(b *batch) {
	if r.opts.Ending == nil {
		return
	}
	var runs []*store.Run
	for _, run := range b.runs {
		if isEnding(run) {
			runs = append(runs, run)
		}
	}
	if len(runs) > 0 {
		r.opts.Ending(r.at, runs, false)
	}
}

// isEnding reports whether a pod has ended, or is to be deleted, without having completed, and has written anything.
func isEnding(run *store.Run) bool {
	return run.Of != 0 && run.Gone == 0 && run.EndVersion != 0 && (run.Started != 0 || run.ExitCode != nil) && run.Reason != jobs.Completed
}

// endingStill tells of the pods that end, or have ended, and were there when the recorder began:
// whoever recorded that may have been killed before what they wrote was read.
func (r *Recorder) endingStill() {
	if r.opts.Ending == nil || r.lives == nil {
		return
	}
	var runs []*store.Run
	for _, l := range r.lives.living {
		if isEnding(&l.Run) {
			run := l.Run
			runs = append(runs, &run)
		}
	}
	if len(runs) > 0 {
		r.opts.Ending(r.at, runs, true)
	}
}

// endedLately tells of the jobs that had ended a moment before the recorder began.
func (r *Recorder) endedLately() {
	if r.opts.Ended == nil {
		return
	}
	since := jobs.At(r.opts.Cluster.Now().Add(-lately))
	var jobList []*jobs.Job
	for _, job := range r.living {
		if job.State.Ended() && job.Ended >= since && job.Parent.UID == "" {
			jobList = append(jobList, job)
		}
	}
	if len(jobList) > 0 {
		r.opts.Ended(r.at, jobList, true)
	}
}
