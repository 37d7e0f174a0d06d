package reasons

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/ownerref"
)

var events = cluster.Kind{Version: "v1", Resource: "events", Kind: "Event", Namespaced: true, Watchable: true}

// saysOf is an Event of a pod as a component writes it, at a moment.
func saysOf(component, reason, message, pod, uid string, at time.Time) []string {
	return []string{
		apitest.Set("involvedObject", map[string]any{"kind": "Pod", "namespace": "n", "name": pod, "uid": uid, "apiVersion": "v1"}),
		apitest.Set("source", map[string]any{"component": component}), apitest.Set("reason", reason), apitest.Set("message", message),
		apitest.Set("lastTimestamp", at.UTC().Format(time.RFC3339)), apitest.Set("count", 1),
	}
}

const (
	scalesUp = "pod triggered scale-up: [{gpu 1->2 (max: 8)}]"
	givesUp  = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
)

// What an autoscaler said last of a pod counts, and as long as the pod finds no node. What others say in its place, or in
// another namespace, or of another pod, does not.
func TestWhatAnAutoscalerSaidLastCountsWhileThePodFindsNoNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Jobs, apitest.Pods, events)
		api.Put("jobs", "n/job")
		job := ownerref.ID{Namespace: "n", UID: api.UID("jobs", "n/job"), Group: "batch", Kind: "Job", Name: "job"}
		owner := controlledBy("batch/v1", "Job", "job", job.UID)
		api.Put("pods", "n/pod", owner, stuckPod)
		uid := api.UID("pods", "n/pod")
		w, stop := watching(t, api, "jobs.batch")
		defer stop()
		is := func(when, source, reason, message string) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			if why, _, _ := w.Why(job); why.Source != source || why.Reason != reason || why.Message != message {
				t.Errorf("%s: %s %s %q", when, why.Source, why.Reason, why.Message)
			}
		}
		say := func(event, component, reason, message string) {
			api.Put("events", event, saysOf(component, reason, message, "pod", uid, time.Now())...)
		}
		is("at first", "Pod", "Unschedulable", "0/3 nodes")
		say("n/scheduler", "default-scheduler", "FailedScheduling", "0/3 nodes are available")
		say("n/stranger", "somebody", "TriggeredScaleUp", scalesUp)
		say("m/elsewhere", "cluster-autoscaler", "TriggeredScaleUp", scalesUp)
		say("n/drained", "cluster-autoscaler", "ScaleDown", "deleting pod for node scale down")
		api.Put("events", "n/other", saysOf("cluster-autoscaler", "TriggeredScaleUp", scalesUp, "pod", "other", time.Now())...)
		is("after what does not count", "Pod", "Unschedulable", "0/3 nodes")
		say("n/up", "cluster-autoscaler", "TriggeredScaleUp", scalesUp)
		is("while nodes are added", "Event", "TriggeredScaleUp", scalesUp)
		say("n/not", "cluster-autoscaler", "NotTriggerScaleUp", givesUp)
		is("after it gave up", "Event", "NotTriggerScaleUp", givesUp)
		say("n/nominated", "eks-auto-mode/compute", "Nominated", "Pod should schedule on: nodeclaim/x")
		is("while another autoscaler adds nodes", "Event", "Nominated", "Pod should schedule on: nodeclaim/x")
		say("n/refused", "karpenter", "FailedScheduling", "Failed to schedule pod, x")
		is("after that gave up, too", "Event", "FailedScheduling", "Failed to schedule pod, x")
		say("n/up", "cluster-autoscaler", "TriggeredScaleUp", scalesUp) // the same Event, once more
		is("while nodes are added again", "Event", "TriggeredScaleUp", scalesUp)
		api.CutWatches("events")
		api.Put("pods", "n/second", owner, stuckPod)
		is("after another pod came", "Event", "TriggeredScaleUp", scalesUp)
		api.Delete("pods", "n/second")

		time.Sleep(nodesComeWithin + time.Minute)
		is("once no node has come", "Event", "FailedScheduling", "Failed to schedule pod, x")
		api.Delete("events", "n/refused", "n/nominated")
		is("without that, after what was said last is too old", "Pod", "Unschedulable", "0/3 nodes")
		say("n/not", "cluster-autoscaler", "NotTriggerScaleUp", givesUp)
		is("after it gave up again", "Event", "NotTriggerScaleUp", givesUp)
		api.Put("pods", "n/pod", owner, `status:={"phase":"Failed","reason":"Evicted","message":"disk"}`)
		is("after the pod failed", "Pod", "Evicted", "disk")
		api.Put("pods", "n/pod", owner, `status:={"phase":"Pending","containerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff","message":"of x"}}}]}`)
		is("once it has a node", "Pod", "ImagePullBackOff", "of x")
		api.Put("pods", "n/pod", owner, `status.phase:="Running"`)
		is("once it runs", "", "", "")
	})
}

// However many pods wait, and Events come: there is one list and one watch of Events, and of strangers' nothing is kept.
func TestEventsCostOneWatchHoweverManyPodsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Jobs, apitest.Pods, events)
		api.Put("jobs", "n/job")
		owner := controlledBy("batch/v1", "Job", "job", api.UID("jobs", "n/job"))
		w, stop := watching(t, api, "jobs.batch")
		defer stop()
		time.Sleep(time.Second)
		before := eventRequests(api)
		for i := range 20 {
			pod := fmt.Sprint("p", i)
			api.Put("pods", "n/"+pod, owner, stuckPod)
			uid := api.UID("pods", "n/"+pod)
			api.Put("events", "n/b"+pod, saysOf("stranger", "Nominated", strings.Repeat("x", 100_000), pod, uid, time.Now())...)
			for e := range 2 * maxEvents {
				api.Put("events", fmt.Sprint("n/c", pod, e), saysOf("karpenter", "FailedScheduling", "x", pod, uid, time.Now())...)
			}
			api.Put("events", "n/a"+pod, saysOf("cluster-autoscaler", "NotTriggerScaleUp", strings.Repeat("x", 100_000), pod, uid, time.Now())...)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if after := eventRequests(api); after != 0 || before > 3 {
			t.Errorf("%d requests for Events at first, %d for 20 pods", before, after)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		bytes := 0
		for _, all := range w.events {
			for _, e := range all {
				bytes += len(e.Message)
			}
			if len(all) > maxEvents {
				t.Errorf("%d Events of a pod are kept", len(all))
			}
		}
		if len(w.events) != 20 || bytes > 20*(maxEventMessage+maxEvents) {
			t.Errorf("%d pods, %d bytes of messages", len(w.events), bytes)
		}
	})
}

// eventRequests is how many requests for Events there were since the last call.
func eventRequests(api *apitest.API) (n int) {
	for _, request := range api.Requests() {
		if strings.Contains(request, "/api/v1/events") {
			n++
		}
	}
	return n
}

// Events come, are repeated, expire, and pods come and go, while watches break off: what counts is what a plain search
// through all Events that are there finds.
func TestWhatAutoscalersSayIsWhatTheirEventsSay(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			api := apitest.New(apitest.Jobs, apitest.Pods, events)
			api.Put("jobs", "n/job")
			job := ownerref.ID{Namespace: "n", UID: api.UID("jobs", "n/job"), Group: "batch", Kind: "Job", Name: "job"}
			owner := controlledBy("batch/v1", "Job", "job", job.UID)
			w, stop := watching(t, api, "jobs.batch")
			defer stop()
			kinds := []struct{ component, reason string }{
				{"cluster-autoscaler", "TriggeredScaleUp"}, {"cluster-autoscaler", "NotTriggerScaleUp"}, {"karpenter", "Nominated"}, {"karpenter", "FailedScheduling"},
			}
			said := map[string]int{}
			for step := range 120 {
				switch n := random.IntN(12); {
				case n < 2:
					api.Put("pods", "n/pod", owner, stuckPod)
				case n < 3:
					api.Put("pods", "n/pod", owner, `status.phase:="Running"`)
				case n < 4 && api.Objects("pods")["n/pod"] != "":
					api.Delete("pods", "n/pod")
				case n < 8 && api.Objects("pods")["n/pod"] != "":
					k := kinds[random.IntN(len(kinds))]
					api.Put("events", fmt.Sprint("n/e", random.IntN(6)), saysOf(k.component, k.reason, fmt.Sprint("m", step), "pod", api.UID("pods", "n/pod"), time.Now())...)
				case n < 9:
					if key := fmt.Sprint("n/e", random.IntN(6)); api.Objects("events")[key] != "" {
						api.Delete("events", key)
					}
				case n < 10:
					api.CutWatches()
				default:
					time.Sleep(time.Duration(random.IntN(5)) * time.Minute)
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				want, late := wantOf(api, nodesComeWithin), wantOf(api, nodesComeWithin+time.Minute) // it is looked at once a minute
				said[strings.Split(want+" ", " ")[0]]++
				why, _, _ := w.Why(job)
				if got := strings.TrimSpace(why.Reason + " " + why.Message); got != want && got != late {
					t.Fatalf("seed %d, step %d: %s %q, not %q", seed, step, why.Reason, why.Message, want)
				}
			}
			if len(said) < 5 {
				t.Errorf("seed %d: only this was said: %v", seed, said)
			}
		})
	}
}

// wantOf is what is to be said of the job of one pod, found in a plain way.
func wantOf(api *apitest.API, counts time.Duration) string {
	pod := api.Objects("pods")["n/pod"]
	if gjson.Get(pod, "status.phase").Str != "Pending" {
		return ""
	}
	last := map[string]string{}
	for _, text := range api.Objects("events") {
		by := gjson.Get(text, "source.component").Str
		if gjson.Get(text, "involvedObject.uid").Str == gjson.Get(pod, "metadata.uid").Str && gjson.Get(text, "metadata.resourceVersion").Int() > gjson.Get(last[by], "metadata.resourceVersion").Int() {
			last[by] = text
		}
	}
	best, adds := "", false
	version := int64(0)
	for _, text := range last {
		reason := gjson.Get(text, "reason").Str
		does := reason == "TriggeredScaleUp" || reason == "Nominated"
		if at := jobs.ParseTime(gjson.Get(text, "lastTimestamp").Str); does && jobs.At(time.Now())-at > jobs.Time(counts.Milliseconds()) {
			continue
		}
		if v := gjson.Get(text, "metadata.resourceVersion").Int(); does && !adds || does == adds && v > version {
			best, adds, version = reason+" "+gjson.Get(text, "message").Str, does, v
		}
	}
	if best == "" {
		best = "Unschedulable 0/3 nodes"
	}
	return best
}

// Events that may not be listed any more say nothing, as it is with all other kinds.
func TestEventsThatMayNotBeListedAnyMoreSayNothing(t *testing.T) {
	for _, code := range []int{403, 404} {
		synctest.Test(t, func(t *testing.T) {
			api := apitest.New(apitest.Jobs, apitest.Pods, events)
			api.Put("jobs", "n/job")
			job := ownerref.ID{Namespace: "n", UID: api.UID("jobs", "n/job"), Group: "batch", Kind: "Job", Name: "job"}
			api.Put("pods", "n/pod", controlledBy("batch/v1", "Job", "job", job.UID), stuckPod)
			w, stop := watching(t, api, "jobs.batch")
			defer stop()
			api.Put("events", "n/not", saysOf("cluster-autoscaler", "NotTriggerScaleUp", givesUp, "pod", api.UID("pods", "n/pod"), time.Now())...)
			time.Sleep(time.Second)
			synctest.Wait()
			if why, _, _ := w.Why(job); why.Reason != "NotTriggerScaleUp" {
				t.Fatal(why)
			}
			api.Fail("events", code)
			api.CutWatches("events")
			time.Sleep(time.Second)
			synctest.Wait()
			api.Delete("events", "n/not") // it expires
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if why, _, _ := w.Why(job); why.Reason != "Unschedulable" {
				t.Errorf("%d: hours after the Events may not be read any more, and this one is gone, it is told: %s %q", code, why.Reason, why.Message)
			}
			w.mu.Lock()
			if len(w.events) != 0 {
				t.Errorf("%d: kept of %d pods", code, len(w.events))
			}
			w.mu.Unlock()
		})
	}
}

// A gateway that ends and begins anew says of a job what it had said before, and nothing else meanwhile.
func TestARestartDoesNotTellThePodsReasonMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Jobs, apitest.Pods, events)
		api.Put("jobs", "n/job")
		job := ownerref.ID{Namespace: "n", UID: api.UID("jobs", "n/job"), Group: "batch", Kind: "Job", Name: "job"}
		api.Put("pods", "n/pod", controlledBy("batch/v1", "Job", "job", job.UID), stuckPod)
		api.Put("events", "n/not", saysOf("cluster-autoscaler", "NotTriggerScaleUp", givesUp, "pod", api.UID("pods", "n/pod"), time.Now())...)
		began := time.Now()
		api.Answer("events", func(r *http.Request) *apitest.Fault { // a list of many Events takes a few seconds
			if time.Since(began) < 5*time.Second && !strings.Contains(r.URL.RawQuery, "limit=1") {
				time.Sleep(5*time.Second - time.Since(began))
			}
			return nil
		})
		w, stop := watching(t, api, "jobs.batch")
		defer stop()
		said := []string{}
		for range 10 {
			if why, known, _ := w.Why(job); known && why.Reason != "" {
				if n := len(said); n == 0 || said[n-1] != why.Reason {
					said = append(said, why.Reason)
				}
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if fmt.Sprint(said) != "[NotTriggerScaleUp]" {
			t.Errorf("after a restart it is told: %v", said)
		}
		l := w.Listen()
		defer l.Close()
		if stop(); len(l.Changed()) != 0 {
			t.Error("the end of the gateway is told as another reason")
		}
	})
}

// For one pod of a job nodes are added, and for others none, on various grounds. Autoscalers say so again and again.
func TestPodsOfWhichAutoscalersSayDifferentThingsDoNotMakeAReasonAlternate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Jobs, apitest.Pods, events)
		api.Put("jobs", "n/job")
		job := ownerref.ID{Namespace: "n", UID: api.UID("jobs", "n/job"), Group: "batch", Kind: "Job", Name: "job"}
		for _, pod := range []string{"a", "b", "c"} {
			api.Put("pods", "n/"+pod, controlledBy("batch/v1", "Job", "job", job.UID), stuckPod)
		}
		w, stop := watching(t, api, "jobs.batch")
		defer stop()
		is := func(when, waits, inPart string) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			if why, _, _ := w.Why(job); why.Message != waits {
				t.Errorf("%s: it waits, and is told %q", when, why.Message)
			}
			if why, _, _ := w.WhyInPart(job); why.Message != inPart {
				t.Errorf("%s: it runs, and is told %q", when, why.Message)
			}
		}
		const full = "pod didn't trigger scale-up: 1 max node group size reached"
		first := true
		for range 3 {
			for _, said := range []struct{ pod, reason, message string }{{"b", "NotTriggerScaleUp", full}, {"c", "NotTriggerScaleUp", givesUp}, {"a", "TriggeredScaleUp", scalesUp}} {
				api.Put("events", "n/"+said.pod, saysOf("cluster-autoscaler", said.reason, said.message, said.pod, api.UID("pods", "n/"+said.pod), time.Now())...)
				if want := givesUp; first && said.pod == "b" {
					is("at first", full, full)
				} else {
					is("after that is said of "+said.pod, want, want)
				}
				first = false
			}
		}
		api.Delete("pods", "n/c")
		is("without one of them", full, full)
		api.Delete("pods", "n/b")
		is("once nodes are added for all", scalesUp, "1 of 1 pods: "+scalesUp)
	})
}

// An autoscaler whose clock is fast says that it adds nodes. That counts for as long as if its clock were right.
func TestWhatIsSaidInTheFutureIsForgottenInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Jobs, apitest.Pods, events)
		api.Put("jobs", "n/job")
		job := ownerref.ID{Namespace: "n", UID: api.UID("jobs", "n/job"), Group: "batch", Kind: "Job", Name: "job"}
		api.Put("pods", "n/pod", controlledBy("batch/v1", "Job", "job", job.UID), stuckPod)
		w, stop := watching(t, api, "jobs.batch")
		defer stop()
		api.Put("events", "n/up", saysOf("cluster-autoscaler", "TriggeredScaleUp", scalesUp, "pod", api.UID("pods", "n/pod"), time.Now().Add(24*time.Hour))...)
		for _, want := range []string{"TriggeredScaleUp", "Unschedulable"} {
			time.Sleep(nodesComeWithin/2 + time.Minute)
			synctest.Wait()
			why, _, _ := w.Why(job)
			if why.Reason != want || why.At > jobs.At(time.Now()) {
				t.Errorf("%s at %d, not %s", why.Reason, why.At, want)
			}
		}
	})
}

// One autoscaler adds nodes, and another says ever so often that it does not.
func TestEventsOfOneAutoscalerDoNotPushOutThoseOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Jobs, apitest.Pods, events)
		api.Put("jobs", "n/job")
		job := ownerref.ID{Namespace: "n", UID: api.UID("jobs", "n/job"), Group: "batch", Kind: "Job", Name: "job"}
		api.Put("pods", "n/pod", controlledBy("batch/v1", "Job", "job", job.UID), stuckPod)
		uid := api.UID("pods", "n/pod")
		w, stop := watching(t, api, "jobs.batch")
		defer stop()
		api.Put("events", "n/up", saysOf("cluster-autoscaler", "TriggeredScaleUp", scalesUp, "pod", uid, time.Now())...)
		for e := range 2 * maxEvents {
			api.Put("events", fmt.Sprint("n/not", e), saysOf("karpenter", "FailedScheduling", "x", "pod", uid, time.Now())...)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if why, _, _ := w.Why(job); why.Reason != "TriggeredScaleUp" {
			t.Errorf("%s is told", why.Reason)
		}
	})
}
