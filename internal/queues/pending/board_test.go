package pending

import (
	"net/http"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/queues"
)

var (
	localQueueKind   = cluster.Kind{Group: queues.Group, Version: "v1beta2", Resource: "localqueues", Kind: "LocalQueue", Namespaced: true, Watchable: true}
	clusterQueueKind = cluster.Kind{Group: queues.Group, Version: "v1beta2", Resource: "clusterqueues", Kind: "ClusterQueue", Watchable: true}
	workloadKind     = cluster.Kind{Group: queues.Group, Version: "v1beta2", Resource: "workloads", Kind: "Workload", Namespaced: true, Watchable: true}
)

// The list of queues needs queues' own objects, and neither Workloads nor PodGroups, whether these may not be read or cannot be just now.
func TestTheListOfQueuesNeedsNoJobs(t *testing.T) {
	for _, code := range []int{http.StatusForbidden, http.StatusInternalServerError} {
		inABubble(t, func(c *inCluster) {
			c.api.Put("localqueues", "a/line", "spec.clusterQueue=whole")
			c.api.Put("clusterqueues", "whole")
			c.api.Put("queues", "shared")
			c.api.Fail("workloads", code)
			c.api.Fail("podgroups", code)
			r := c.reads(Queue{})
			defer r.Close()
			c.becomes("the list", r, func(s *Snapshot) bool {
				return s.Volcano != nil && s.Local != nil && s.Local.Len() == 1 && s.Whole.Len() == 1
			})
			if code != http.StatusForbidden {
				return
			}
			whole := c.reads(Queue{Name: "whole"})
			defer whole.Close()
			c.becomes("a queue without its Workloads", whole, func(s *Snapshot) bool { return s.Local != nil })
		}, localQueueKind, clusterQueueKind, workloadKind, queueKind, podGroupKind, classKind)
	}
}

// Where there are no queues, nothing is made anew again and again.
func TestWithoutQueuesNothingIsMadeAnew(t *testing.T) {
	inABubble(t, func(c *inCluster) {
		r := c.reads(Queue{})
		defer r.Close()
		time.Sleep(time.Minute)
		before := r.now()
		if time.Sleep(10 * time.Minute); before == nil || r.now() != before {
			t.Errorf("%+v became %+v", before, r.now())
		}
	})
}
