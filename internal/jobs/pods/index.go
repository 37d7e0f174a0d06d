package pods

import (
	"cmp"
	"strings"

	"github.com/kubecast/kubecast/internal/cluster"
)

// numbered is how a controller numbers the pods of a job: by a role, if there are several kinds of
// pods, and by indexes within it. Each is a label or an annotation.
type numbered struct {
	role    []string // the first that is there
	indexes []string // all of them; the last must be there
}

const (
	jobName         = "batch.kubernetes.io/job-name"
	completionIndex = "batch.kubernetes.io/job-completion-index"
	jobSetName      = "jobset.sigs.k8s.io/jobset-name"
)

var numberings = []numbered{
	{[]string{"training.kubeflow.org/replica-type", "training.kubeflow.org/job-role"}, []string{"training.kubeflow.org/replica-index"}},
	{[]string{"volcano.sh/task-spec"}, []string{"volcano.sh/task-index"}},
	{nil, []string{"leaderworkerset.sigs.k8s.io/group-index", "leaderworkerset.sigs.k8s.io/worker-index"}},
	{[]string{"spark-role"}, []string{"spark-exec-id"}},
	{[]string{"ray.io/group"}, []string{"ray.io/replica-index"}},
	{[]string{"jobset.sigs.k8s.io/replicatedjob-name"}, []string{"jobset.sigs.k8s.io/job-index", completionIndex}},
	{nil, []string{completionIndex}},
	{nil, []string{"apps.kubernetes.io/pod-index"}},
}

// indexOf is which of its job's pods this is; "" if they are not numbered. A JobSet's pod is called
// as its Job is, within the JobSet, and by its index there: workers-1-0.
func indexOf(o *cluster.Object) string {
	value := func(name string) string { return cmp.Or(o.Get(name), annotation(o, name)) }
	if set := o.Get(jobSetName); set != "" {
		if job, ok := strings.CutPrefix(o.Get(jobName), set+"-"); ok && job != "" {
			return joined(job, value(completionIndex))
		}
	}
	for _, n := range numberings {
		if value(n.indexes[len(n.indexes)-1]) == "" {
			continue
		}
		index := ""
		for _, role := range n.role {
			if index = value(role); index != "" {
				break
			}
		}
		for _, name := range n.indexes {
			index = joined(index, value(name))
		}
		return index
	}
	return ""
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "-" + b
}
