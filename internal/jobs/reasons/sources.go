package reasons

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/pods"
)

// source is a kind whose objects say something of other objects' jobs, or that stands between a job and such objects.
type source struct {
	kind string                                          // resource[.group]
	says func(*cluster.Object) (said statement, ok bool) // nil: it says only to which object it belongs
	// labels are the labels by which an object names the uid of the object to which it belongs, beside its owners.
	labels []string
	// counted says that those of them that say nothing are counted for what controls them.
	counted bool
	// lookedUp says that its objects say nothing by themselves, and are looked up.
	lookedUp bool
}

// statement is what one object says.
type statement struct {
	weight weight
	jobs.Reason
	// evicted is why a queue has taken the job back, until it lets it in again; zero of all others.
	// Meanwhile the Reason may have become another: why the queue does not let it in.
	evicted jobs.Reason
	// claims are the resource claims, by commas, for which no node has free devices, of a pod in a namespace.
	claims, namespace string
	// ofPod says that it is said of a pod that cannot begin, in place of what that says itself.
	ofPod bool
	// request is the name of the ProvisioningRequest that a pod says it is to run on the nodes of, if no node takes it.
	request string
}

// weight orders statements: the one with the greatest weight is why a job waits. What a queue says comes before what
// happens after the queue has let a job pass. What a group says comes before what its pods say.
type weight int

const (
	aQueueWaitsForRecovery weight = iota + 1 // the least, by which WhyInPart finds it
	aQueueWaitsForPods
	aPodHasFailed
	aPodIsGated
	aPodFindsNoNode
	anAutoscalerAddsNodes // for a pod that finds no node
	anAutoscalerAddsNone
	aPodCannotBegin
	aGroupFindsNoNodes
	nodesAreWaitedFor
	aQueueHolds
)

// explaining are the kinds that say why jobs wait.
var explaining = []source{
	{kind: "pods", says: pod, counted: true},
	{kind: "workloads.kueue.x-k8s.io", says: workload, labels: []string{"kueue.x-k8s.io/job-uid"}},
	{kind: "podgroups.scheduling.volcano.sh", says: volcanoGroup},
	{kind: "podgroups.scheduling.x-k8s.io", says: podGroup},
	{kind: "podgroups.scheduling.k8s.io", says: podGroup},
	{kind: provisioningRequests, says: provisioning},
}

// between are the kinds that stand between a kind of jobs and its pods, whether they have a history
// or not. Jobs may own jobs: a TrainJob owns a JobSet, whose Jobs own the pods.
var between = map[string]string{
	"rayjobs.ray.io": "rayclusters.ray.io", "trainjobs.trainer.kubeflow.org": "jobsets.jobset.x-k8s.io", "pipelineruns.tekton.dev": "taskruns.tekton.dev",
	"rayservices.ray.io": "rayclusters.ray.io", "leaderworkersets.leaderworkerset.x-k8s.io": "statefulsets.apps",
}

// provisioningRequests is the kind that pods may also name, by annotation.
const provisioningRequests = "provisioningrequests.autoscaling.x-k8s.io"

// claims is the kind of which objects say which devices pods were given.
const claims = "resourceclaims.resource.k8s.io"

// sourcesFor are the kinds that are read for the jobs of some kinds.
func sourcesFor(jobs []string) []source {
	all := append(slices.Clone(explaining), source{kind: claims, lookedUp: true})
	for _, kind := range jobs {
		for _, kind := range []string{kind, between[kind]} {
			if kind != "" && !slices.ContainsFunc(all, func(s source) bool { return s.kind == kind }) {
				all = append(all, source{kind: kind})
			}
		}
	}
	return all
}

// pod says that no node takes the pod, that one of its containers cannot begin, or why it failed.
func pod(o *cluster.Object) (said statement, ok bool) {
	if o.Path("metadata.deletionTimestamp").Exists() {
		return said, false // it is being deleted, so it does not matter what it waited for
	}
	status := o.Path("status")
	weigh := func(w weight, reason, message, at string) {
		if said.weight < w && !pods.IsPassing(reason) {
			said, ok = statement{weight: w, Reason: jobs.Reason{At: jobs.ParseTime(at), Reason: reason, Message: message, Source: "Pod"}}, true
		}
	}
	containers := pods.Containers(o)
	for _, container := range containers {
		if waits := container.Get("state.waiting"); waits.Exists() {
			weigh(aPodCannotBegin, waits.Get("reason").Str, waits.Get("message").Str, "")
		}
	}
	if status.Get("phase").Str == "Failed" {
		weigh(aPodHasFailed, status.Get("reason").Str, status.Get("message").Str, "")
		if c, failed := pods.Decisive(containers); failed {
			ended := c.Get("state.terminated")
			message := ended.Get("message").Str
			if message == "" {
				message = "container " + c.Get("name").Str + " ended with exit code " + strconv.FormatInt(ended.Get("exitCode").Int(), 10)
			}
			weigh(aPodHasFailed, ended.Get("reason").Str, message, ended.Get("finishedAt").Str)
		}
	}
	if scheduled := pods.Condition(status, "PodScheduled"); scheduled.Get("status").Str == "False" {
		w := aPodFindsNoNode
		if scheduled.Get("reason").Str == "SchedulingGated" {
			w = aPodIsGated
		}
		weigh(w, scheduled.Get("reason").Str, scheduled.Get("message").Str, scheduled.Get("lastTransitionTime").Str)
		if ok && said.weight == aPodFindsNoNode && strings.Contains(said.Message, "cannot allocate all claims") {
			claims := pods.Claims(o)
			said.claims, said.namespace = strings.Join(claims[:min(len(claims), mostClaims)], ","), o.GetNamespace()
		}
		if ok && said.weight == aPodFindsNoNode {
			said.request = consumes(o)
		}
	}
	return said, ok
}

// workload says why Kueue does not let the job run, and beside that why it was evicted, as long as that stands.
func workload(o *cluster.Object) (said statement, ok bool) {
	said, ok = queueing(o)
	if evicted := pods.Condition(o.Path("status"), "Evicted"); ok && evicted.Get("status").Str == "True" {
		why, _ := from(evicted, aQueueHolds, jobs.WorkloadSays)
		said.evicted = why.Reason
	}
	return said, ok
}

// queueing says that Kueue has no quota for the job, has taken it away, has checks that have not
// passed, has no topology for it yet, or has given it up; and of a job that it has let in, that it
// waits for its pods.
func queueing(o *cluster.Object) (statement, bool) {
	status := o.Path("status")
	is := func(c gjson.Result) bool { return c.Get("status").Str == "True" }
	reserved, evicted := pods.Condition(status, "QuotaReserved"), pods.Condition(status, "Evicted")
	givenUp := is(evicted) && strings.HasPrefix(evicted.Get("reason").Str, deactivated)
	switch {
	case is(pods.Condition(status, "Finished")):
		return statement{}, false
	case o.Path("spec.active").Type == gjson.False: // until somebody activates it again, whatever else is said
		if givenUp {
			return from(evicted, aQueueHolds, jobs.WorkloadSays)
		}
		return statement{weight: aQueueHolds, Reason: jobs.Reason{Reason: deactivated, Message: "the workload is deactivated", Source: jobs.WorkloadSays}}, true
	// A workload that is evicted stays admitted until its pods are gone. The first thing that is
	// said of it then is only that it is pending again. One that was given up stays evicted, too,
	// when it is activated again, until it has quota; then it waits for that.
	case is(evicted) && !givenUp && (is(reserved) || slices.Contains([]string{"", "Pending"}, reserved.Get("reason").Str)):
		return from(evicted, aQueueHolds, jobs.WorkloadSays)
	case is(pods.Condition(status, "Admitted")):
		return unready(status)
	case is(reserved):
		if said, ok := failingCheck(status); ok {
			return said, ok
		}
		return pendingTopology(status)
	}
	return from(reserved, aQueueHolds, jobs.WorkloadSays)
}

// deactivated is how the reasons begin with which Kueue gives a workload up.
const deactivated = "Deactivated"

// unready is what Kueue says of a job that it has let in and whose pods it waits for (waitForPodsReady): what pods
// say themselves says more.
func unready(status gjson.Result) (statement, bool) {
	ready := pods.Condition(status, "PodsReady")
	if ready.Get("status").Str != "False" {
		return statement{}, false
	}
	if ready.Get("reason").Str == "WaitForRecovery" {
		return from(ready, aQueueWaitsForRecovery, jobs.WorkloadSays)
	}
	return from(ready, aQueueWaitsForPods, jobs.WorkloadSays)
}

// pendingTopology says that Kueue has reserved quota, and finds out later on which nodes.
func pendingTopology(status gjson.Result) (statement, bool) {
	admitted := pods.Condition(status, "Admitted")
	if admitted.Get("status").Str != "False" || !strings.Contains(admitted.Get("reason").Str, "Topology") {
		return statement{}, false
	}
	return from(admitted, aQueueHolds, jobs.WorkloadSays)
}

// failingCheck is what counts most of Kueue's admission checks that have not passed: one that was rejected or is tried again
// says more than one that has not been answered.
func failingCheck(status gjson.Result) (said statement, ok bool) {
	most := 0
	status.Get("admissionChecks").ForEach(func(_, check gjson.Result) bool {
		state := check.Get("state").Str
		if state == "Ready" || state == "" || ok && checkWeighs[state] <= most {
			return true
		}
		message := check.Get("name").Str
		if text := check.Get("message").Str; text != "" {
			message += ": " + text
		}
		said, ok, most = statement{weight: aQueueHolds, Reason: jobs.Reason{
			At: jobs.ParseTime(check.Get("lastTransitionTime").Str), Reason: "AdmissionCheck" + state, Message: message, Source: jobs.WorkloadSays,
		}}, true, checkWeighs[state]
		return true
	})
	return said, ok
}

var checkWeighs = map[string]int{"Rejected": 2, "Retry": 1}

// podGroup says that there is no room for all pods of the group together. Volcano and coscheduling say so by a condition
// that remains when there is room again, Kubernetes by one that does not.
func podGroup(o *cluster.Object) (statement, bool) {
	status := o.Path("status")
	if c := pods.Condition(status, "PodGroupInitiallyScheduled"); c.Get("status").Str == "False" {
		return from(c, aGroupFindsNoNodes, "PodGroup")
	}
	c := pods.Condition(status, "Unschedulable")
	if c.Get("status").Str == "True" && slices.Contains([]string{"", "Pending", "Inqueue", "Unknown"}, status.Get("phase").Str) {
		return from(c, aGroupFindsNoNodes, "PodGroup")
	}
	return statement{}, false
}

// volcanoGroup is podGroup of Volcano's, which have queues: one that is not let into its queue has no condition, but for its phase.
func volcanoGroup(o *cluster.Object) (statement, bool) {
	if said, ok := podGroup(o); ok {
		return said, ok
	}
	phase, queue := o.Path("status.phase").Str, cmp.Or(o.Path("spec.queue").Str, "default")
	said := func(w weight, message string) (statement, bool) {
		return statement{weight: w, Reason: jobs.Reason{Reason: phase, Message: message, Source: "PodGroup"}}, true
	}
	switch phase {
	case "Pending":
		return said(aGroupFindsNoNodes, "the queue "+queue+" has not let it in yet")
	case "Inqueue":
		return said(aQueueWaitsForPods, "the queue "+queue+" has let it in, and its pods are waited for")
	}
	return statement{}, false
}

// provisioning says that the cluster autoscaler has not made the nodes that a ProvisioningRequest asks for, or has failed to, in its
// own words. That they are not kept any longer counts only where pods say nothing: these may be on them.
func provisioning(o *cluster.Object) (statement, bool) {
	status := o.Path("status")
	is := func(name string) (gjson.Result, bool) {
		c := pods.Condition(status, name)
		return c, c.Get("status").Str == "True"
	}
	for _, over := range []string{"CapacityRevoked", "BookingExpired"} {
		if c, ok := is(over); ok {
			return provisioningSays(c, over, aQueueWaitsForPods)
		}
	}
	if c, ok := is("Failed"); ok {
		return provisioningSays(c, "Failed", nodesAreWaitedFor)
	}
	c, ok := is("Provisioned")
	if ok || !c.Exists() {
		return statement{}, false
	}
	return provisioningSays(c, "Provisioned", nodesAreWaitedFor)
}

func provisioningSays(c gjson.Result, name string, w weight) (statement, bool) {
	said, ok := from(c, w, "ProvisioningRequest")
	if !ok {
		said.Reason.Reason = name
	}
	return said, true
}

// from is what a condition says; one without a reason says nothing.
func from(c gjson.Result, w weight, source string) (statement, bool) {
	reason := c.Get("reason").Str
	return statement{weight: w, Reason: jobs.Reason{At: jobs.ParseTime(c.Get("lastTransitionTime").Str), Reason: reason, Message: c.Get("message").Str, Source: source}}, reason != ""
}
