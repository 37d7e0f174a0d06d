//go:build linux

package main

import (
	"bytes"
	"fmt"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/mark"
)

// jobsOf are those of an API server.
func jobsOf(count int, render apiserver.Render) apiserver.Kind {
	return apiserver.Kind{Group: "batch", Version: "v1", Resource: "jobs", Kind: "Job", Objects: count, Render: render}
}

const (
	someJobs = 2000
	jobSize  = 2048 // bytes of JSON
)

// sources are the API servers, by the role of their process.
var sources = map[string][]apiserver.Kind{
	// Each event is a transition: all jobs fail, then all are suspended, and so on.
	"changing": {jobsOf(someJobs, func(number int, version uint64, m mark.Mark) []byte {
		if (m.Seq+someJobs-1)/someJobs%2 == 1 {
			return job(number, version, m, false, "Failed")
		}
		return job(number, version, m, true, "Suspended")
	})},
	"unchanging": {jobsOf(someJobs, func(number int, version uint64, m mark.Mark) []byte {
		return job(number, version, m, true, "Suspended")
	})},
	"finished": {jobsOf(20_000, finished)},
	"few":      {jobsOf(200, finished)},
	"pods":     {pods(somePods), jobsOf(podOwners, finished)},
	"few pods": {pods(fewPods), jobsOf(podOwners, finished)},
}

func finished(number int, version uint64, m mark.Mark) []byte {
	return job(number, version, m, false, "Complete")
}

// job renders a job with one condition, whose message is the event's mark.
func job(number int, version uint64, m mark.Mark, suspend bool, condition string) []byte {
	b := make([]byte, 0, jobSize)
	b = fmt.Appendf(b, `{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"train-%05d","namespace":"team-%d","uid":"6f1a3c52-0000-4000-8000-%012d",`+
		`"resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"kueue.x-k8s.io/queue-name":"default"},`+
		`"annotations":{"kubecast.io/owner":"user-%d"}},"spec":{"parallelism":8,"completions":8,"suspend":%t,"template":{"spec":{"containers":[{`+
		`"name":"main","image":"registry.example.org/train:2026.1","resources":{"requests":{"cpu":"4","memory":"16Gi","nvidia.com/gpu":"1"}},"args":["`,
		number, number%10, number, version, number%100, suspend)
	end := fmt.Appendf(nil, `"]}]}}},"status":{"conditions":[{"type":%q,"status":"True","reason":"Bench","message":"`, condition)
	end = m.Append(end)
	end = append(end, `","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`...)
	b = append(b, bytes.Repeat([]byte("--epochs"), jobSize/8)[:max(0, jobSize-len(b)-len(end))]...)
	return append(b, end...)
}
