//go:build linux

package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// APIServer is the source behind the gateway. It has ConfigMaps, some for each of the good users, and large pods, by
// which the hostile user can make requests expensive.
//
// Its jobs go from Suspended to Pending and back. The last of them, and the last pods, are in the
// hostile user's namespace.
type APIServer struct {
	*apiserver.Server
	cycle atomic.Bool // the hostile user's jobs change
}

const (
	mapsOfUser = 10
	manyPods   = 1000
	mapSize    = 2 << 10
	podSize    = 20 << 10
	podChanges = 20 // per second, and as many of jobs

	manyJobs    = 2 * users
	jobsInCycle = 4   // of the hostile user: each owned by all of them
	podsInCycle = 100 // which they own
)

// The kinds, by their index.
const configMaps, pods, jobs = 0, 1, 2

func newAPIServer() *APIServer {
	s := apiserver.New(
		apiserver.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Objects: users * mapsOfUser, Render: configMap},
		apiserver.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Objects: manyPods, Render: pod},
		apiserver.Kind{Group: "batch", Version: "v1", Resource: "jobs", Kind: "Job", Objects: manyJobs + jobsInCycle, Render: job},
	)
	s.Source = source.New(func(m mark.Mark) {
		number := int(m.Seq % users)
		s.Modify(configMaps, number*mapsOfUser+int(m.Seq/users)%mapsOfUser, m)
	})
	return &APIServer{Server: s}
}

// ChangeCycle begins or ends the changes of the jobs that own each other.
func (a *APIServer) ChangeCycle(on bool, _ *process.None) error {
	a.cycle.Store(on)
	return nil
}

// Start listens, and returns the address. From then on pods and jobs change.
func (a *APIServer) Start(none process.None, address *string) error {
	if err := a.Server.Start(none, address); err != nil {
		return err
	}
	change := uint64(manyJobs)
	go func() { // lasts as long as the process
		for range time.Tick(time.Second / podChanges) {
			a.Modify(pods, int(change%manyPods), mark.Mark{})
			a.Modify(jobs, int(change%manyJobs), mark.Mark{Seq: change / manyJobs})
			if a.cycle.Load() {
				a.Modify(jobs, manyJobs+int(change%jobsInCycle), mark.Mark{Seq: change / jobsInCycle})
				a.Modify(pods, manyPods-1-int(change%podsInCycle), mark.Mark{})
			}
			change++
		}
	}()
	return nil
}

func namespaceOf(user int) string { return fmt.Sprintf("user-%03d", user) }

func configMap(number int, version uint64, m mark.Mark) []byte {
	b := metadata("ConfigMap", namespaceOf(number/mapsOfUser), "settings", number, version, m, "")
	return pad(append(b, `"data":{"payload":"`...), mapSize, `"}}`)
}

// pod is a pod of many fields.
func pod(number int, version uint64, m mark.Mark) []byte {
	namespace, owners := namespaceOf(number%users), ""
	if number >= manyPods-podsInCycle {
		namespace, owners = hidden, cycle
	}
	b := metadata("Pod", namespace, "worker", number, version, m, owners)
	b = fmt.Appendf(b, `"spec":{"nodeName":"node-%d","priority":%d,"containers":[{"name":"main","env":[`, number%50, number*7919%1000)
	for i := range podSize / 100 {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"name":"PARAMETER_%03d","value":"s3://models/team/run-%05d/shard-%03d"}`, i, number, i)
	}
	b = append(b, `]}]},"status":{"phase":"Running","message":"`...)
	return pad(b, podSize, `"}}`)
}

// job is one that waits: for somebody, or for its pods.
func job(number int, version uint64, m mark.Mark) []byte {
	namespace, owners := namespaceOf(number%users), ""
	if number >= manyJobs {
		namespace, owners = hidden, cycle
	}
	b := metadata("Job", namespace, "train", number, version, m, owners)
	return fmt.Appendf(b, `"spec":{"suspend":%t,"parallelism":1},"status":{"conditions":[{"type":"Suspended","status":%q}]}}`,
		m.Seq%2 == 0, []string{"True", "False"}[m.Seq%2])
}

// cycle is the references to the jobs that own each other.
var cycle = func() string {
	var all []string
	for number := manyJobs; number < manyJobs+jobsInCycle; number++ {
		all = append(all, fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","name":"train-%05d","uid":"job-0000-4000-8000-%012d"}`, number, number))
	}
	return strings.Join(all, ",")
}()

func metadata(kind, namespace, name string, number int, version uint64, m mark.Mark, owners string) []byte {
	apiVersion := "v1"
	if kind == "Job" {
		apiVersion = "batch/v1"
	}
	b := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"name":"%s-%05d","namespace":%q,"uid":"%s-0000-4000-8000-%012d",`+
		`"resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"bench"},"ownerReferences":[%s],`+
		`"annotations":{"kubecast.io/owner":%q,"kubecast.io/bench":"`,
		kind, apiVersion, name, number, namespace, strings.ToLower(kind), number, version, owners, namespace)
	return append(m.Append(b), `"}},`...)
}

func pad(b []byte, size int, end string) []byte {
	if missing := size - len(b) - len(end); missing > 0 {
		b = append(b, bytes.Repeat([]byte("k"), missing)...)
	}
	return append(b, end...)
}
