package rules

import (
	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/pods"
)

// tektonReasons are the states that the reasons of a condition Succeeded mean while it is Unknown.
// Any other reason says nothing: the run stays what it was.
var tektonReasons = map[string]history.State{
	"Pending":                   history.Pending,
	"Started":                   history.Pending,
	"TaskRunPending":            history.Suspended,
	"PipelineRunPending":        history.Suspended,
	"ResolvingTaskRef":          history.Pending,
	"ResolvingPipelineRef":      history.Pending,
	"ResolvingStepActionRef":    history.Pending,
	"ExceededNodeResources":     history.Pending,
	"ExceededResourceQuota":     history.Pending,
	"PullImageFailed":           history.Pending,
	"ToBeRetried":               history.Retrying,
	"Running":                   history.Running,
	"Stopped":                   history.Running,
	"StoppedRunningFinally":     history.Running,
	"CancelledRunningFinally":   history.Running,
	"PipelineRunStopping":       history.Running,
	"TaskRunStopSidecarStarted": history.Running,
}

// tektonCancelled are the reasons of a condition Succeeded that is False since somebody ended the run.
var tektonCancelled = map[string]bool{
	"Cancelled":            true,
	"TaskRunCancelled":     true,
	"PipelineRunCancelled": true,
	"CustomRunCancelled":   true,
	"CancelledRunFinally":  true,
	"StoppedRunFinally":    true,
	"PipelineRunStopped":   true,
}

// tektonState is what a TaskRun or PipelineRun says: one condition says everything. While it is
// Unknown, its reason does.
func tektonState(r reading) history.Said {
	succeeded := pods.Condition(r.status, "Succeeded")
	var said history.Said
	switch succeeded.Get("status").Str {
	case "True":
		said = untimed(history.Succeeded, succeeded)
	case "False":
		said = untimed(history.Failed, succeeded)
		if tektonCancelled[succeeded.Get("reason").Str] {
			said.State = history.Cancelled
		}
	case "Unknown":
		said = untimed(tektonReasons[succeeded.Get("reason").Str], succeeded)
	default:
		said.State = history.Submitted
		if status := r.spec.Get("status").Str; status == "PipelineRunPending" || status == "TaskRunPending" {
			said.State = history.Suspended
		}
	}
	if said.State.Ended() {
		said.At = history.ParseTime(r.status.Get("completionTime").Str)
	}
	return said
}

// customRunState is what a CustomRun says, as other runs do. The controllers of custom tasks have
// reasons of their own; one that has begun with it runs.
func customRunState(r reading) history.Said {
	said := tektonState(r)
	begun := r.status.Get("startTime").Str != "" && r.status.Get("conditions.#").Int() > 0
	if said.State == "" && begun && (r.was.State == "" || r.was.State == history.Submitted) {
		said.State = history.Running
	}
	return said
}
