package objectstatus

import (
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/table"
)

// Numbers returns what derives the values at $ready and $restarts of a kind's objects: of pods, the
// numbers of kubectl's columns READY and RESTARTS. It is nil for other kinds.
func Numbers(kind schema.GroupResource) map[string]func(*cluster.Object) string {
	if kind != (schema.GroupResource{Resource: "pods"}) {
		return nil
	}
	return podNumbers
}

var podNumbers = map[string]func(*cluster.Object) string{
	cache.ReadyPath: func(o *cluster.Object) string {
		ready, _ := table.PodNumbers(o)
		return strconv.Itoa(ready)
	},
	cache.RestartsPath: func(o *cluster.Object) string {
		_, restarts := table.PodNumbers(o)
		return strconv.Itoa(restarts)
	},
}
