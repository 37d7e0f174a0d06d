package pods

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
)

// injected are containers that meshes and the like put among a pod's own, by their names.
var injected = []string{"istio-proxy", "linkerd-proxy", "kuma-sidecar", "consul-dataplane", "daprd", "vault-agent", "gke-gcsfuse-sidecar", "cloud-sql-proxy"}

// sidecarsOf are the names of the containers that do none of the pod's work: init containers that
// are restarted (Kubernetes' own sidecars), what Istio says it has put in, what is known by its
// name, Argo's executor, and what Tekton calls a sidecar.
func sidecarsOf(o *cluster.Object) map[string]bool {
	sidecars := make(map[string]bool, len(injected))
	for _, name := range injected {
		sidecars[name] = true
	}
	o.Path("spec.initContainers").ForEach(func(_, c gjson.Result) bool {
		if c.Get("restartPolicy").Str == "Always" {
			sidecars[c.Get("name").Str] = true
		}
		return true
	})
	if status := annotation(o, "sidecar.istio.io/status"); gjson.Valid(status) {
		gjson.Get(status, "containers").ForEach(func(_, name gjson.Result) bool {
			sidecars[name.Str] = true
			return true
		})
	}
	if o.Get("workflows.argoproj.io/workflow") != "" {
		sidecars["wait"] = true
	}
	if o.Get("tekton.dev/taskRun") != "" {
		o.Path("spec.containers").ForEach(func(_, c gjson.Result) bool {
			if name := c.Get("name").Str; strings.HasPrefix(name, "sidecar-") {
				sidecars[name] = true
			}
			return true
		})
	}
	return sidecars
}

// annotation is the value of one; "" if there is none.
func annotation(o *cluster.Object, name string) string {
	return o.Path("metadata.annotations." + strings.ReplaceAll(name, ".", `\.`)).Str
}
