package rules

import "github.com/kubecast/kubecast/internal/history"

// sparkStates are the states of Spark's operator. A submission that failed is tried again. UNKNOWN,
// SUCCEEDING and FAILING say nothing yet.
var sparkStates = map[string]history.State{
	"SUBMITTED":         history.Pending,
	"RUNNING":           history.Running,
	"COMPLETED":         history.Succeeded,
	"FAILED":            history.Failed,
	"SUBMISSION_FAILED": history.Retrying,
	"PENDING_RERUN":     history.Retrying,
	"INVALIDATING":      history.Retrying,
	"SUSPENDING":        history.Suspended,
	"SUSPENDED":         history.Suspended,
	"RESUMING":          history.Pending,
}

// sparkState is what a SparkApplication says.
func sparkState(r reading) history.Said {
	state := r.status.Get("applicationState.state").Str
	said := history.Said{State: sparkStates[state], Reason: state, Message: r.status.Get("applicationState.errorMessage").Str}
	switch {
	case state == "":
		said.State = submitted(r)
	case said.State == history.Suspended:
		said.State = r.held()
	}
	if said.State.Ended() {
		said.At = history.ParseTime(r.status.Get("terminationTime").Str)
	}
	return said
}

// appWrapperPhases are the states of an AppWrapper but for Running, which comes before its pods run.
var appWrapperPhases = map[string]history.State{
	"Suspending": history.Suspended,
	"Suspended":  history.Suspended,
	"Resuming":   history.Pending,
	"Running":    history.Pending,
	"Resetting":  history.Retrying,
	"Succeeded":  history.Succeeded,
	"Failed":     history.Failed,
}

// appWrapperState is what an AppWrapper says.
func appWrapperState(r reading) history.Said {
	phase := r.status.Get("phase").Str
	said := history.Said{State: appWrapperPhases[phase]}
	switch {
	case phase == "":
		said.State = submitted(r)
	case phase == "Running" && r.condition("PodsReady").Exists():
		said.State = history.Running
	case said.State == history.Suspended:
		said.State = r.held()
	case phase == "Failed":
		said = untimed(history.Failed, r.condition("Unhealthy"))
	}
	return said
}

// submitted is the state of an object with which nobody has begun.
func submitted(r reading) history.State {
	if r.spec.Get("suspend").Bool() {
		return r.held()
	}
	return history.Submitted
}
