package rules

import (
	"github.com/tidwall/gjson"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs/pods"
)

const (
	maxDepth    = 12      // of templates within a spec; those of RayJob are the deepest, at four
	maxReplicas = 1 << 20 // of one template
)

// requestsOf is what all pods of a job request together. Each pod template in the job's spec counts as often as the
// object around it says, by replicas, parallelism or the like. If the pods of a job are described elsewhere, it is not
// known what they request, and it counts as nothing.
func requestsOf(o *cluster.Object) map[string]string {
	total := corev1.ResourceList{}
	addTemplates(total, o.Path("spec"), 1, maxDepth)
	if len(total) == 0 {
		return nil
	}
	texts := make(map[string]string, len(total))
	for name, quantity := range total {
		texts[string(name)] = quantity.String()
	}
	return texts
}

// addTemplates adds what the templates in a value request, multiplied by a number.
func addTemplates(total corev1.ResourceList, value gjson.Result, times int64, depth int) {
	if depth == 0 || !value.IsObject() && !value.IsArray() {
		return
	}
	if value.IsObject() {
		if spec := value.Get("template.spec"); spec.Get("containers").IsArray() {
			addPod(total, spec, product(times, timesOf(value)))
			return
		}
		if value.Get("template").IsObject() {
			times = product(times, timesOf(value))
		}
	}
	value.ForEach(func(_, member gjson.Result) bool {
		addTemplates(total, member, times, depth-1)
		return true
	})
}

// timesOf is how many pods there are of the template in an object: for a Job as many as run at
// once, else replicas, else one.
func timesOf(around gjson.Result) int64 {
	if parallelism := around.Get("parallelism"); parallelism.Exists() && parallelism.Type == gjson.Number {
		n := parallelism.Int()
		if completions := around.Get("completions"); completions.Type == gjson.Number {
			n = min(n, completions.Int())
		}
		return n
	}
	for _, number := range []string{"replicas", "count"} { // the latter of a Workload's pod sets
		if n := around.Get(number); n.Type == gjson.Number {
			return n.Int()
		}
	}
	return 1
}

func product(a, b int64) int64 { return min(a*min(max(b, 0), maxReplicas), maxReplicas) }

// addPod adds what a pod of a spec requests, multiplied by a number. If a container has a limit and no request, the
// limit counts as its request, as at the API server.
func addPod(total corev1.ResourceList, spec gjson.Result, times int64) {
	pod := corev1.Pod{Spec: pods.Requesting(spec)} // a custom resource may hold something that is no pod
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			for name, limit := range r.Limits {
				if _, requested := r.Requests[name]; !requested {
					if r.Requests == nil {
						r.Requests = corev1.ResourceList{}
					}
					r.Requests[name] = limit
				}
			}
		}
	}
	for name, quantity := range resourcehelper.PodRequests(&pod, resourcehelper.PodResourcesOptions{}) {
		sum := total[name]
		sum.Add(scaled(quantity, times))
		total[name] = sum
	}
}

// scaled is a quantity times a number.
func scaled(quantity resource.Quantity, times int64) resource.Quantity {
	quantity.Mul(times)
	return quantity
}
