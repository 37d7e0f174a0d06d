package rules

import "github.com/kubecast/kubecast/internal/jobs"

// sparkStates are the states of Spark's operator. A submission that failed is tried again. UNKNOWN,
// SUCCEEDING and FAILING say nothing yet.
var sparkStates = map[string]jobs.State{
	"SUBMITTED":         jobs.Pending,
	"RUNNING":           jobs.Running,
	"COMPLETED":         jobs.Succeeded,
	"FAILED":            jobs.Failed,
	"SUBMISSION_FAILED": jobs.Retrying,
	"PENDING_RERUN":     jobs.Retrying,
	"INVALIDATING":      jobs.Retrying,
	"SUSPENDING":        jobs.Suspended,
	"SUSPENDED":         jobs.Suspended,
	"RESUMING":          jobs.Pending,
}

// sparkState is what a SparkApplication says.
func sparkState(r reading) jobs.Said {
	state := r.status.Get("applicationState.state").Str
	said := jobs.Said{State: sparkStates[state], Reason: state, Message: r.status.Get("applicationState.errorMessage").Str}
	switch {
	case state == "":
		said.State = submitted(r)
	case said.State == jobs.Suspended:
		said.State = r.held()
	}
	if said.State.Ended() {
		said.At = jobs.ParseTime(r.status.Get("terminationTime").Str)
	}
	return said
}

// appWrapperPhases are the states of an AppWrapper but for Running, which comes before its pods run.
var appWrapperPhases = map[string]jobs.State{
	"Suspending": jobs.Suspended,
	"Suspended":  jobs.Suspended,
	"Resuming":   jobs.Pending,
	"Running":    jobs.Pending,
	"Resetting":  jobs.Retrying,
	"Succeeded":  jobs.Succeeded,
	"Failed":     jobs.Failed,
}

// appWrapperState is what an AppWrapper says.
func appWrapperState(r reading) jobs.Said {
	phase := r.status.Get("phase").Str
	said := jobs.Said{State: appWrapperPhases[phase]}
	switch {
	case phase == "":
		said.State = submitted(r)
	case phase == "Running" && r.condition("PodsReady").Exists():
		said.State = jobs.Running
	case said.State == jobs.Suspended:
		said.State = r.held()
	case phase == "Failed":
		said = untimed(jobs.Failed, r.condition("Unhealthy"))
	}
	return said
}

// submitted is the state of an object with which nobody has begun.
func submitted(r reading) jobs.State {
	if r.spec.Get("suspend").Bool() {
		return r.held()
	}
	return jobs.Submitted
}
