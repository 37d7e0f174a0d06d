package queues

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubecast/kubecast/internal/cluster"
)

// VolcanoGroup is the API group of Volcano's queues and PodGroups.
const VolcanoGroup = "scheduling.volcano.sh"

// VolcanoQueue is what a Queue of Volcano says. It has no flavors. What is its own is what it deserves (spec.deserved, of the
// capacity plugin), and else all that it may have (spec.capability).
func VolcanoQueue(o *cluster.Object) Queue {
	state := o.Path("status.state").Str
	q := Queue{
		Name: o.GetName(), Kind: "Queue", Parent: o.Path("spec.parent").Str, Stopped: state == "Closed" || state == "Closing",
		Waiting: int(o.Path("status.pending").Int() + o.Path("status.inqueue").Int()), Running: int(o.Path("status.running").Int() + o.Path("status.unknown").Int()),
	}
	deserved, capability, used := ofList(o.Path("spec.deserved")), ofList(o.Path("spec.capability")), ofList(o.Path("status.allocated"))
	named := map[of]string{}
	for _, some := range []map[of]string{used, capability, deserved} {
		maps.Copy(named, some)
	}
	q.Resources = resources(named, used, nil, nil)
	for i := range q.Resources {
		r := &q.Resources[i]
		name := of{resource: r.Resource}
		if _, has := deserved[name]; has {
			r.Quota = told(deserved, name)
			r.Borrowed = beyond(r.Used, r.Quota)
		} else if _, has := capability[name]; has {
			r.Quota = told(capability, name)
		}
	}
	return q
}

// ofList are the first quantities of a ResourceList, but for how many objects there may be.
func ofList(list gjson.Result) map[of]string {
	found := map[of]string{}
	list.ForEach(func(name, quantity gjson.Result) bool {
		if isResource(name.Str) {
			found[of{resource: name.Str}] = quantity.String()
		}
		return len(found) < mostResources
	})
	return found
}

// isResource reports whether a name is that of what pods request, and not of a limit of Kubernetes' quotas.
func isResource(name string) bool {
	return len(name) <= longestResource && name != "pods" && name != "attachable-volumes" && !strings.HasPrefix(name, "count/") && !strings.HasPrefix(name, "requests.") && !strings.HasPrefix(name, "limits.")
}

// beyond is by how much a quantity is more than another; nil: not known.
func beyond(used, quota *string) *string {
	if used == nil || quota == nil {
		return nil
	}
	more, own := resource.MustParse(*used), resource.MustParse(*quota) // both were written from quantities
	if more.Sub(own); more.Sign() < 0 {
		more = resource.Quantity{}
	}
	text := more.String()
	return &text
}

// VolcanoQueueOf is the name of the Queue in which a PodGroup of Volcano is.
func VolcanoQueueOf(group *cluster.Object) string {
	return cmp.Or(group.Path("spec.queue").Str, "default")
}

// PodGroupWaits reports whether a PodGroup of Volcano waits: its queue has not let it in, or has, and its pods are not placed.
func PodGroupWaits(group *cluster.Object) bool {
	switch group.Path("status.phase").Str {
	case "", "Pending", "Inqueue":
		return true
	}
	return false
}

// PodGroupJob is the job that a PodGroup of Volcano stands for: what controls it, else what owns it, else the PodGroup itself.
func PodGroupJob(group *cluster.Object) Job {
	job := JobOf(group)
	if job.UID == group.UID() {
		job.Group, job.Kind = VolcanoGroup, "PodGroup"
	}
	return job
}

// PodGroupSince is since when a PodGroup waits: it is not said when one was taken back.
func PodGroupSince(group *cluster.Object) time.Time {
	since, _ := time.Parse(time.RFC3339, group.Path("metadata.creationTimestamp").Str) // an API server always says it
	return since
}

// PodGroupRequests is what a PodGroup needs to begin.
func PodGroupRequests(group *cluster.Object) map[string]string {
	texts, least := map[string]string{}, ofList(group.Path("spec.minResources"))
	for name := range least {
		if text := told(least, name); text != nil {
			texts[name.resource] = *text
		}
	}
	return texts
}

// PodGroupRank is where a PodGroup stands among others of its Queue. Those that were let in go first: Volcano finds nodes for
// no others. They are ordered as Volcano's priority plugin does, and Volcano itself those of one priority: by when they were
// made, and then by namespace and name. The gang and drf plugins make no difference between jobs of which nothing runs.
func PodGroupRank(group *cluster.Object, priority int64) Rank {
	return Rank{
		letIn: group.Path("status.phase").Str == "Inqueue", priority: priority, since: PodGroupSince(group), id: group.GetNamespace() + "/" + group.GetName(),
	}
}
