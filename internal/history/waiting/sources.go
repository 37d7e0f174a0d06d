package waiting

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history"
)

// source is a kind whose objects say something of other objects' jobs, or that stands between a job and such objects.
type source struct {
	kind string                                          // resource[.group]
	says func(*cluster.Object) (said statement, ok bool) // nil: it says only to which object it belongs
	// labels are the labels by which an object names the uid of the object to which it belongs, beside its owners.
	labels []string
}

// statement is what one object says.
type statement struct {
	weight weight
	history.Reason
}

// weight orders statements: the one with the greatest weight is why a job waits. What a queue says comes before what
// happens after the queue has let a job pass. What a group says comes before what its pods say.
type weight int

const (
	aPodHasFailed weight = iota + 1
	aPodIsGated
	aPodFindsNoNode
	aPodCannotBegin
	aGroupFindsNoNodes
	aQueueHolds
)

// explaining are the kinds that say why jobs wait.
var explaining = []source{
	{kind: "pods", says: pod},
	{kind: "workloads.kueue.x-k8s.io", says: workload, labels: []string{"kueue.x-k8s.io/job-uid"}},
	{kind: "podgroups.scheduling.volcano.sh", says: podGroup},
	{kind: "podgroups.scheduling.x-k8s.io", says: podGroup},
	{kind: "podgroups.scheduling.k8s.io", says: podGroup},
}

// between are the kinds that stand between a kind of jobs and its pods, whether they have a history or not. Jobs may own
// jobs: a TrainJob owns a JobSet, whose Jobs own the pods.
var between = map[string]string{
	"rayjobs.ray.io": "rayclusters.ray.io", "trainjobs.trainer.kubeflow.org": "jobsets.jobset.x-k8s.io", "pipelineruns.tekton.dev": "taskruns.tekton.dev",
}

// sourcesFor are the kinds that are read for the jobs of some kinds.
func sourcesFor(jobs []string) []source {
	all := slices.Clone(explaining)
	for _, kind := range jobs {
		for _, kind := range []string{kind, between[kind]} {
			if kind != "" && !slices.ContainsFunc(all, func(s source) bool { return s.kind == kind }) {
				all = append(all, source{kind: kind})
			}
		}
	}
	return all
}

// passing are reasons that every pod gives for a while.
var passing = []string{"", "ContainerCreating", "PodInitializing", "Completed"}

// pod says that no node takes the pod, that one of its containers cannot begin, or why it failed.
func pod(o *cluster.Object) (said statement, ok bool) {
	if o.Path("metadata.deletionTimestamp").Exists() {
		return said, false // it is being deleted, so it does not matter what it waited for
	}
	status := o.Path("status")
	weigh := func(w weight, reason, message, at string) {
		if said.weight < w && !slices.Contains(passing, reason) {
			said, ok = statement{w, history.Reason{At: moment(at), Reason: reason, Message: message, Source: "Pod"}}, true
		}
	}
	containers := containersOf(o)
	for _, container := range containers {
		if waits := container.Get("state.waiting"); waits.Exists() {
			weigh(aPodCannotBegin, waits.Get("reason").Str, waits.Get("message").Str, "")
		}
	}
	if status.Get("phase").Str == "Failed" {
		weigh(aPodHasFailed, status.Get("reason").Str, status.Get("message").Str, "")
		if c := failed(containers); c.Exists() {
			ended := c.Get("state.terminated")
			message := ended.Get("message").Str
			if message == "" {
				message = "container " + c.Get("name").Str + " ended with exit code " + strconv.FormatInt(ended.Get("exitCode").Int(), 10)
			}
			weigh(aPodHasFailed, ended.Get("reason").Str, message, ended.Get("finishedAt").Str)
		}
	}
	if scheduled := condition(status, "PodScheduled"); scheduled.Get("status").Str == "False" {
		w := aPodFindsNoNode
		if scheduled.Get("reason").Str == "SchedulingGated" {
			w = aPodIsGated
		}
		weigh(w, scheduled.Get("reason").Str, scheduled.Get("message").Str, scheduled.Get("lastTransitionTime").Str)
	}
	return said, ok
}

// container is what a pod says of one of its containers. Rank is 0 of those that do the pod's work, 1 of those before them, and 2
// of sidecars, which the kubelet ends once the work is over: how they end says nothing of it.
type container struct {
	gjson.Result
	rank int
}

// containersOf are a pod's containers, by rank.
func containersOf(o *cluster.Object) (all []container) {
	sidecars := map[string]bool{}
	o.Path("spec.initContainers").ForEach(func(_, c gjson.Result) bool {
		if c.Get("restartPolicy").Str == "Always" {
			sidecars[c.Get("name").Str] = true
		}
		return true
	})
	o.Path("status.containerStatuses").ForEach(func(_, c gjson.Result) bool {
		all = append(all, container{c, 0})
		return true
	})
	o.Path("status.initContainerStatuses").ForEach(func(_, c gjson.Result) bool {
		rank := 1
		if sidecars[c.Get("name").Str] {
			rank = 2
		}
		all = append(all, container{c, rank})
		return true
	})
	slices.SortStableFunc(all, func(a, b container) int { return cmp.Compare(a.rank, b.rank) })
	return all
}

// failed is the container for which a pod failed: of the first rank of which any did, the one that ended first, since that may
// have made the others end. One that the kubelet could not find any more counts only if there is no other.
func failed(containers []container) container {
	var all []container
	for _, c := range containers {
		if c.Get("state.terminated.exitCode").Int() != 0 {
			all = append(all, c)
		}
	}
	isLost := func(c container) int {
		if c.Get("state.terminated.reason").Str == "ContainerStatusUnknown" {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b container) int {
		return cmp.Or(cmp.Compare(isLost(a), isLost(b)), cmp.Compare(a.rank, b.rank), cmp.Compare(endedAt(a), endedAt(b)))
	})
	return append(all, container{})[0]
}

// endedAt is when a container ended.
func endedAt(c container) history.Time { return moment(c.Get("state.terminated.finishedAt").Str) }

// workload says that Kueue has no quota for the job, has taken it away, or has checks that have not passed.
func workload(o *cluster.Object) (statement, bool) {
	status := o.Path("status")
	reserved, evicted := condition(status, "QuotaReserved"), condition(status, "Evicted")
	switch {
	case condition(status, "Finished").Get("status").Str == "True", condition(status, "Admitted").Get("status").Str == "True":
		return statement{}, false
	case reserved.Get("status").Str == "True":
		return failingCheck(status)
	// The first thing that is said of a workload that was evicted is only that it is pending again.
	case evicted.Get("status").Str == "True" && slices.Contains([]string{"", "Pending"}, reserved.Get("reason").Str):
		return from(evicted, aQueueHolds, "Workload")
	}
	return from(reserved, aQueueHolds, "Workload")
}

// failingCheck is the first of Kueue's admission checks that has not passed.
func failingCheck(status gjson.Result) (said statement, ok bool) {
	status.Get("admissionChecks").ForEach(func(_, check gjson.Result) bool {
		if state := check.Get("state").Str; state == "Ready" || state == "" {
			return true
		}
		message := check.Get("name").Str
		if text := check.Get("message").Str; text != "" {
			message += ": " + text
		}
		said, ok = statement{aQueueHolds, history.Reason{
			At: moment(check.Get("lastTransitionTime").Str), Reason: "AdmissionCheck" + check.Get("state").Str, Message: message, Source: "Workload",
		}}, true
		return false
	})
	return said, ok
}

// podGroup says that there is no room for all pods of the group together. Volcano says so by a condition that remains
// when there is room again, Kubernetes by one that does not.
func podGroup(o *cluster.Object) (statement, bool) {
	status := o.Path("status")
	if c := condition(status, "PodGroupInitiallyScheduled"); c.Get("status").Str == "False" {
		return from(c, aGroupFindsNoNodes, "PodGroup")
	}
	c := condition(status, "Unschedulable")
	waits := slices.Contains([]string{"", "Pending", "Inqueue", "Unknown"}, status.Get("phase").Str)
	if c.Get("status").Str != "True" || !waits {
		return statement{}, false
	}
	return from(c, aGroupFindsNoNodes, "PodGroup")
}

// from is what a condition says; one without a reason says nothing.
func from(c gjson.Result, w weight, source string) (statement, bool) {
	reason := c.Get("reason").Str
	return statement{w, history.Reason{At: moment(c.Get("lastTransitionTime").Str), Reason: reason, Message: c.Get("message").Str, Source: source}}, reason != ""
}

// condition is the condition of a type, or nothing.
func condition(status gjson.Result, kind string) (found gjson.Result) {
	status.Get("conditions").ForEach(func(_, c gjson.Result) bool {
		if c.Get("type").Str == kind {
			found = c
		}
		return !found.Exists()
	})
	return found
}
