package recorder

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/pods"
	"github.com/kubecast/kubecast/internal/jobs/reasons"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// BenchmarkUpdateThatChangesNoState is what the recorder does with most of what happens to jobs. There is no database.
func BenchmarkUpdateThatChangesNoState(b *testing.B) {
	r := &Recorder{opts: Options{Rule: batchRule(b), Cluster: apitest.New(apitest.Jobs).Connect(b)}, living: map[string]*jobs.Job{}}
	o, err := cluster.NewObject(`{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"j","namespace":"n","uid":"u","resourceVersion":"5",` +
		`"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"train"}},"spec":{"parallelism":8,"completions":8,"suspend":false,` +
		`"template":{"spec":{"containers":[{"name":"main","image":"train:1","resources":{"requests":{"cpu":"4","nvidia.com/gpu":"1"}}}]}}},` +
		`"status":{"active":8,"ready":5,"startTime":"2026-01-01T00:00:01Z","uncountedTerminatedPods":{}}}`)
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	r.see(&batch{}, o, false, sight{at: now})
	b.ReportAllocs()
	for b.Loop() {
		var none batch
		r.see(&none, o, false, sight{at: now})
		if len(none.transitions) > 0 {
			b.Fatal("a transition")
		}
	}
}

// BenchmarkUpdateThatChangesNoRun is what the recorder does with most of what happens to pods:
// conditions and addresses change, and the life of the pod goes on; or the pod belongs to no job.
func BenchmarkUpdateThatChangesNoRun(b *testing.B) {
	cluster0 := apitest.New(apitest.Jobs, apitest.Pods).Connect(b)
	for name, owner := range map[string]string{"of a job": "batch/v1", "of no job": "apps/v1"} {
		b.Run(name, func(b *testing.B) {
			r := &Recorder{opts: Options{Cluster: cluster0}, lives: newPodLives(0)}
			r.opts.Waits = reasons.New(reasons.Options{Jobs: []string{"jobs.batch"}, Serves: func(string, string) bool { return false }})
			o, err := cluster.NewObject(fmt.Sprintf(benchPod, owner))
			if err != nil {
				b.Fatal(err)
			}
			now := time.Now()
			if owner == "batch/v1" {
				run := jobs.NextRun(nil, jobs.SeenPod{ObjectID: jobs.ObjectID{UID: o.UID(), Namespace: "n", Name: "p"}, PodSaid: pods.Read(o, nil), Version: o.Version(), Observed: 1})
				r.lives.living[o.UID()] = &life{Run: store.Run{Run: run}, written: true}
			}
			b.ReportAllocs()
			for b.Loop() {
				var none batch
				r.see(&none, o, false, sight{at: now})
				if !none.isEmpty() {
					b.Fatal("a change")
				}
			}
		})
	}
}

// benchPod is a pod about as the API server has it.
var benchPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"n","uid":"u","resourceVersion":"5","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"job-name":"j"},` +
	`"ownerReferences":[{"apiVersion":"%s","kind":"Job","name":"j","uid":"uj","controller":true}]},` +
	`"spec":{"volumes":[{"name":"token","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}}]}}],` +
	`"containers":[{"name":"main","image":"train:1","command":["python","train.py","--epochs","100","--dataset","/data/imagenet"],"env":[{"name":"A","value":"` + strings.Repeat("x", 1000) + `"}],"resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"cpu":"4","memory":"16Gi","nvidia.com/gpu":"1"}}}],` +
	`"restartPolicy":"Never","nodeName":"n1","schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}]},` +
	`"status":{"phase":"Running","conditions":[{"type":"PodReadyToStartContainers","status":"True","lastTransitionTime":"2026-01-01T00:00:02Z"},{"type":"Initialized","status":"True","lastTransitionTime":"2026-01-01T00:00:01Z"},` +
	`{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:03Z"},{"type":"ContainersReady","status":"True","lastTransitionTime":"2026-01-01T00:00:03Z"},{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-01-01T00:00:01Z"}],` +
	`"hostIP":"10.0.0.1","podIP":"10.1.0.7","podIPs":[{"ip":"10.1.0.7"}],"startTime":"2026-01-01T00:00:01Z","containerStatuses":[{"name":"main","state":{"running":{"startedAt":"2026-01-01T00:00:03Z"}},"lastState":{},"ready":true,"restartCount":0,` +
	`"image":"train:1","imageID":"sha256:0","containerID":"containerd://0","started":true}],"qosClass":"Burstable"}}`
