package rules

import (
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/pods"
)

// tektonReasons are the states that the reasons of a condition Succeeded mean while it is Unknown.
// Any other reason says nothing: the run stays what it was.
var tektonReasons = map[string]jobs.State{
	"Pending":                   jobs.Pending,
	"Started":                   jobs.Pending,
	"TaskRunPending":            jobs.Suspended,
	"PipelineRunPending":        jobs.Suspended,
	"ResolvingTaskRef":          jobs.Pending,
	"ResolvingPipelineRef":      jobs.Pending,
	"ResolvingStepActionRef":    jobs.Pending,
	"ExceededNodeResources":     jobs.Pending,
	"ExceededResourceQuota":     jobs.Pending,
	"PullImageFailed":           jobs.Pending,
	"ToBeRetried":               jobs.Retrying,
	"Running":                   jobs.Running,
	"Stopped":                   jobs.Running,
	"StoppedRunningFinally":     jobs.Running,
	"CancelledRunningFinally":   jobs.Running,
	"PipelineRunStopping":       jobs.Running,
	"TaskRunStopSidecarStarted": jobs.Running,
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
func tektonState(r reading) jobs.Said {
	succeeded := pods.Condition(r.status, "Succeeded")
	var said jobs.Said
	switch succeeded.Get("status").Str {
	case "True":
		said = untimed(jobs.Succeeded, succeeded)
	case "False":
		said = untimed(jobs.Failed, succeeded)
		if tektonCancelled[succeeded.Get("reason").Str] {
			said.State = jobs.Cancelled
		}
	case "Unknown":
		said = untimed(tektonReasons[succeeded.Get("reason").Str], succeeded)
	default:
		said.State = jobs.Submitted
		if status := r.spec.Get("status").Str; status == "PipelineRunPending" || status == "TaskRunPending" {
			said.State = jobs.Suspended
		}
	}
	if said.State.Ended() {
		said.At = jobs.ParseTime(r.status.Get("completionTime").Str)
	}
	return said
}

// customRunState is what a CustomRun says, as other runs do. The controllers of custom tasks have
// reasons of their own; one that has begun with it runs.
func customRunState(r reading) jobs.Said {
	said := tektonState(r)
	begun := r.status.Get("startTime").Str != "" && r.status.Get("conditions.#").Int() > 0
	if said.State == "" && begun && (r.was.State == "" || r.was.State == jobs.Submitted) {
		said.State = jobs.Running
	}
	return said
}
