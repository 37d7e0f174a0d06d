package rules

import "github.com/kubecast/kubecast/internal/history"

// volcanoRetries is how often Volcano restarts a job that does not say it (spec.maxRetry).
const volcanoRetries = 3

// volcanoJobState is what a Volcano Job says. The phase is Running even while pods wait. A job that
// is Aborted can go on; it is told Restarting for a moment then, although nothing has failed. The
// last Restarting begins nothing: Failed follows.
func volcanoJobState(r reading) history.Said {
	state := r.status.Get("state")
	said := history.Said{Reason: state.Get("reason").Str, Message: state.Get("message").Str}
	switch state.Get("phase").Str {
	case "":
		said.State = history.Submitted
	case "Pending":
		said.State = history.Pending
	case "Running":
		said.State = history.Pending
		if r.status.Get("running").Int() > 0 {
			said.State = history.Running
		}
	case "Restarting":
		most := int64(volcanoRetries)
		if retries := r.spec.Get("maxRetry"); retries.Exists() {
			most = retries.Int()
		}
		if r.was.State != history.Suspended && r.status.Get("retryCount").Int() < most {
			said.State = history.Retrying
		}
	case "Aborting", "Aborted":
		said.State = history.Suspended
	case "Completed":
		said.State = history.Succeeded
	case "Terminated":
		said.State = history.Cancelled
	case "Failed":
		said.State = history.Failed
	}
	if said.State.Ended() || said.State == history.Suspended {
		said.At = history.ParseTime(state.Get("lastTransitionTime").Str)
	}
	return said
}
