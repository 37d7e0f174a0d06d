package logtail

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// ofPod is what is kept of a pod of a job; "" if there is nothing.
func (w *world) ofPod(job *jobs.Job, pod string) string {
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
func (w *world) ending(run *jobs.Run, again bool) {
	w.keeper.Ending(w.pods, []*store.Run{{Run: run, Of: w.jobs.ID}}, again)
}

// deleting is a pod that runs, and is to be deleted.
func deleting(name, reason string) *jobs.Run {
	return &jobs.Run{ObjectID: jobs.ObjectID{Name: name}, Created: 10, Scheduled: 20, Started: 30, EndVersion: 1, Reason: reason}
}

// A pod is preempted, and its job goes on with another one, which fails long after the first is
// gone. What the first one wrote is kept, up to its last words.
func TestTheLogOfAPodThatIsGoneBeforeItsJobEndsIsKept(t *testing.T) {
	for _, reason := range []string{jobs.Preempted, jobs.Evicted, jobs.Removed} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, 1000)
			w.keeper.podPauses = []time.Duration{0, 50 * time.Millisecond, 50 * time.Millisecond, time.Minute}
			w.says("a/first", text("step 1\n"))
			pod := deleting("first", reason)
			job := w.end("a/train", jobs.Running, 0, pod)
			w.run()
			w.ending(pod, false)
			w.until("what was written is kept", func() bool { return w.ofPod(job, "first") == "step 1\n" })
			w.says("a/first", text("step 1\nsaved\n"))
			w.until("the last words are", func() bool { return w.ofPod(job, "first") == "step 1\nsaved\n" })
			w.api.Delete("pods", "a/first")
			w.says("a/first", http.NotFound)
			w.says("a/second", text("lost"))
			job = w.end("a/train", jobs.Failed, 5000, ended("second", jobs.Errored, "main", 1, 4900))
			w.keeper.Ended(w.jobs, []*jobs.Job{job}, false)
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
	pod := ended("one", jobs.OOMKilled, "main", 137, 4900)
	pod.EndVersion = 1
	job := w.end("a/train", jobs.Failed, 5000, pod)
	w.run()
	w.ending(pod, false)
	w.until("what the pod wrote is kept", func() bool { return w.counted(kept) == 1 })
	w.api.Delete("pods", "a/one")
	w.says("a/one", func(http.ResponseWriter, *http.Request) { t.Error("it is read again") })
	w.keeper.Ended(w.jobs, []*jobs.Job{job}, false)
	w.until("so is the job's", func() bool { return w.kept(job) == "out of memory\n" })
}

// A recorder that takes over tells again of all pods that ended and are still there: what was read
// after the end is not read again, and what was read before, or not at all, is.
func TestWhatPodsWroteIsReadAfterATakeoverIfItWasNot(t *testing.T) {
	w := newWorld(t, 1000)
	w.says("a/whole", text("whole"))
	w.says("a/lost", text("lost"))
	w.says("a/early", text("step 1\n"))
	now := jobs.At(time.Now())
	whole, lost := ended("whole", jobs.Errored, "main", 1, now), ended("lost", jobs.Errored, "main", 1, now)
	early := deleting("early", jobs.Preempted)
	job := w.end("a/train", jobs.Running, 0, whole, lost, early)
	w.keeper.podPauses = []time.Duration{0}
	w.run()
	w.ending(whole, false)
	w.ending(early, false)
	w.until("two are kept", func() bool { return w.counted(kept) == 2 })
	w.says("a/whole", func(http.ResponseWriter, *http.Request) { t.Error("it is read again") })
	w.says("a/early", text("step 1\nsaved\n"))
	over := *early
	over.Reason, over.Ended = jobs.Preempted, jobs.At(time.Now().Add(time.Second))
	for _, pod := range []*jobs.Run{whole, lost, &over} {
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
	other := deleting("other", jobs.Preempted)
	small := w.end("a/small", jobs.Running, 0, other)
	var pods []*store.Run
	for i := range 1000 {
		pod := deleting(fmt.Sprint("pod-", i), jobs.Preempted)
		pod.UID, pod.Namespace, pod.Job = "pod-"+pod.Name, "a", jobs.Ref{Resource: "jobs.batch", Name: "large", UID: "job-a-large"}
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

// A pod ends while what it wrote before is being read. It is read at once, and not only when the
// attempt of then would be repeated: it may be gone by then.
func TestAPodThatEndsWhileItIsReadIsReadAtOnce(t *testing.T) {
	w := newWorld(t, 1000)
	w.keeper.podPauses = []time.Duration{0, time.Hour}
	w.keeper.queue.share = 1 // as if others of the namespace were being read
	reading, goOn := make(chan struct{}), make(chan struct{})
	w.says("a/first", func(out http.ResponseWriter, r *http.Request) {
		close(reading)
		<-goOn
		text("step 1\n")(out, r)
	})
	pod := deleting("first", jobs.Preempted)
	job := w.end("a/train", jobs.Running, 0, pod)
	w.run()
	w.ending(pod, false)
	<-reading
	w.says("a/first", text("step 1\nsaved\n"))
	over := *pod
	over.Ended = jobs.At(time.Now())
	w.ending(&over, false)
	close(goOn)
	w.until("the last words are kept", func() bool { return w.ofPod(job, "first") == "step 1\nsaved\n" })
}

// The node of a pod has failed since the pod's log was kept. The job ends with that log all the same.
func TestAJobsLogIsWhatWasKeptOfItsPodIfThatCannotBeReadAnyMore(t *testing.T) {
	w := newWorld(t, 1000)
	w.keeper.podPauses = []time.Duration{0}
	w.says("a/one", text("step 1\n"))
	pod := deleting("one", jobs.Evicted)
	w.end("a/train", jobs.Running, 0, pod)
	w.run()
	w.ending(pod, false)
	w.until("what the pod wrote is kept", func() bool { return w.counted(kept) == 1 })
	w.says("a/one", func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusInternalServerError) })
	job := w.end("a/train", jobs.Failed, 5000, pod)
	w.keeper.Ended(w.jobs, []*jobs.Job{job}, false)
	w.until("the job was given up, or is kept", func() bool { return w.counted(kept)+w.counted(failed) == 2 })
	if got := w.kept(job); got != "step 1\n" {
		t.Errorf("%q is kept of the job", got)
	}
}

// A job has more pods that failed, and are still there, than it keeps logs of. After a takeover all are told
// again: the older ones take no newer one's place, and are not paid for each time.
func TestATakeoverReplacesNoNewerPodsLogs(t *testing.T) {
	w := newWorld(t, 1000)
	w.keeper.podPauses = []time.Duration{0}
	now := jobs.At(time.Now())
	var pods []*jobs.Run
	for i := range store.MostPodLogs + 5 {
		name := fmt.Sprint("pod-", i)
		w.says("a/"+name, text(name+"\n"))
		pods = append(pods, ended(name, jobs.Errored, "main", 1, now-jobs.Time(10000-100*i)))
	}
	job := w.end("a/train", jobs.Running, 0, pods...)
	w.run()
	for i, pod := range pods {
		w.ending(pod, false)
		w.until("it is kept", func() bool { return w.counted(kept) == i+1 })
	}
	for _, pod := range pods[:5] {
		w.ending(pod, true)
	}
	w.until("all were looked at", func() bool { return w.counted(kept)+w.counted(nothing) == len(pods)+5 })
	for i := range pods {
		if got := w.ofPod(job, fmt.Sprint("pod-", i)); (got != "") != (i >= 5) {
			t.Errorf("%q is kept of pod %d", got, i)
		}
	}
}

// A thousand pods that failed long ago are told again after a takeover. A pod that is being deleted does not wait behind
// them, and is not dropped for them.
func TestPodsOfATakeoverComeAfterThoseThatAreBeingDeleted(t *testing.T) {
	q := newQueue(mostWaiting, ofOne)
	now := time.Now()
	pod := func(number int, again, terminal bool) *item {
		name := fmt.Sprint("p-", number)
		run := deleting(name, jobs.Preempted)
		if terminal {
			run = ended(name, jobs.Errored, "main", 1, 1000)
		}
		run.UID = name
		return &item{job: &jobs.Job{ObjectID: jobs.ObjectID{UID: "job-" + name, Namespace: "a"}}, pod: run, again: again, came: now, due: now}
	}
	for i := range mostWaiting {
		q.add(pod(i, true, true))
	}
	fresh := pod(mostWaiting, false, false)
	if q.add(fresh) != 1 {
		t.Error("nothing is dropped")
	}
	for i := range mostWaiting {
		q.add(pod(mostWaiting+1+i, true, true))
	}
	if it, _ := q.next(now); it != fresh {
		t.Errorf("%v is next", it)
	}
}
