package rules

import "github.com/kubecast/kubecast/internal/jobs"

// volcanoRetries is how often Volcano restarts a job that does not say it (spec.maxRetry).
const volcanoRetries = 3

// volcanoJobState is what a Volcano Job says. The phase is Running even while pods wait. A job that
// is Aborted can go on; it is told Restarting for a moment then, although nothing has failed. The
// last Restarting begins nothing: Failed follows.
func volcanoJobState(r reading) jobs.Said {
	state := r.status.Get("state")
	said := jobs.Said{Reason: state.Get("reason").Str, Message: state.Get("message").Str}
	switch state.Get("phase").Str {
	case "":
		said.State = jobs.Submitted
	case "Pending":
		said.State = jobs.Pending
	case "Running":
		said.State = jobs.Pending
		if r.status.Get("running").Int() > 0 {
			said.State = jobs.Running
		}
	case "Restarting":
		most := int64(volcanoRetries)
		if retries := r.spec.Get("maxRetry"); retries.Exists() {
			most = retries.Int()
		}
		if r.was.State != jobs.Suspended && r.status.Get("retryCount").Int() < most {
			said.State = jobs.Retrying
		}
	case "Aborting", "Aborted":
		said.State = jobs.Suspended
	case "Completed":
		said.State = jobs.Succeeded
	case "Terminated":
		said.State = jobs.Cancelled
	case "Failed":
		said.State = jobs.Failed
	}
	if said.State.Ended() || said.State == jobs.Suspended {
		said.At = jobs.ParseTime(state.Get("lastTransitionTime").Str)
	}
	return said
}
