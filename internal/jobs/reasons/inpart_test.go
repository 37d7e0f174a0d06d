package reasons

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/ownerref"
	"github.com/kubecast/kubecast/internal/stream"
)

// watching has a Watch that reads an API, until the test ends.
func watching(t *testing.T, api *apitest.API, jobs ...string) (w *Watch, stop func()) {
	t.Helper()
	kinds, err := cache.NewKinds(api.Connect(t), cache.Options{Topic: stream.Options{Events: 20, Bytes: 1 << 20}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	w = New(Options{Kinds: kinds, Jobs: jobs, Serves: func(string, string) bool { return true }, Log: slog.New(slog.DiscardHandler)})
	running.Go(func() { _ = kinds.Run(ctx) })
	running.Go(func() { _ = w.Run(ctx) })
	settling, done := context.WithTimeout(ctx, time.Minute)
	defer done()
	if w.Settle(settling); settling.Err() != nil {
		t.Error("it does not settle")
	}
	return w, func() {
		cancel()
		running.Wait()
	}
}

func controlledBy(apiVersion, kind, name, uid string) string {
	return apitest.Set("metadata.ownerReferences", []map[string]any{{"apiVersion": apiVersion, "kind": kind, "name": name, "uid": uid, "controller": true}})
}

const stuckPod = `status:={"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes"}]}`

// Of a job something says why it waits, as its Workload does, and one of its parts goes, which says nothing.
func TestAPartThatSaysNothingGoesWhileSomethingElseIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Jobs, apitest.Pods, apitest.Widgets)
		api.Put("widgets", "n/set")
		set := api.UID("widgets", "n/set")
		api.Put("jobs", "n/part", controlledBy("example.org/v1", "Widget", "set", set))
		api.Put("pods", "n/stuck", controlledBy("example.org/v1", "Widget", "set", set), stuckPod)
		w, stop := watching(t, api, "jobs.batch", "widgets.example.org")
		defer stop()
		for range 2 {
			api.Delete("jobs", "n/part")
			time.Sleep(time.Second)
			synctest.Wait()
			if why, known, _ := w.Why(ownerref.ID{Namespace: "n", UID: set, Group: "example.org", Kind: "Widget", Name: "set"}); why.Message != "0/3 nodes" || !known {
				t.Errorf("%q (known: %t)", why.Message, known)
			}
			api.Put("jobs", "n/part", controlledBy("example.org/v1", "Widget", "set", set))
			time.Sleep(time.Second)
		}
	})
}

// A tenant may have a namespace of ever so many pods, and jobs in it that run and have a pod that
// cannot begin. Who records waits for the answer why, so it costs a few steps: nothing is walked
// but what stands between the job and its pods.
func TestWhyAPartOfAJobDoesNotRunIsNotLookedForAmongAllPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Jobs, apitest.Pods, apitest.Widgets)
		api.Put("widgets", "n/set")
		set := api.UID("widgets", "n/set")
		var jobs []string
		for i := range 3 {
			name := fmt.Sprint("job-", i)
			api.Put("jobs", "n/"+name, controlledBy("example.org/v1", "Widget", "set", set))
			jobs = append(jobs, api.UID("jobs", "n/"+name))
		}
		for i := range 3000 {
			api.Put("pods", fmt.Sprint("n/p", i), controlledBy("batch/v1", "Job", fmt.Sprint("job-", i%2), jobs[i%2]), `status.phase:="Running"`)
		}
		w, stop := watching(t, api, "jobs.batch", "widgets.example.org")
		defer stop()
		api.Put("pods", "n/stuck", controlledBy("batch/v1", "Job", "job-2", jobs[2]), stuckPod)
		time.Sleep(time.Second)
		synctest.Wait()
		for want, job := range map[string]ownerref.ID{
			"1 of 1 pods: 0/3 nodes":    {Namespace: "n", UID: jobs[2], Group: "batch", Kind: "Job", Name: "job-2"},
			"":                          {Namespace: "n", UID: jobs[0], Group: "batch", Kind: "Job", Name: "job-0"},
			"1 of 3001 pods: 0/3 nodes": {Namespace: "n", UID: set, Group: "example.org", Kind: "Widget", Name: "set"},
		} {
			why, known, steps := w.WhyInPart(job)
			if why.Message != want || !known || steps > 10 {
				t.Errorf("%s: %q (known: %t) after %d steps, not %q", job.Name, why.Message, known, steps, want)
			}
		}
	})
}

// Pods come, begin, get stuck, end, are deleted, and come again under other owners, while watches
// break off and everything is read again: the numbers are those of the pods that are there.
func TestPodsThatCannotBeginAreCountedAsTheyAre(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			api := apitest.New(apitest.Jobs, apitest.Pods)
			var jobs []ownerref.ID
			for i := range 3 {
				name := fmt.Sprint("job-", i)
				api.Put("jobs", "n/"+name)
				jobs = append(jobs, ownerref.ID{Namespace: "n", UID: api.UID("jobs", "n/"+name), Group: "batch", Kind: "Job", Name: name})
			}
			w, stop := watching(t, api, "jobs.batch")
			defer stop()
			said := 0
			for step := range 400 {
				pod := fmt.Sprint("n/pod-", random.IntN(12))
				of := jobs[random.IntN(len(jobs))]
				owner := controlledBy("batch/v1", "Job", of.Name, of.UID)
				switch n := random.IntN(20); {
				case n < 4:
					api.Put("pods", pod, owner, stuckPod)
				case n < 8:
					api.Put("pods", pod, owner, `status:={"phase":"Running"}`)
				case n < 10:
					api.Put("pods", pod, owner, fmt.Sprintf(`status:={"phase":%q}`, []string{"Failed", "Succeeded"}[random.IntN(2)]))
				case n < 11:
					api.Put("pods", pod, owner, stuckPod, "metadata.deletionTimestamp=2026-01-01T00:00:00Z")
				case n < 14:
					if api.Objects("pods")[pod] != "" {
						api.Delete("pods", pod)
					}
				case n < 15:
					api.CutWatches()
				case n < 16:
					api.EndWatches()
				default:
					time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
				}
				if step%10 != 0 {
					continue
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				for _, job := range jobs {
					all, stuck := 0, 0
					for _, text := range api.Objects("pods") {
						phase := gjson.Get(text, "status.phase").Str
						if gjson.Get(text, "metadata.ownerReferences.0.uid").Str != job.UID || phase == "Failed" || phase == "Succeeded" || gjson.Get(text, "metadata.deletionTimestamp").Exists() {
							continue
						}
						if all++; phase == "Pending" {
							stuck++
						}
					}
					want := ""
					if stuck > 0 {
						want = fmt.Sprintf("%d of %d pods: 0/3 nodes", stuck, all)
						said++
					}
					if why, known, _ := w.WhyInPart(job); why.Message != want || !known {
						t.Fatalf("seed %d, step %d: %q (known: %t), not %q", seed, step, why.Message, known, want)
					}
				}
			}
			if said < 20 {
				t.Errorf("seed %d: only %d answers say something", seed, said)
			}
		})
	}
}

// A pod for which no node has free devices says of which classes it claims some, however many claims there are, and of its own
// namespace's claims only.
func TestAPodThatWaitsForDevicesSaysOfWhichClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims := cluster.Kind{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims", Kind: "ResourceClaim", Namespaced: true, Watchable: true}
		api := apitest.New(apitest.Jobs, apitest.Pods, claims)
		api.Put("jobs", "n/job")
		uses := []map[string]any{}
		for i := range 10_000 {
			uses = append(uses, map[string]any{"name": fmt.Sprint("c", i), "resourceClaimName": fmt.Sprint("claim-", i)})
		}
		request := func(class string) string {
			return apitest.Set("spec.devices.requests", []any{map[string]any{"name": "r", "exactly": map[string]any{"deviceClassName": class}}})
		}
		api.Put("resourceclaims", "n/claim-0", request("gpu.example.org"))
		api.Put("resourceclaims", "n/claim-1", request("other.example.org"), apitest.Set("status.allocation", map[string]any{"x": 1}))
		api.Put("resourceclaims", "m/claim-2", request("strangers.example.org"))
		api.Put("pods", "n/pod", controlledBy("batch/v1", "Job", "job", api.UID("jobs", "n/job")), apitest.Set("spec.resourceClaims", uses),
			`status:={"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available: 3 cannot allocate all claims."}]}`)
		w, stop := watching(t, api, "jobs.batch")
		defer stop()
		synctest.Wait()
		why, _, _ := w.Why(ownerref.ID{Namespace: "n", UID: api.UID("jobs", "n/job"), Group: "batch", Kind: "Job", Name: "job"})
		if why.Message != "0/3 nodes are available: 3 cannot allocate all claims. (device class gpu.example.org)" || why.Words() != "no node fits: no free device as it claims (all 3) (device class gpu.example.org)" {
			t.Errorf("%q, %q", why.Message, why.Words())
		}
	})
}

// A long message of kube-scheduler is cut between two of its reasons, so that each that is told is whole.
func TestLongMessagesAreCutBetweenReasons(t *testing.T) {
	for _, test := range []struct{ message, want string }{
		{"0/3 nodes: 1 a, 2 b", "0/3 nodes: 1 a, 2 b"},
		{"0/3 nodes: 1 a, 12 node(s) had untolerated taints", "0/3 nodes: 1 a"},
		{"0/3 nodes: 1 a, 2 b, 3 c", "0/3 nodes: 1 a, 2 b"},
		{"no list, of no parts at all", "no list"},
		{"eighteen bytes äé ü that are letters", "eighteen bytes äé"},
	} {
		if got := beginning(test.message, 19); got != test.want {
			t.Errorf("%q becomes %q, not %q", test.message, got, test.want)
		}
	}
}

// While a job is Running, Kueue may wait for its pods again (WaitForRecovery).
func TestARunningJobIsToldThatKueueWaitsForItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := cluster.Kind{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "workloads", Kind: "Workload", Namespaced: true, Watchable: true}
		api := apitest.New(apitest.Jobs, apitest.Pods, kind)
		api.Put("jobs", "n/job")
		job := ownerref.ID{Namespace: "n", UID: api.UID("jobs", "n/job"), Group: "batch", Kind: "Job", Name: "job"}
		owner := controlledBy("batch/v1", "Job", "job", job.UID)
		workload := func(ready, reason, message string) {
			condition := func(name, status, reason, message string) map[string]any {
				return map[string]any{"type": name, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2000-01-01T00:00:00Z"}
			}
			api.Put("workloads", "n/w", owner, apitest.Set("status.conditions", []any{
				condition("QuotaReserved", "True", "QuotaReserved", ""), condition("Admitted", "True", "Admitted", ""), condition("PodsReady", ready, reason, message)}))
		}
		w, stop := watching(t, api, "jobs.batch")
		defer stop()
		is := func(when, want string) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			if why, known, _ := w.WhyInPart(job); strings.TrimSpace(why.Reason+" "+why.Message) != want || !known {
				t.Errorf("%s: %s %q (known: %t)", when, why.Reason, why.Message, known)
			}
		}
		api.Put("pods", "n/runs", owner, `status.phase:="Running"`)
		workload("False", "WaitForStart", "Not all pods are ready or succeeded")
		is("while the first pods of many begin", "")
		workload("True", "Started", "")
		is("once all run", "")
		workload("False", "WaitForRecovery", "At least one pod has failed, waiting for recovery")
		is("after a pod has failed", "WaitForRecovery At least one pod has failed, waiting for recovery")
		api.Put("pods", "n/stuck", owner, stuckPod)
		is("once that finds no node", "Unschedulable 1 of 2 pods: 0/3 nodes")
		api.Delete("pods", "n/stuck")
		is("without it", "WaitForRecovery At least one pod has failed, waiting for recovery")
		api.Put("pods", "n/dead", owner, `status:={"phase":"Failed","reason":"Evicted","message":"disk"}`)
		is("while a failed pod is there", "WaitForRecovery At least one pod has failed, waiting for recovery")
		api.Delete("pods", "n/dead")
		workload("True", "Recovered", "")
		is("once all are well again", "")
	})
}
