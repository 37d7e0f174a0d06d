package table

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecast/kubecast/internal/cluster"
)

// statuses are the columns "Status" that depend on nothing but the object.
var statuses = map[schema.GroupResource]func(*cluster.Object) string{
	{Resource: "pods"}:                   func(o *cluster.Object) string { return podStatusOf(partsOf(o)).reason },
	{Resource: "nodes"}:                  func(o *cluster.Object) string { return nodeStatus(partsOf(o)) },
	{Resource: "namespaces"}:             phase,
	{Resource: "persistentvolumes"}:      volumeStatus,
	{Resource: "persistentvolumeclaims"}: volumeStatus,
}

// Status returns what prints the column "Status" of a built-in kind, without its row; nil for a kind
// that has none, and for Jobs, whose history has words of its own for their states.
func Status(of schema.GroupResource) func(*cluster.Object) string { return statuses[of] }

// PodNumbers returns how many containers of a pod are ready, and how often they were started again, as
// the columns "Ready" and "Restarts" count.
func PodNumbers(pod *cluster.Object) (ready, restarts int) {
	s := podStatusOf(partsOf(pod))
	return s.ready, s.restarts
}
