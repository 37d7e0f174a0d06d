package rules

import (
	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/jobs"
)

// jobSetState is what a JobSet says. Its status counts Jobs, and not pods: one of which a single
// pod is not ready counts as not ready. A Job that fails makes the controller begin everything anew
// (`restarts` grows) or fail the JobSet, in the same version in which it is told. RestartingJobSet
// stays True until all Jobs are ready again.
func jobSetState(r reading) jobs.Said {
	statuses, restarts := r.status.Get("replicatedJobsStatus"), r.status.Get("restarts").Int()
	ready := sum(statuses, "ready") > 0
	restarting := r.condition("RestartingJobSet")
	var said jobs.Said
	switch completed, failed := r.condition("Completed"), r.condition("Failed"); {
	case completed.Exists() || r.status.Get("terminalState").Str == "Completed":
		said = saidBy(jobs.Succeeded, completed)
	case failed.Exists() || r.status.Get("terminalState").Str == "Failed":
		said = saidBy(jobs.Failed, failed)
	case r.spec.Get("suspend").Bool():
		said = saidBy(r.held(), r.condition("Suspended"))
	case restarts > r.was.Restarts && r.was.State != "", restarting.Exists() && !ready:
		said = untimed(jobs.Retrying, restarting)
	case ready:
		said.State = jobs.Running
	case statuses.Get("#").Int() > 0:
		said.State = jobs.Pending
	default:
		said.State = jobs.Submitted
	}
	said.Restarts = restarts
	said.Active = r.isTriedAgain(said, sum(statuses, "active") > 0, restarts > r.was.Restarts)
	said.Anew = r.was.State.Held() && (restarts > r.was.Restarts || r.was.Anew)
	said.Kept = r.keepsJobs(statuses) && !said.Anew // else what is told to have succeeded is of before
	begun := sum(statuses, "active")+sum(statuses, "ready")+sum(statuses, "succeeded")+sum(statuses, "failed")+restarts > 0
	said.Unmade = !begun && (r.was.State == "" || r.was.Unmade) // of its Jobs none has told of a pod
	return said
}

// trainJobState is what a TrainJob says: what its JobSet does, but for the number of restarts. A
// failed Job is told for a moment before the JobSet makes everything anew; if the TrainJob fails
// with it, that is told in the same version.
func trainJobState(r reading) jobs.Said {
	said := trainJobPhase(r)
	statuses := r.status.Get("jobsStatus")
	active := sum(statuses, "active") > 0
	said.Active = r.isTriedAgain(said, active, !active && sum(statuses, "failed") > 0)
	said.Kept = r.keepsJobs(statuses)
	return said
}

// keepsJobs reports whether a suspension, as far as there was one, has left Jobs as they were that had succeeded.
func (r reading) keepsJobs(jobs gjson.Result) bool {
	return r.was.State.Held() && sum(jobs, "succeeded") > 0
}

func trainJobPhase(r reading) jobs.Said {
	statuses := r.status.Get("jobsStatus")
	ready, active, failed := sum(statuses, "ready"), sum(statuses, "active"), sum(statuses, "failed")
	switch complete, failure := r.condition("Complete"), r.condition("Failed"); {
	case complete.Exists():
		return saidBy(jobs.Succeeded, complete)
	case failure.Exists():
		return saidBy(jobs.Failed, failure)
	case r.spec.Get("suspend").Bool():
		return saidBy(r.held(), r.condition("Suspended"))
	case ready > 0:
		return jobs.Said{State: jobs.Running}
	case failed > 0 && active == 0:
		return jobs.Said{State: jobs.Retrying}
	case statuses.Get("#").Int() > 0:
		return jobs.Said{State: jobs.Pending}
	}
	return jobs.Said{State: jobs.Submitted}
}
