package rules

import "github.com/kubecast/kubecast/internal/jobs"

// rayJobState is what a RayJob says: how its cluster stands (jobDeploymentStatus), and how Ray's
// own job does (jobStatus). Complete by itself is no success. A retry is told for a moment; then
// the status is empty but for the number of failures, and a new cluster begins, which may fail
// before Ray's job runs.
func rayJobState(r reading) jobs.Said {
	deployment, job := r.status.Get("jobDeploymentStatus").Str, r.status.Get("jobStatus").Str
	said := jobs.Said{
		Reason: r.status.Get("reason").Str, Message: r.status.Get("message").Str,
		Counts: jobs.Counts{Failures: r.status.Get("failed").Int()},
	}
	failures := said.Failures > r.was.Failures
	switch {
	case deployment == "Failed", deployment == "ValidationFailed":
		said.State = jobs.Failed
	case deployment == "Complete":
		said.State = map[string]jobs.State{"SUCCEEDED": jobs.Succeeded, "FAILED": jobs.Failed, "STOPPED": jobs.Cancelled}[job]
	case r.spec.Get("suspend").Bool():
		said.State = r.held()
	case deployment == "Retrying", failures && deployment != "Running":
		said.State = jobs.Retrying
	case deployment == "Initializing", deployment == "Waiting":
		said.State = jobs.Pending
	case deployment == "Suspending", deployment == "Suspended":
		if r.was.State == "" { // it is being resumed
			said.State = r.held()
		}
	case deployment == "Running":
		switch job {
		case "", "PENDING":
			said.State = jobs.Pending
		case "RUNNING":
			said.State = jobs.Running
		default: // Ray's job has ended; a second later the deployment says what follows from that
			if r.was.State == "" {
				said.State = jobs.Running
			}
		}
	case deployment == "":
		said.State = jobs.Submitted
	}
	said.Active = r.isTriedAgain(said, deployment == "Initializing" || deployment == "Running", failures)
	if said.State.Ended() {
		said.At = jobs.ParseTime(r.status.Get("endTime").Str)
	}
	return said
}
