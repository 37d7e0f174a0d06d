package pods

import (
	"time"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/jobs"
)

// explain says why the pod ended, is being ended, or cannot begin.
func (p pod) explain(said *jobs.PodSaid) {
	switch disrupted, message := p.disruption(); {
	case p.phase() == "Succeeded":
		said.Reason = jobs.Completed
		p.decide(said, p.last())
	case p.phase() == "Failed":
		p.failure(said, disrupted, message)
	case disrupted != "":
		said.Reason, said.Message = disrupted, message
	default:
		p.waits(said)
	}
}

// failure says why the pod failed. Whoever ended it knows better than its containers, which then
// only say by which signal; but one that ran out of memory is why its node, or its controller,
// ended it.
func (p pod) failure(said *jobs.PodSaid, disrupted, message string) {
	container, failed := Decisive(p.containers)
	p.decide(said, container.Result)
	switch {
	case failed && container.outOfMemory():
		said.Reason = jobs.OOMKilled
	case disrupted != "":
		said.Reason, said.Message = disrupted, message
		if own := p.status.Get("message").Str; own != "" {
			said.Message = own
		}
		return
	default:
		reason, known := ends[p.status.Get("reason").Str]
		switch {
		case known:
			said.Reason = reason
		case p.status.Get("reason").Str != "": // why a kubelet refused it: UnexpectedAdmissionError, OutOfcpu, NodeAffinity, …
			said.Reason = p.status.Get("reason").Str
		case p.wasDeleted(container, failed):
			said.Reason = jobs.Removed
		case failed && container.lost():
			said.Reason = jobs.NodeLost
		default:
			said.Reason = jobs.Errored
		}
	}
	if said.Message == "" {
		said.Message = p.status.Get("message").Str
	}
}

// ends are what kubelets and controllers write as a failed pod's reason.
var ends = map[string]string{
	"Evicted": jobs.Evicted, "Preempting": jobs.Preempted, "NodeLost": jobs.NodeLost, "DeadlineExceeded": jobs.Deadline,
	"Terminated": jobs.NodeLost, "Shutdown": jobs.NodeLost, "NodeShutdown": jobs.NodeLost, // a node that shuts down
}

// disruption is who ended the pod, or is about to, as a condition says; "" if nobody does.
func (p pod) disruption() (reason, message string) {
	c := Condition(p.status, "DisruptionTarget")
	if c.Get("status").Str != "True" {
		return "", ""
	}
	message = c.Get("message").Str
	switch c.Get("reason").Str {
	case "PreemptionByScheduler":
		return jobs.Preempted, message
	case "EvictionByEvictionAPI":
		return jobs.Evicted, message
	case "DeletionByTaintManager", "DeletionByPodGC":
		return jobs.NodeLost, message
	case "TerminationByKubelet": // for pressure on its node, for a critical pod, or since its node shuts down
		if end, known := ends[p.status.Get("reason").Str]; known {
			return end, message
		}
		return jobs.Evicted, message
	}
	return c.Get("reason").Str, message
}

// wasDeleted reports whether the pod was ended by its deletion. It was asked for so long before it
// is to be gone. Once a kubelet has ended a pod, it deletes it again, at once, so then the time of
// the first deletion is lost, and the signal says it.
func (p pod) wasDeleted(container Container, failed bool) bool {
	gone := jobs.ParseTime(p.deleting)
	if gone == 0 {
		return false
	}
	if grace := p.grace.Int(); grace > 0 {
		return !failed || container.endedAt() >= gone-jobs.Time(grace*time.Second.Milliseconds())
	}
	const killed, terminated = 128 + 9, 128 + 15
	code := container.Get("state.terminated.exitCode").Int()
	return !failed || code == killed || code == terminated
}

// decide takes over how a container ended.
func (p pod) decide(said *jobs.PodSaid, container gjson.Result) {
	said.Container = container.Get("name").Str
	ended := container.Get("state.terminated")
	if !ended.Exists() {
		return
	}
	code := ended.Get("exitCode").Int()
	said.ExitCode = &code
	if signal := ended.Get("signal").Int(); signal != 0 {
		said.Signal = &signal
	}
	said.Message = ended.Get("message").Str
}

// last is the main container of a pod that succeeded which ended last.
func (p pod) last() (last gjson.Result) {
	var at jobs.Time
	for _, c := range p.containers {
		if c.Role == Main && (!last.Exists() || c.endedAt() > at) {
			last, at = c.Result, c.endedAt()
		}
	}
	return last
}

// waits says that a container cannot begin, or cannot begin again, else that no node takes the pod.
// What every pod says for a while is nothing.
func (p pod) waits(said *jobs.PodSaid) {
	for _, c := range p.containers {
		waits := c.Get("state.waiting")
		reason := waits.Get("reason").Str
		if reason == "ErrImagePull" { // the kubelet says either in turns
			reason = "ImagePullBackOff"
		}
		if IsPassing(reason) {
			continue
		}
		said.Reason, said.Message, said.Container = reason, waits.Get("message").Str, c.Get("name").Str
		if last := c.Get("lastState.terminated"); last.Exists() {
			code := last.Get("exitCode").Int()
			said.ExitCode = &code
		}
		return
	}
	if scheduled := Condition(p.status, "PodScheduled"); scheduled.Get("status").Str == "False" {
		said.Reason, said.Message = scheduled.Get("reason").Str, scheduled.Get("message").Str
	}
}

// IsPassing reports whether every waiting container gives this reason for a while.
func IsPassing(reason string) bool {
	switch reason {
	case "", "ContainerCreating", "PodInitializing", "Completed":
		return true
	}
	return false
}
