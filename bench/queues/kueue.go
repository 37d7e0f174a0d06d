//go:build linux

package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// kueue is an API server with one ClusterQueue, in which jobs wait, and the visibility API that says in which order.
// With each change an urgent job comes to the front, so that all others have other places, and the last is withdrawn.
type kueue struct {
	*source.Source
	server *apiserver.Server
	orders atomic.Int64 // how often it was asked for the order

	mu    sync.Mutex
	order []int // Workloads that wait, by number
	spare int   // the one that does not
	names []string
}

const (
	wholeAt, workloadsAt = 5, 6 // of the kinds
	lines                = 10
	group                = "kueue.x-k8s.io"
	orderPath            = "/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/whole/pendingworkloads"
)

// Start makes so many jobs wait, and listens.
func (k *kueue) Start(jobs int, address *string) (err error) {
	k.names, k.spare = make([]string, jobs+1), jobs
	for n := range jobs {
		k.order = append(k.order, n)
	}
	kind := func(resource, name string, objects int, render apiserver.Render) apiserver.Kind {
		return apiserver.Kind{Group: group, Version: "v1beta2", Resource: resource, Kind: name, Objects: objects, Render: render, Whole: resource == "clusterqueues"}
	}
	k.server = apiserver.New(append(roles(),
		kind("localqueues", "LocalQueue", lines, k.line), kind("clusterqueues", "ClusterQueue", 1, k.whole), kind("workloads", "Workload", jobs+1, k.workload),
		apiserver.Kind{Group: "batch", Version: "v1", Resource: "jobs", Kind: "Job"},
	)...)
	k.Source = source.New(k.change)
	*address, err = apiserver.Serve(k)
	return err
}

// Asked returns the number of requests so far, and how many of them were for the order.
func (k *kueue) Asked(_ process.None, count *[2]int64) error {
	var none process.None
	err := k.server.Asked(none, &count[0])
	count[1] = k.orders.Load()
	count[0] += count[1]
	return err
}

func (k *kueue) line(number int, version uint64, _ mark.Mark) []byte {
	return fmt.Appendf(nil, `{"kind":"LocalQueue","apiVersion":"%s/v1beta2","metadata":{"name":"line","namespace":"%s","uid":"line-%d","resourceVersion":"%d"},"spec":{"clusterQueue":"whole"},"status":{"pendingWorkloads":%d,"admittedWorkloads":0}}`,
		group, namespace(number), number, version, len(k.order)/lines)
}

// whole is the ClusterQueue. The last mark that it had is in the name of its cohort, which whoever sees none of the jobs sees, too.
func (k *kueue) whole(_ int, version uint64, m mark.Mark) []byte {
	cohort := []byte("all")
	if m.Seq > 0 {
		cohort = m.Append([]byte("all-"))
	}
	return fmt.Appendf(nil, `{"kind":"ClusterQueue","apiVersion":"%s/v1beta2","metadata":{"name":"whole","uid":"whole","resourceVersion":"%d"},"spec":{"cohortName":"%s","resourceGroups":[{"coveredResources":["cpu","nvidia.com/gpu"],"flavors":[{"name":"h100","resources":[{"name":"cpu","nominalQuota":"1000"},{"name":"nvidia.com/gpu","nominalQuota":"64"}]}]}]},"status":{"pendingWorkloads":%d,"admittedWorkloads":0}}`,
		group, version, cohort, len(k.order))
}

func namespace(number int) string { return fmt.Sprintf("team-%02d", number%lines) }

// workload is a Workload of its number. The spare one is over, and the last mark that it had is in its job's name.
func (k *kueue) workload(number int, version uint64, m mark.Mark) []byte {
	if m.Seq > 0 {
		k.names[number] = string(m.Append([]byte("train-")))
	} else if k.names[number] == "" {
		k.names[number] = fmt.Sprintf("train-%d", number)
	}
	conditions := `{"type":"QuotaReserved","status":"False","reason":"Pending","message":"couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor h100, 1 more needed","lastTransitionTime":"2026-11-27T00:00:00Z"}`
	if number == k.spare {
		conditions += `,{"type":"Finished","status":"True","reason":"Withdrawn","message":"","lastTransitionTime":"2026-11-27T00:00:00Z"}`
	}
	return fmt.Appendf(nil, `{"kind":"Workload","apiVersion":"%s/v1beta2","metadata":{"name":"job-%d","namespace":"%s","uid":"workload-%d","resourceVersion":"%d","creationTimestamp":"2026-11-27T00:00:00Z","ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"%s","uid":"job-%d","controller":true}]},`+
		`"spec":{"queueName":"line","priority":0,"active":true,"podSets":[{"name":"main","count":4,"template":{"spec":{"containers":[{"name":"trainer","image":"registry.example.org/train:2026.1","resources":{"requests":{"cpu":"8","memory":"64Gi","nvidia.com/gpu":"1"}}}]}}}]},"status":{"conditions":[%s]}}`,
		group, number, namespace(number), number, version, k.names[number], number, conditions)
}

func (k *kueue) change(m mark.Mark) {
	k.mu.Lock()
	comes, goes := k.spare, k.order[len(k.order)-1]
	copy(k.order[1:], k.order)
	k.order[0], k.spare = comes, goes
	k.server.Modify(workloadsAt, comes, m)
	k.server.Modify(workloadsAt, goes, mark.Mark{})
	k.server.Modify(wholeAt, 0, m)
	k.mu.Unlock()
}

func (k *kueue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != orderPath {
		k.server.ServeHTTP(w, r)
		return
	}
	k.orders.Add(1)
	var text strings.Builder
	text.WriteString(`{"kind":"PendingWorkloadsSummary","apiVersion":"visibility.kueue.x-k8s.io/v1beta2","metadata":{},"items":[`)
	k.mu.Lock()
	ahead := [lines]int{}
	for i, n := range k.order {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"metadata":{"name":"job-%d","namespace":"%s","creationTimestamp":"2026-11-27T00:00:00Z","ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"train","uid":"job-%d"}]},"priority":0,"localQueueName":"line","positionInClusterQueue":%d,"positionInLocalQueue":%d}`,
			n, namespace(n), n, i, ahead[n%lines])
		ahead[n%lines]++
	}
	k.mu.Unlock()
	text.WriteString(`]}`)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(text.String())) // a client that has gone is no error
}
