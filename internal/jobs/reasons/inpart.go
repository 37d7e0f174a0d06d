package reasons

import (
	"fmt"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/ownerref"
)

// A job is told how many of its pods cannot begin, of how many, if it has several or runs. Pods that run say
// nothing, and are not kept: they are counted for what controls them, as they come and go. So the
// answer costs the same however many pods there are in the namespace.

// WhyInPart is why a part of a job does not run that runs: how many of its pods cannot begin, of
// how many that have not ended, and why not. The zero Reason: all can. Known and steps are as
// Why's.
func (w *Watch) WhyInPart(job ownerref.ID) (why jobs.Reason, known bool, steps int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	best, known, steps := w.best(job)
	if best == nil {
		return why, known, steps
	}
	if !best.isStuck() {
		return w.recovery(job), known, steps
	}
	if !w.counts {
		return why, false, steps
	}
	pods, further := w.objects.Sum(job)
	if steps += further; pods.Stuck <= 0 { // what cannot begin belongs to the job, and something else controls it
		return w.recovery(job), known, steps
	}
	why = w.withClasses(best)
	return inPart(pods, why), known, steps
}

// recovery is that Kueue waits for pods of a job that had all been ready; the zero Reason if it does not. Pods that have failed
// say why, and weigh more, but say nothing of a job that runs. The caller holds the lock.
func (w *Watch) recovery(job ownerref.ID) (why jobs.Reason) {
	if least, ok := w.objects.LeastSaid(job); ok && least.says.weight == aQueueWaitsForRecovery {
		return least.says.Reason
	}
	return why
}

// inPart is a reason with of how many pods it is said, before its message. jobs.Reason.Words knows how that begins. An
// autoscaler's Event is of one pod, and of others that cannot begin it may say something else.
func inPart(pods ownerref.Tally, why jobs.Reason) jobs.Reason {
	if why.Source != jobs.EventSays || pods.Stuck == 1 {
		why.Message = fmt.Sprintf("%d of %d pods: %s", pods.Stuck, pods.All, why.Message)
	}
	return why
}

// isStuck reports whether it is said of a pod that it cannot begin.
func (s *statement) isStuck() bool {
	return s.ofPod || s.weight >= aPodIsGated && s.weight <= aPodCannotBegin
}

// count takes a pod that has not ended into what is counted of its owner, or with -1 out of it. The
// caller holds the lock.
func (w *Watch) count(o *cluster.Object, stuck bool, by int) {
	if o.Path("metadata.deletionTimestamp").Exists() {
		return
	}
	if phase := o.Path("status.phase").Str; phase == "Succeeded" || phase == "Failed" {
		return
	}
	if owners := ownerref.Owners(o); len(owners) > 0 { // what controls it comes first
		t := ownerref.Tally{All: by}
		if stuck {
			t.Stuck = by
		}
		w.objects.Count(owners[0], t)
	}
}
