package queues

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs/pods"
)

// Group is the API group of Kueue's kinds.
const Group = "kueue.x-k8s.io"

// Resource is what a queue has of one resource of one flavor. Quantities are as Kubernetes writes them; nil: not known.
type Resource struct {
	Flavor   string  `json:"flavor"`
	Resource string  `json:"resource"`
	Quota    *string `json:"quota"`    // what is its own
	Used     *string `json:"used"`     // what its jobs were given
	Borrowed *string `json:"borrowed"` // how much of that is others'
}

// Queue is a LocalQueue or a ClusterQueue of Kueue, or a Queue of Volcano.
type Queue struct {
	Name         string     `json:"name"`
	Namespace    string     `json:"namespace,omitempty"`
	Kind         string     `json:"kind"`
	ClusterQueue string     `json:"clusterQueue,omitempty"` // of a LocalQueue: the one that it is a part of
	Cohort       string     `json:"cohort,omitempty"`       // whom a ClusterQueue borrows from and lends to
	Parent       string     `json:"parent,omitempty"`       // of a Queue: the one that it is a part of
	Stopped      bool       `json:"stopped,omitempty"`      // it lets nothing in
	Resources    []Resource `json:"resources"`
	Waiting      int        `json:"waiting"`
	Running      int        `json:"running"`
}

// LocalQueue is what a LocalQueue says. What its ClusterQueue has is known only with that, which may be nil.
func LocalQueue(o, clusterQueue *cluster.Object) Queue {
	q := queue(o, "LocalQueue")
	q.ClusterQueue = o.Path("spec.clusterQueue").Str
	used := quantities(o, "total", "status.flavorsUsage", "status.flavorUsage")
	if clusterQueue == nil {
		q.Resources = resources(used, used, nil, nil)
		return q
	}
	q.Cohort = cohort(clusterQueue)
	nominal := quotas(clusterQueue)
	q.Resources = resources(nominal, used, nominal, nil)
	return q
}

// ClusterQueue is what a ClusterQueue says.
func ClusterQueue(o *cluster.Object) Queue {
	q := queue(o, "ClusterQueue")
	q.Cohort = cohort(o)
	nominal := quotas(o)
	q.Resources = resources(nominal, quantities(o, "total", "status.flavorsUsage"), nominal, quantities(o, "borrowed", "status.flavorsUsage"))
	return q
}

func queue(o *cluster.Object, kind string) Queue {
	policy := o.Path("spec.stopPolicy").Str
	return Queue{
		Name: o.GetName(), Namespace: o.GetNamespace(), Kind: kind, Stopped: policy != "" && policy != "None",
		Waiting: int(o.Path("status.pendingWorkloads").Int()), Running: int(o.Path("status.admittedWorkloads").Int()),
	}
}

func cohort(clusterQueue *cluster.Object) string {
	return cmp.Or(clusterQueue.Path("spec.cohortName").Str, clusterQueue.Path("spec.cohort").Str)
}

// of names a resource of a flavor.
type of struct{ flavor, resource string }

// quotas are a ClusterQueue's own.
func quotas(o *cluster.Object) map[of]string {
	found := map[of]string{}
	o.Path("spec.resourceGroups").ForEach(func(_, group gjson.Result) bool {
		group.Get("flavors").ForEach(func(_, flavor gjson.Result) bool {
			flavor.Get("resources").ForEach(func(_, r gjson.Result) bool {
				found[of{flavor.Get("name").Str, r.Get("name").Str}] = r.Get("nominalQuota").String()
				return true
			})
			return true
		})
		return true
	})
	return found
}

// quantities are those of a name in the first list of flavors that there is.
func quantities(o *cluster.Object, name string, paths ...string) map[of]string {
	found := map[of]string{}
	for _, path := range paths {
		o.Path(path).ForEach(func(_, flavor gjson.Result) bool {
			flavor.Get("resources").ForEach(func(_, r gjson.Result) bool {
				if value := r.Get(name); value.Exists() {
					found[of{flavor.Get("name").Str, r.Get("name").Str}] = value.String()
				}
				return true
			})
			return true
		})
		if len(found) > 0 {
			break
		}
	}
	return found
}

// resources are all that are named, in the order of their names. A nil map: nothing of it is known.
func resources(named, used, quota, borrowed map[of]string) []Resource {
	all := []Resource{}
	for _, name := range slices.SortedFunc(maps.Keys(named), func(a, b of) int {
		return cmp.Or(strings.Compare(a.flavor, b.flavor), strings.Compare(a.resource, b.resource))
	}) {
		r := Resource{Flavor: name.flavor, Resource: name.resource}
		r.Quota, r.Used, r.Borrowed = told(quota, name), told(used, name), told(borrowed, name)
		all = append(all, r)
	}
	return all
}

// told is a quantity in the form in which Kubernetes writes it; nil if it is not known. What is not named is none.
func told(all map[of]string, name of) *string {
	if all == nil {
		return nil
	}
	quantity, err := resource.ParseQuantity(cmp.Or(all[name], "0"))
	if err != nil {
		return nil
	}
	text := quantity.String()
	return &text
}

// Job is whose Workload it is, and so what waits.
type Job struct {
	Group, Kind, Name, UID string
}

// JobOf is the job that a Workload stands for: what controls it, else what owns it, else the Workload itself.
func JobOf(workload *cluster.Object) Job {
	var found Job
	workload.Path("metadata.ownerReferences").ForEach(func(_, owner gjson.Result) bool {
		if found.UID == "" || owner.Get("controller").Bool() {
			group, _, grouped := strings.Cut(owner.Get("apiVersion").Str, "/")
			if !grouped {
				group = ""
			}
			found = Job{Group: group, Kind: owner.Get("kind").Str, Name: owner.Get("name").Str, UID: owner.Get("uid").Str}
		}
		return !owner.Get("controller").Bool()
	})
	if found.UID == "" {
		return Job{Group: Group, Kind: "Workload", Name: workload.GetName(), UID: workload.UID()}
	}
	return found
}

// jobs are the kinds that Kueue and Volcano queue by themselves.
var jobs = map[Job]bool{
	{Group: "batch.volcano.sh", Kind: "Job"}: true, {Group: VolcanoGroup, Kind: "PodGroup"}: true,
	{Kind: "Pod"}: true, {Group: Group, Kind: "Workload"}: true, {Group: "batch", Kind: "Job"}: true, {Group: "jobset.x-k8s.io", Kind: "JobSet"}: true,
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true, {Group: "leaderworkerset.x-k8s.io", Kind: "LeaderWorkerSet"}: true,
	{Group: "kubeflow.org", Kind: "MPIJob"}: true, {Group: "kubeflow.org", Kind: "PyTorchJob"}: true, {Group: "kubeflow.org", Kind: "TFJob"}: true,
	{Group: "kubeflow.org", Kind: "XGBoostJob"}: true, {Group: "kubeflow.org", Kind: "PaddleJob"}: true, {Group: "kubeflow.org", Kind: "JAXJob"}: true,
	{Group: "trainer.kubeflow.org", Kind: "TrainJob"}: true, {Group: "ray.io", Kind: "RayJob"}: true, {Group: "ray.io", Kind: "RayCluster"}: true, {Group: "ray.io", Kind: "RayService"}: true,
	{Group: "workload.codeflare.dev", Kind: "AppWrapper"}: true, {Group: "sparkoperator.k8s.io", Kind: "SparkApplication"}: true,
}

// IsJob reports whether Kueue or Volcano queues objects of a kind by itself.
func IsJob(group, kind string) bool { return jobs[Job{Group: group, Kind: kind}] }

// Waits reports whether a Workload waits in its queue: it is active, has no quota and is not over.
func Waits(workload *cluster.Object) bool {
	status := workload.Path("status")
	return workload.Path("spec.active").Type != gjson.False && !is(status, "Finished") && !is(status, "QuotaReserved")
}

// Admitted is which ClusterQueue has given a Workload its quota, and since when; it is not ok if none has, or the Workload is over.
func Admitted(workload *cluster.Object) (clusterQueue string, since time.Time, ok bool) {
	status := workload.Path("status")
	reserved := pods.Condition(status, "QuotaReserved")
	if reserved.Get("status").Str != "True" || is(status, "Finished") {
		return "", since, false
	}
	since, _ = time.Parse(time.RFC3339, reserved.Get("lastTransitionTime").Str) // the zero time: long ago
	return status.Get("admission.clusterQueue").Str, since, true
}

func is(status gjson.Result, condition string) bool {
	return pods.Condition(status, condition).Get("status").Str == "True"
}

// Since is when a Workload began to wait: when it came, or when it was taken back last.
func Since(workload *cluster.Object) time.Time {
	since, _ := time.Parse(time.RFC3339, workload.Path("metadata.creationTimestamp").Str) // an API server always says it
	status := workload.Path("status")
	if evicted := pods.Condition(status, "Evicted"); evicted.Get("status").Str == "True" {
		if at, err := time.Parse(time.RFC3339, evicted.Get("lastTransitionTime").Str); err == nil && at.After(since) {
			since = at
		}
	}
	return since
}

const (
	// mostResources bounds of how many resources it is told how much is requested.
	mostResources = 32
	// longestResource is how long the name of a resource is at most: a domain, a slash and a label. Where objects
	// are not checked for that, longer ones are left out.
	longestResource = 253 + 1 + 63
)

// Requests is what all pods of a Workload request together, by Kubernetes' own rule.
func Requests(workload *cluster.Object) map[string]string {
	sum := corev1.ResourceList{}
	workload.Path("spec.podSets").ForEach(func(_, set gjson.Result) bool {
		count := max(0, set.Get("count").Int())
		requests := resourcehelper.PodRequests(&corev1.Pod{Spec: pods.Requesting(set.Get("template.spec"))}, resourcehelper.PodResourcesOptions{})
		for name, quantity := range requests {
			total, known := sum[name]
			if !known && len(sum) >= mostResources || len(name) > longestResource {
				continue
			}
			quantity.Mul(count)
			total.Add(quantity)
			sum[name] = total
		}
		return true
	})
	texts := make(map[string]string, len(sum))
	for name, quantity := range sum {
		texts[string(name)] = quantity.String()
	}
	return texts
}

// Queued is the name of the LocalQueue in which a Workload waits, in the Workload's namespace.
func Queued(workload *cluster.Object) string { return workload.Path("spec.queueName").Str }

// Rank is where a Workload stands among others, as far as it says so itself: Kueue's order where it is not told.
type Rank struct {
	letIn    bool // of a PodGroup: it waits for nodes only
	priority int64
	since    time.Time
	id       string // orders those of one moment
}

// RankOf is a Workload's rank.
func RankOf(workload *cluster.Object) Rank {
	return Rank{priority: workload.Path("spec.priority").Int(), since: Since(workload), id: workload.UID()}
}

// Compare orders ranks: who was let in first, then by priority, and then by when they began to wait.
func (r Rank) Compare(other Rank) int {
	if r.letIn != other.letIn {
		if r.letIn {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(other.priority, r.priority), r.since.Compare(other.since), strings.Compare(r.id, other.id))
}
