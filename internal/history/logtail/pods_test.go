package logtail

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/store"
)

// ofPod is what is kept of a pod of a job; "" if there is nothing.
func (w *world) ofPod(job *history.Job, pod string) string {
	w.t.Helper()
	k, err := w.db.Kept(w.t.Context(), w.jobs, job.UID, store.KeptOfPod("pod-"+pod))
	if err != nil {
		return ""
	}
	text, err := store.Unpack(k.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// ending tells the keeper of a pod.
func (w *world) ending(run *history.Run, again bool) {
	w.keeper.Ending(w.pods, []*store.Run{{Run: run, Of: w.jobs.ID}}, again)
}

// deleting is a pod that runs, and is to be deleted.
func deleting(name, reason string) *history.Run {
	return &history.Run{Identity: history.Identity{Name: name}, Created: 10, Scheduled: 20, Started: 30, EndVersion: 1, Reason: reason}
}

// A pod is preempted, and its job goes on with another one, which fails long after the first is
// gone. What the first one wrote is kept, up to its last words.
func TestTheLogOfAPodThatIsGoneBeforeItsJobEndsIsKept(t *testing.T) {
	for _, reason := range []string{history.Preempted, history.Evicted, history.Removed} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, 1000)
			w.keeper.podPauses = []time.Duration{0, 50 * time.Millisecond, 50 * time.Millisecond, time.Minute}
			w.says("a/first", text("step 1\n"))
			pod := deleting("first", reason)
			job := w.end("a/train", history.Running, 0, pod)
			w.run()
			w.ending(pod, false)
			w.until("what was written is kept", func() bool { return w.ofPod(job, "first") == "step 1\n" })
			w.says("a/first", text("step 1\nsaved\n"))
			w.until("the last words are", func() bool { return w.ofPod(job, "first") == "step 1\nsaved\n" })
			w.api.Delete("pods", "a/first")
			w.says("a/first", http.NotFound)
			w.says("a/second", text("lost"))
			job = w.end("a/train", history.Failed, 5000, ended("second", history.Errored, "main", 1, 4900))
			w.keeper.Ended(w.jobs, []*history.Job{job}, false)
			w.until("the job's is kept", func() bool { return w.kept(job) == "lost" })
			if got := w.ofPod(job, "first"); got != "step 1\nsaved\n" {
				t.Errorf("%q is kept of the pod", got)
			}
		})
	}
}

// The pod that decided how its job ended is gone when that does. What it wrote is the job's log.
func TestAJobsLogIsThatOfAPodThatIsGone(t *testing.T) {
	w := newWorld(t, 1000)
	w.says("a/one", text("out of memory\n"))
	pod := ended("one", history.OOMKilled, "main", 137, 4900)
	pod.EndVersion = 1
	job := w.end("a/train", history.Failed, 5000, pod)
	w.run()
	w.ending(pod, false)
	w.until("what the pod wrote is kept", func() bool { return w.counted(kept) == 1 })
	w.api.Delete("pods", "a/one")
	w.says("a/one", func(http.ResponseWriter, *http.Request) { t.Error("it is read again") })
	w.keeper.Ended(w.jobs, []*history.Job{job}, false)
	w.until("so is the job's", func() bool { return w.kept(job) == "out of memory\n" })
}

// A recorder that takes over tells again of all pods that ended and are still there: what was read
// after the end is not read again, and what was read before, or not at all, is.
func TestWhatPodsWroteIsReadAfterATakeoverIfItWasNot(t *testing.T) {
	w := newWorld(t, 1000)
	w.says("a/whole", text("whole"))
	w.says("a/lost", text("lost"))
	w.says("a/early", text("step 1\n"))
	now := history.At(time.Now())
	whole, lost := ended("whole", history.Errored, "main", 1, now), ended("lost", history.Errored, "main", 1, now)
	early := deleting("early", history.Preempted)
	job := w.end("a/train", history.Running, 0, whole, lost, early)
	w.keeper.podPauses = []time.Duration{0}
	w.run()
	w.ending(whole, false)
	w.ending(early, false)
	w.until("two are kept", func() bool { return w.counted(kept) == 2 })
	w.says("a/whole", func(http.ResponseWriter, *http.Request) { t.Error("it is read again") })
	w.says("a/early", text("step 1\nsaved\n"))
	over := *early
	over.Reason, over.Ended = history.Preempted, history.At(time.Now().Add(time.Second))
	for _, pod := range []*history.Run{whole, lost, &over} {
		w.ending(pod, true)
	}
	w.until("all were looked at", func() bool { return w.counted(kept) == 5 })
	for pod, want := range map[string]string{"whole": "whole", "lost": "lost", "early": "step 1\nsaved\n"} {
		if got := w.ofPod(job, pod); got != want {
			t.Errorf("%s: %q, not %q", pod, got, want)
		}
	}
}

// A thousand pods of one job are preempted at once. So many are read as are kept, and another
// job's in the same namespace are read as well.
func TestAJobOfAThousandPodsHasFewOfThemRead(t *testing.T) {
	w := newWorld(t, 1000)
	w.says("a/other", text("hello"))
	other := deleting("other", history.Preempted)
	small := w.end("a/small", history.Running, 0, other)
	var pods []*store.Run
	for i := range 1000 {
		pod := deleting(fmt.Sprint("pod-", i), history.Preempted)
		pod.UID, pod.Namespace, pod.Job = "pod-"+pod.Name, "a", history.Ref{Resource: "jobs.batch", Name: "large", UID: "job-a-large"}
		pods = append(pods, &store.Run{Run: pod, Of: w.jobs.ID})
	}
	w.keeper.Ending(w.pods, pods, false)
	w.ending(other, false)
	if n := w.counted(dropped); n != 1000-store.MostPodLogs || w.keeper.queue.size != store.MostPodLogs+1 {
		t.Errorf("%d are dropped, %d wait", n, w.keeper.queue.size)
	}
	w.run()
	w.until("the small job's is kept", func() bool { return w.ofPod(small, "other") == "hello" })
}
