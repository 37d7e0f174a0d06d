package objectstatus

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecast/kubecast/internal/cluster"
	jobpods "github.com/kubecast/kubecast/internal/jobs/pods"
)

// Requests returns what derives how much an object of a kind requests of a resource: of pods, by the
// rule of Kubernetes' scheduler, whatever containers request it, as a quantity, or "" if none does.
// It is nil for other kinds.
func Requests(kind schema.GroupResource) func(name string) func(*cluster.Object) string {
	if kind != (schema.GroupResource{Resource: "pods"}) {
		return nil
	}
	return func(name string) func(*cluster.Object) string {
		return func(o *cluster.Object) string {
			if !strings.Contains(o.JSON(), `"`+name+`"`) { // as it is of most pods and most resources
				return ""
			}
			return jobpods.Request(o, name)
		}
	}
}
