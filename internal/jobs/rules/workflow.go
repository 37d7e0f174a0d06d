package rules

import (
	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/jobs"
)

// workflowOwners is where Argo says who made a workflow.
var workflowOwners = []string{
	`metadata.labels.workflows\.argoproj\.io/creator-preferred-username`,
	`metadata.labels.workflows\.argoproj\.io/creator`,
}

// workflowNodes are how the nodes of a Workflow stand that are pods, or wait for somebody.
type workflowNodes struct {
	running, succeeded, failed int64
	waiting, excused           int64 // pending, and of these those that say why
	asking                     int64 // suspend nodes that wait for somebody
}

// workflowState is what an Argo Workflow says. Its phase is Running from the moment that the
// controller begins with it, whatever its pods do, and stays so while a step is retried: the nodes
// say that. A retry of the whole (`argo retry`) opens the same object again. The controller looks
// at a workflow every ten seconds, so nodes may be late by that.
func workflowState(r reading) jobs.Said {
	phase, nodes := r.status.Get("phase").Str, readWorkflowNodes(r.status.Get("nodes"))
	said := jobs.Said{
		Message: r.status.Get("message").Str, Counts: jobs.Counts{Failures: nodes.failed, Done: nodes.succeeded},
		Kept: r.was.State.Held(), // a suspension ends no step
	}
	switch {
	case phase == "Succeeded":
		said.State, said.At = jobs.Succeeded, jobs.ParseTime(r.status.Get("finishedAt").Str)
	case phase == "Failed" && r.spec.Get("shutdown").Str != "":
		said.State, said.At = jobs.Cancelled, jobs.ParseTime(r.status.Get("finishedAt").Str)
	case phase == "Failed", phase == "Error":
		said.State, said.At = jobs.Failed, jobs.ParseTime(r.status.Get("finishedAt").Str)
		if phase == "Error" {
			said.Reason = phase
		}
	case nodes.running == 0 && (r.spec.Get("suspend").Bool() || nodes.asking > 0 && nodes.waiting == 0):
		said.State = jobs.Suspended
		if r.spec.Get("suspend").Bool() {
			said.State = r.held()
		}
	case phase == "Running":
		switch {
		case nodes.running > 0:
			said.State = jobs.Running
		case nodes.failed > r.was.Failures && nodes.succeeded == 0 && nodes.waiting > 0:
			said.State = jobs.Retrying
		case nodes.waiting > 0 && nodes.excused == nodes.waiting && nodes.succeeded+nodes.failed == 0:
			said.State = jobs.Pending
		case nodes.waiting > 0 && r.was.State == jobs.Retrying:
		default:
			said.State = jobs.Running
		}
	case phase == "Pending":
		said.State = jobs.Pending
	case phase == "":
		said.State = jobs.Submitted
	}
	return said
}

func readWorkflowNodes(nodes gjson.Result) (n workflowNodes) {
	nodes.ForEach(func(_, node gjson.Result) bool {
		phase := node.Get("phase").Str
		switch node.Get("type").Str {
		case "Suspend":
			if phase == "Running" {
				n.asking++
			}
			return true
		case "Pod", "Container", "HTTP", "Plugin":
		default:
			return true
		}
		switch phase {
		case "Running":
			n.running++
		case "Succeeded":
			n.succeeded++
		case "Failed", "Error":
			n.failed++
		case "Pending":
			n.waiting++
			if node.Get("message").Str != "" {
				n.excused++
			}
		}
		return true
	})
	return n
}
