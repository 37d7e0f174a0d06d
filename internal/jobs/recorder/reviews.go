package recorder

import (
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
)

// cameTo names a transition.
type cameTo struct {
	uid     string // of the job
	version uint64
}

func transitionOf(job *jobs.Job) cameTo { return cameTo{job.UID, job.Version} }

// review is when the cause of a transition is found out again, and how long after that.
type review struct {
	job   *jobs.Job // as it was after the transition
	next  time.Time
	pause time.Duration
}

// reviews are those of a term.
type reviews struct {
	of     map[cameTo]review
	counts map[string]int // by namespace
}

func newReviews() *reviews { return &reviews{of: map[cameTo]review{}, counts: map[string]int{}} }

func (all *reviews) put(at review) {
	of := transitionOf(at.job)
	if _, there := all.of[of]; !there {
		all.counts[at.job.Namespace]++
	}
	all.of[of] = at
}

func (all *reviews) drop(of cameTo) {
	at, there := all.of[of]
	if !there {
		return
	}
	delete(all.of, of)
	namespace := at.job.Namespace
	if all.counts[namespace]--; all.counts[namespace] == 0 {
		delete(all.counts, namespace)
	}
}

// leave makes room where there are too many, of a job that leaves its state: it is the namespace
// that has most of them that gives way.
func (all *reviews) leave(job *jobs.Job) {
	if len(all.of) < mostLeft {
		return
	}
	fullest := job.Namespace
	for namespace, n := range all.counts {
		if n > all.counts[fullest] {
			fullest = namespace
		}
	}
	if fullest == job.Namespace {
		all.drop(transitionOf(job))
		return
	}
	for of, at := range all.of {
		if at.job.Namespace == fullest {
			all.drop(of)
			return
		}
	}
}
