package pods

import (
	"encoding/json"

	"github.com/tidwall/gjson"
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
)

// requestsOf is what a pod requests by Kubernetes' own rule, with which its scheduler counts: what
// is asked for the pod as a whole, else what its containers and sidecars ask for together, or an
// init container at its time if that is more; and its overhead.
func requestsOf(spec gjson.Result) map[string]string {
	all := resourcehelper.PodRequests(&corev1.Pod{Spec: Requesting(spec)}, resourcehelper.PodResourcesOptions{})
	if len(all) == 0 {
		return nil
	}
	texts := make(map[string]string, len(all))
	for name, quantity := range all {
		texts[string(name)] = quantity.String()
	}
	return texts
}

// Request is what a pod requests of one resource, as its scheduler counts; "" if that is nothing.
func Request(o *cluster.Object, name string) string {
	all := resourcehelper.PodRequests(&corev1.Pod{Spec: Requesting(o.Path("spec"))}, resourcehelper.PodResourcesOptions{})
	amount, there := all[corev1.ResourceName(name)]
	if !there || amount.Sign() <= 0 {
		return ""
	}
	return amount.String()
}

// Requesting is what of a pod's spec says what the pod requests. Nothing else is unmarshalled. What
// is no such thing, as the API server never sends it of a pod, counts as nothing, nor does what
// cannot be counted with.
func Requesting(spec gjson.Result) (pod corev1.PodSpec) {
	read := func(of gjson.Result, into any) bool {
		return of.Exists() && jobs.Countable(of.Raw) && json.Unmarshal([]byte(of.Raw), into) == nil
	}
	resources := func(of gjson.Result) (r corev1.ResourceRequirements) {
		if !read(of, &r) {
			return corev1.ResourceRequirements{}
		}
		return r
	}
	containers := func(path string) (all []corev1.Container) {
		spec.Get(path).ForEach(func(_, c gjson.Result) bool {
			container := corev1.Container{Name: c.Get("name").Str, Resources: resources(c.Get("resources"))}
			if policy := corev1.ContainerRestartPolicy(c.Get("restartPolicy").Str); policy != "" {
				container.RestartPolicy = &policy
			}
			all = append(all, container)
			return true
		})
		return all
	}
	pod.Containers, pod.InitContainers = containers("containers"), containers("initContainers")
	if whole := spec.Get("resources"); whole.Exists() {
		r := resources(whole)
		pod.Resources = &r
	}
	if !read(spec.Get("overhead"), &pod.Overhead) {
		pod.Overhead = nil
	}
	return pod
}

// Claims are the names of the resource claims that a pod uses, made for it or made before it. What
// a pod was given for an extended resource is among its requests already.
func Claims(o *cluster.Object) (names []string) {
	made := map[string]string{}
	o.Path("status.resourceClaimStatuses").ForEach(func(_, c gjson.Result) bool {
		made[c.Get("name").Str] = c.Get("resourceClaimName").Str
		return true
	})
	o.Path("spec.resourceClaims").ForEach(func(_, c gjson.Result) bool {
		name := c.Get("resourceClaimName").Str
		if name == "" {
			name = made[c.Get("name").Str]
		}
		if name != "" {
			names = append(names, name)
		}
		return true
	})
	return names
}

// Devices are those that a ResourceClaim was given, each once. Access for administration takes a device from nobody.
func Devices(claim *cluster.Object) (devices []jobs.Device) {
	seen := map[jobs.Device]bool{}
	claim.Path("status.allocation.devices.results").ForEach(func(_, r gjson.Result) bool {
		d := jobs.Device{Driver: r.Get("driver").Str, Pool: r.Get("pool").Str, Device: r.Get("device").Str}
		if !r.Get("adminAccess").Bool() && !seen[d] {
			seen[d] = true
			devices = append(devices, d)
		}
		return true
	})
	return devices
}

// DeviceClasses are the classes of the devices that a resource claim asks for, in whatever version of its API.
func DeviceClasses(claim *cluster.Object) (classes []string) {
	add := func(class gjson.Result) {
		if class.Str != "" {
			classes = append(classes, class.Str)
		}
	}
	claim.Path("spec.devices.requests").ForEach(func(_, r gjson.Result) bool {
		add(r.Get("deviceClassName"))
		add(r.Get("exactly.deviceClassName"))
		r.Get("firstAvailable").ForEach(func(_, one gjson.Result) bool {
			add(one.Get("deviceClassName"))
			return true
		})
		return len(classes) < 64
	})
	return classes
}
