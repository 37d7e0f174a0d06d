package pending

import (
	"io"
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

// What is told first of a queue has the jobs that wait in it, also where the cluster's queues are followed already and Kueue is slow.
func TestAQueuesFirstSnapshotHasItsJobs(t *testing.T) {
	slow := func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Second)
		_, _ = io.WriteString(w, `{"kind":"PendingWorkloadsSummary","items":[{"metadata":{"name":"one","namespace":"a"},"localQueueName":"line"}]}`)
	}
	withKueue(t, slow, func(c *inCluster) {
		c.api.Put("clusterqueues", "whole")
		c.api.Put("localqueues", "a/line", "spec.clusterQueue=whole")
		c.api.Put("workloads", "a/one", "spec.queueName=line")
		list := c.reads(Queue{})
		defer list.Close()
		c.becomes("the list", list, func(s *Snapshot) bool { return s.Local != nil && s.Local.Len() == 1 })
		time.Sleep(time.Second) // Workloads are known, too
		for range 20 {          // by chance Kueue is asked first even where that is not waited for
			r := c.reads(Queue{Name: "whole"})
			if err := r.Ready(c.t.Context()); err != nil {
				t.Fatal(err)
			}
			if s := r.now(); len(s.Places) != 1 || s.Places[0].Whole != 1 {
				t.Errorf("%+v", s.Places)
			}
			r.Close()
			time.Sleep(5 * time.Second) // it is followed no more
		}
	}, localQueueKind, clusterQueueKind, workloadKind)
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
