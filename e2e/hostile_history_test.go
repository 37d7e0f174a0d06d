package e2e

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// One tenant makes pods, Workloads and jobs that claim to belong to another tenant's jobs, and has
// large jobs fail all the time. The other's history has what happened, with its causes and specs,
// and nothing else.
func TestOneTenantDoesNotWriteAnothersHistory(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "hostile-red", "hostile-blue")
	g := s.startGateway(t, gatewayOptions{config: fmt.Sprintf("history: {database: %q, keepBudget: 64Ki}\n", "sqlite://"+t.TempDir()+"/history.db")})
	g.waitReady(t)
	g.waitRecording(t) // of a job that was given up before it was recorded, it is not told that it was
	workloads := s.serveWorkloads(t)
	ctx, cancel := context.WithCancel(context.Background())
	var flood sync.WaitGroup
	defer flood.Wait()
	defer cancel()

	submit := func(namespace string, job *batchv1.Job) *batchv1.Job {
		t.Helper()
		made, err := s.kube.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	// huge is a job that no node takes.
	huge := func(name string) *batchv1.Job {
		job := shortJob(name)
		job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100k")}
		return job
	}
	fails := func(name string) *batchv1.Job {
		job, soon := huge(name), int64(2)
		job.Spec.ActiveDeadlineSeconds = &soon
		return job
	}
	queued := func(name string) *batchv1.Job {
		job, yes := shortJob(name), true
		job.Spec.Suspend, job.Labels = &yes, map[string]string{"kueue.x-k8s.io/queue-name": "q"}
		return job
	}
	waits, stuck, given := submit("hostile-blue", queued("waits")), submit("hostile-blue", huge("stuck")), submit("hostile-blue", queued("given-up"))

	claim := func(job *batchv1.Job) []metav1.OwnerReference {
		yes := true
		return []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: &yes}}
	}
	for i := range 40 {
		claimed := []*batchv1.Job{waits, stuck}[i%2]
		pod := pod("hostile-red", fmt.Sprint("forged-", i), nil)
		pod.OwnerReferences = claim(claimed)
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.org/pay-mallory"}}
		if _, err := s.kube.CoreV1().Pods("hostile-red").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w := workloadOf(fmt.Sprint("forged-", i), claimed, false)
		if i%4 < 2 {
			w.SetOwnerReferences(nil) // or the cluster removes it, since it has no such owner
		}
		eventually(t, "a Workload can be made", func() error {
			_, err := workloads.Namespace("hostile-red").Create(ctx, w, metav1.CreateOptions{})
			return err
		})
	}
	if _, err := workloads.Namespace("hostile-blue").Create(ctx, workloadOf("true", given, false), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	flood.Go(func() {
		for i := 0; i < 60 && ctx.Err() == nil; i++ {
			job, random := fails(fmt.Sprint("flood-", i)), make([]byte, 9_000)
			_, _ = rand.Read(random) // it never fails
			if i%5 == 0 {
				job.OwnerReferences = claim(waits) // which is not there, so the cluster deletes it
			} else {
				job.Annotations = map[string]string{"noise": base64.StdEncoding.EncodeToString(random)}
			}
			if _, err := s.kube.BatchV1().Jobs("hostile-red").Create(ctx, job, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})

	type item struct {
		Name, UID, State, Reason, Message string
		Parent                            any
		Children                          int
		Cause                             *struct{ Text, Reason string }
		Spec                              bool
		PodCount                          *int
		From, To                          string
	}
	token := s.viewer(t)
	of := func(namespace, rest string) (items []item, err error) {
		var page struct{ Items []item }
		a := g.get(t, token, "/history/apis/batch/v1/namespaces/"+namespace+"/jobs"+rest)
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.code != 200 {
			return nil, fmt.Errorf("%d %s %w", a.code, a.body, err)
		}
		return page.Items, nil
	}
	becomes := func(name, what string, is func(item) bool) {
		t.Helper()
		eventually(t, name+" "+what, func() error {
			items, err := of("hostile-blue", "/"+name)
			if err != nil || len(items) != 1 || !is(items[0]) {
				return fmt.Errorf("%+v %w", items, err)
			}
			return nil
		})
	}
	for i := range 3 {
		name := fmt.Sprint("fails-", i)
		submit("hostile-blue", fails(name))
		becomes(name, "has failed, with its cause and its spec", func(j item) bool {
			return j.State == "Failed" && j.Cause != nil && j.Cause.Reason == "Deadline" && j.Spec && j.PodCount != nil && *j.PodCount == 2
		})
	}
	becomes("stuck", "says why", func(j item) bool { return j.Reason == "Unschedulable" })
	becomes("given-up", "says so, since Workloads are read", func(j item) bool { return j.Reason == "Deactivated" })
	items, err := of("hostile-blue", "")
	if err != nil || len(items) != 6 {
		t.Errorf("%+v %v", items, err)
	}
	for _, j := range items {
		suspended := j.Reason == "JobSuspended" || j.Reason == "" // its controller may have said so only after the job was read
		known := j.PodCount != nil && *j.PodCount == 2
		if j.Name == "waits" || j.Name == "given-up" { // they are older than the history of pods
			known = j.PodCount == nil || *j.PodCount == 0
		}
		if j.Parent != nil || j.Children != 0 || strings.Contains(j.Message, "mallory") || !known ||
			j.Name == "waits" && (j.State != "Queued" || !suspended || j.Cause != nil) || j.Name == "stuck" && j.Reason != "Unschedulable" {
			t.Errorf("%+v", j)
		}
	}
	for name, want := range map[string]int{"waits": 1, "given-up": 2} {
		if told, err := of("hostile-blue", "/"+name+"?view=transitions"); err != nil || len(told) != want {
			t.Errorf("%s: %+v %v", name, told, err)
		}
	}
	eventually(t, "the flood is over its budget, and told so", func() error {
		failed, err := of("hostile-red", "?state=Failed&limit=1000")
		if err != nil {
			return err
		}
		with, without := 0, 0
		for _, j := range failed {
			if j.Spec {
				with++
				continue
			}
			without++
			if a := g.get(t, token, "/history/apis/batch/v1/namespaces/hostile-red/jobs/"+j.Name+"?view=spec&uid="+j.UID); a.code != 404 || !strings.Contains(a.body, "budget") {
				return fmt.Errorf("%d %s", a.code, a.body)
			}
		}
		if without < 5 || with == 0 || with > 10 {
			return fmt.Errorf("%d have a spec, and %d have none", with, without)
		}
		return nil
	})
}
