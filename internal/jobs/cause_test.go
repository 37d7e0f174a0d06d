package jobs

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// pod is a run of a minute that ended by a container's exit code; it is called by its number.
func pod(n int, ended Time, reason, container string, exit int64) *Run {
	r := &Run{
		ObjectID: ObjectID{UID: fmt.Sprint("u", n), Namespace: "team-a", Name: fmt.Sprintf("train-%d", n)}, Node: fmt.Sprintf("gpu-%02d", n), Index: fmt.Sprint("worker-", n),
		Created: 1000, Scheduled: 1000, Started: 2000, Ended: ended, Reason: reason, Container: container,
	}
	if container != "" {
		r.ExitCode = &exit
	}
	return r
}

func TestACauseIsWhatDecidedTheEnd(t *testing.T) {
	const minute = 60_000
	failed := func(reason, message string) *Job {
		return &Job{ObjectID: ObjectID{Name: "train"}, State: Failed, Since: minute, Reason: reason, Message: message}
	}
	queued := func(reasons ...Reason) *Job {
		return &Job{State: Queued, Since: minute, Reasons: reasons, Spent: map[State]time.Duration{Running: 1}}
	}
	kueue := func(reason, message string) Reason {
		return Reason{At: minute - 500, Reason: reason, Message: message, Source: "Workload"}
	}
	const by = "Preempted to accommodate a workload (UID: w, JobUID: u7) due to prioritization in the ClusterQueue; preemptor path: /q"
	oom, after := pod(7, minute-500, OOMKilled, "trainer", 137), pod(3, minute-900, Errored, "trainer", 1)
	with := func(r *Run, change func(*Run)) *Run { change(r); return r }
	waits := func(reason, container, message string) *Run {
		r := pod(1, 0, reason, "", 0)
		r.Started, r.Container, r.Message = 0, container, message
		return r
	}
	for name, test := range map[string]struct {
		job  *Job
		runs []*Run
		c    Circumstances
		want string // its text, reason and number of pods
	}{
		"nobody saw how a pod came to be gone": {failed("JobFailed", "words"), []*Run{with(pod(2, minute, Removed, "", 0), func(r *Run) { r.EndVersion = EndUnseen })}, Circumstances{}, "JobFailed: words JobFailed 0"},
		"out of memory":                        {failed("BackoffLimitExceeded", "m"), []*Run{oom}, Circumstances{}, "trainer was OOM-killed (exit 137) on gpu-07 OOMKilled 1"},
		"three of four": {failed("", ""), []*Run{oom, pod(8, minute, OOMKilled, "trainer", 137), pod(9, minute, OOMKilled, "trainer", 137), pod(1, 0, "", "", 0)}, Circumstances{},
			"trainer was OOM-killed (exit 137) on gpu-07; 3 of 4 workers likewise OOMKilled 3"},
		"another's failure came first, for want of it":            {failed("", ""), []*Run{after, oom}, Circumstances{}, "trainer was OOM-killed (exit 137) on gpu-07 OOMKilled 1"},
		"those of another role are others":                        {failed("", ""), []*Run{oom, with(pod(8, minute, OOMKilled, "trainer", 137), func(r *Run) { r.Index = "leader-0" })}, Circumstances{}, "trainer was OOM-killed (exit 137) on gpu-07 OOMKilled 1"},
		"the first of two":                                        {failed("", ""), []*Run{pod(2, minute-100, Errored, "trainer", 2), after}, Circumstances{}, "trainer failed (exit 1) on gpu-03 Error 1"},
		"one that the job names":                                  {failed("PodFailurePolicy", "Container trainer for pod team-a/train-2 failed with exit code 2 matching FailJob rule at index 0"), []*Run{pod(2, minute-100, Errored, "trainer", 2), after}, Circumstances{}, "trainer failed (exit 2) on gpu-02 (podFailurePolicy) Error 1"},
		"one that the job names, and that ended as another began": {failed("PodFailurePolicy", "Container trainer for pod team-a/train-2 failed with exit code 2 matching FailJob rule at index 0"), []*Run{pod(2, minute/2, Errored, "trainer", 2), with(pod(3, minute, Evicted, "", 0), func(r *Run) { r.Scheduled = minute / 2 })}, Circumstances{}, "trainer failed (exit 2) on gpu-02 (podFailurePolicy) Error 1"},
		"its part that the job names":                             {failed("", "first failed job: train-2"), []*Run{with(pod(2, minute-100, Errored, "trainer", 2), func(r *Run) { r.Name = "train-2-0-x" }), after}, Circumstances{}, "trainer failed (exit 2) on gpu-02 Error 1"},
		"an earlier one was forgiven":                             {failed("BackoffLimitExceeded", ""), []*Run{pod(2, minute-100, Errored, "trainer", 2), pod(3, minute-20_000, OOMKilled, "trainer", 137)}, Circumstances{}, "trainer failed (exit 2) on gpu-02 Error 1"},
		"one of an attempt before":                                {failed("", ""), []*Run{with(oom, func(*Run) {}), with(pod(2, minute, Errored, "trainer", 2), func(r *Run) { r.Scheduled = minute - 400 })}, Circumstances{}, "trainer failed (exit 2) on gpu-02 Error 1"},
		"what comes after says nothing":                           {failed("JobFailed", "words"), []*Run{pod(2, minute+20_000, Errored, "trainer", 2)}, Circumstances{}, "JobFailed: words JobFailed 0"},
		"those that it ended say nothing":                         {failed("JobFailed", ""), []*Run{with(pod(2, minute, Completed, "trainer", 0), func(*Run) {})}, Circumstances{}, "JobFailed JobFailed 0"},
		"somebody deleted a pod":                                  {&Job{State: Retrying, Since: minute}, []*Run{pod(2, minute, Removed, "trainer", 143)}, Circumstances{}, "a pod was deleted Deleted 1"},
		"somebody deleted a pod that was made anew":               {&Job{State: Retrying, Since: minute}, []*Run{pod(1, minute/2, OOMKilled, "trainer", 137), with(pod(2, minute, Removed, "trainer", 143), func(r *Run) { r.Scheduled = minute / 2 * 11 / 10 })}, Circumstances{}, "a pod was deleted Deleted 1"},
		"somebody deleted a pod, another waits":                   {&Job{State: Retrying, Since: minute}, []*Run{pod(2, minute, Removed, "trainer", 143), waits("Unschedulable", "", "0/3 nodes")}, Circumstances{}, "a pod was deleted Deleted 1"},
		"a pod was deleted too often, another waits":              {failed("BackoffLimitExceeded", ""), []*Run{pod(2, minute, Removed, "trainer", 143), waits("Unschedulable", "", "0/3 nodes")}, Circumstances{}, "a pod was deleted Deleted 1"},
		"what no node took was not wanted any more":               {failed("", ""), []*Run{pod(2, minute-100, Removed, "trainer", 143), with(waits("Unschedulable", "", "0/3 nodes"), func(r *Run) { r.Scheduled, r.Ended = 0, minute-50 })}, Circumstances{}, "a pod was deleted Deleted 1"},
		"a node refused what was made for a deleted one":          {&Job{State: Retrying, Since: minute}, []*Run{pod(2, minute/2, Removed, "trainer", 143), with(waits("OutOfcpu", "", "no room"), func(r *Run) { r.Scheduled, r.Ended = minute-200, minute-100 })}, Circumstances{}, "OutOfcpu on gpu-01: no room OutOfcpu 1"},
		"what no node took was given up with the rest":            {failed("", ""), []*Run{pod(2, minute-100, Removed, "trainer", 143), with(waits("Unschedulable", "", "0/3 nodes"), func(r *Run) { r.Scheduled, r.Ended = 0, minute+100 })}, Circumstances{}, "no node takes a pod: 0/3 nodes Unschedulable 1"},
		"somebody deleted what no node took":                      {&Job{State: Retrying, Since: minute, Version: 9}, []*Run{with(waits("Unschedulable", "", "0/3 nodes"), func(r *Run) { r.Scheduled, r.Ended, r.EndVersion = 0, minute-50, 9 })}, Circumstances{}, "a pod was deleted that no node had taken: 0/3 nodes Deleted 1"},
		"what no node took was deleted later":                     {&Job{State: Retrying, Since: minute, Version: 9}, []*Run{with(waits("Unschedulable", "", "0/3 nodes"), func(r *Run) { r.Scheduled, r.Ended, r.EndVersion = 0, minute+50, 10 })}, Circumstances{}, "no node takes a pod: 0/3 nodes Unschedulable 1"},
		"a branch went on after one had failed":                   {failed("", ""), []*Run{pod(1, minute/2, OOMKilled, "trainer", 137), with(pod(2, minute, Completed, "trainer", 0), func(r *Run) { r.Scheduled = minute / 2 * 11 / 10 })}, Circumstances{}, "trainer was OOM-killed (exit 137) on gpu-01 OOMKilled 1"},
		"what is made anew at once":                               {&Job{State: Retrying, Since: minute}, []*Run{with(pod(1, minute+3000, Errored, "trainer", 1), func(r *Run) { r.Created = minute + 1000 }), with(pod(2, minute, OOMKilled, "trainer", 137), func(r *Run) {})}, Circumstances{}, "trainer was OOM-killed (exit 137) on gpu-02 OOMKilled 1"},
		"node pressure":                                           {&Job{State: Retrying, Since: minute}, []*Run{with(pod(2, minute, Evicted, "", 0), func(r *Run) { r.Message = "The node was low on resource: ephemeral-storage. Threshold quantity: 1" })}, Circumstances{}, "evicted: node disk pressure on gpu-02 Evicted 1"},
		"its own fault": {&Job{State: Retrying, Since: minute}, []*Run{with(pod(2, minute, Evicted, "", 0), func(r *Run) { r.Message = "Pod ephemeral local storage usage exceeds 1Gi.\nmore" })}, Circumstances{},
			"evicted: Pod ephemeral local storage usage exceeds 1Gi. on gpu-02 Evicted 1"},
		"a node went":          {&Job{State: Retrying, Since: minute}, []*Run{with(pod(2, 0, NodeLost, "", 0), func(r *Run) {}), pod(4, 0, "", "", 0)}, Circumstances{}, "node gpu-02 was lost NodeLost 1"},
		"a node was shut down": {&Job{State: Retrying, Since: minute}, []*Run{with(pod(2, minute, NodeLost, "", 0), func(r *Run) { r.Message = "Pod was terminated in response to imminent node shutdown." })}, Circumstances{}, "node gpu-02 was shut down NodeLost 1"},
		"preempted by the scheduler": {&Job{State: Retrying, Since: minute}, []*Run{pod(2, minute, Preempted, "trainer", 143), pod(3, minute, Preempted, "trainer", 137)}, Circumstances{},
			"preempted on gpu-02 for a pod of higher priority; 2 of 2 workers likewise Preempted 2"},
		"preempted by its queue, for one that is known":  {queued(kueue(Preempted, by)), nil, Circumstances{NameOf: func(uid string) string { return "team-b/train-" + uid[1:] }}, "preempted by team-b/train-7 Preempted 0"},
		"preempted by its queue, for one that is hidden": {queued(kueue(Preempted, by)), nil, Circumstances{}, "preempted: prioritization in the ClusterQueue Preempted 0"},
		"evicted by its queue":                           {queued(kueue("ClusterQueueStopped", "m")), nil, Circumstances{}, "evicted: its queue was stopped Evicted 0"},
		"its queue waits for quota":                      {queued(kueue("Pending", "m")), nil, Circumstances{}, ""},
		"preempted long ago":                             {queued(Reason{At: 1, Reason: Preempted, Message: by, Source: "Workload"}), nil, Circumstances{}, ""},
		"a pod was evicted before nobody read its queue": {queued(), []*Run{pod(2, minute-500, Evicted, "", 0)}, Circumstances{}, "evicted on gpu-02 Evicted 1"},
		"a pod was evicted before its queue took it":     {queued(), []*Run{pod(2, minute-500, Evicted, "", 0)}, Circumstances{Queues: true}, ""},
		"it never ran":                                   {&Job{State: Queued, Since: minute, Reasons: []Reason{kueue(Preempted, by)}}, nil, Circumstances{}, ""},
		"a deadline":                                     {failed("DeadlineExceeded", "m"), []*Run{pod(1, minute, Removed, "trainer", 143)}, Circumstances{Deadline: 90 * time.Minute}, "deadline of 1 h 30 min exceeded Deadline 0"},
		"a deadline that nobody tells":                   {failed("", "Max duration limit exceeded"), nil, Circumstances{}, "deadline exceeded Deadline 0"},
		"a deadline, for an image": {failed("DeadlineExceeded", "m"), []*Run{waits("ImagePullBackOff", "trainer", "no such image")}, Circumstances{Deadline: time.Hour},
			"deadline of 1 h exceeded: image cannot be pulled: no such image Deadline 0"},
		"a container cannot start":      {failed("", ""), []*Run{waits("CreateContainerConfigError", "trainer", "no secret")}, Circumstances{}, "trainer cannot start: CreateContainerConfigError: no secret CreateContainerConfigError 1"},
		"no node":                       {failed("", ""), []*Run{waits("Unschedulable", "", "0/3 nodes")}, Circumstances{}, "no node takes a pod: 0/3 nodes Unschedulable 1"},
		"a container crashes":           {&Job{State: Retrying, Since: minute}, []*Run{with(pod(2, 0, "CrashLoopBackOff", "trainer", 1), func(r *Run) { r.Restarts = 5 })}, Circumstances{}, "trainer failed (exit 1) on gpu-02, after 5 restarts CrashLoopBackOff 1"},
		"somebody cancelled it":         {&Job{State: Cancelled, Since: minute, Message: "by anna"}, []*Run{oom}, Circumstances{}, "cancelled: by anna Cancelled 0"},
		"it runs":                       {&Job{State: Running, Since: minute, Reason: "x"}, []*Run{oom}, Circumstances{}, ""},
		"it succeeded":                  {&Job{State: Succeeded, Since: minute}, []*Run{oom}, Circumstances{}, ""},
		"somebody suspended it":         {&Job{State: Suspended, Since: minute}, []*Run{oom}, Circumstances{}, ""},
		"nobody says anything":          {failed("", ""), nil, Circumstances{}, ""},
		"an admission that was refused": {failed("", ""), []*Run{with(pod(2, minute, "UnexpectedAdmissionError", "", 0), func(r *Run) { r.Started, r.Message = 0, "no devices" })}, Circumstances{}, "UnexpectedAdmissionError on gpu-02: no devices UnexpectedAdmissionError 1"},
		"its pod's own deadline":        {failed("", ""), []*Run{pod(2, minute, Deadline, "trainer", 143)}, Circumstances{}, "the deadline of a pod was exceeded on gpu-02 Deadline 1"},
		"a signal":                      {failed("", ""), []*Run{with(pod(2, minute, Errored, "trainer", 0), func(r *Run) { r.ExitCode, r.Signal = nil, code(9) })}, Circumstances{}, "trainer failed (signal 9) on gpu-02 Error 1"},
		"it failed within a moment": {&Job{State: Retrying, Since: minute}, []*Run{with(pod(2, minute, Errored, "trainer", 1), func(r *Run) { r.Scheduled, r.Started = minute, minute })}, Circumstances{},
			"trainer failed (exit 1) on gpu-02 Error 1"},
		"it crashes, and is seen to be bound later": {&Job{State: Retrying, Since: minute}, []*Run{with(pod(2, 0, "CrashLoopBackOff", "trainer", 1), func(r *Run) { r.Scheduled, r.Restarts = minute+1, 2 })}, Circumstances{},
			"trainer failed (exit 1) on gpu-02, after 2 restarts CrashLoopBackOff 1"},
		"nobody knows of the containers": {failed("", ""), []*Run{with(pod(2, minute, Errored, "", 0), func(r *Run) { r.ExitCode = nil })}, Circumstances{}, "a pod failed on gpu-02 Error 1"},
	} {
		told := ""
		if cause := CauseOf(test.job, test.runs, test.c); cause != nil {
			told = fmt.Sprintf("%s %s %d", cause.Text, cause.Reason, cause.Pods)
		}
		if told != test.want {
			t.Errorf("%s: %q, not %q", name, told, test.want)
		}
	}
}

// Nobody recorded while a job failed and was tried again, twice, and failed for good. Who reads that
// later dates it by when it was read, which says of none of its pods that it ended later. Their
// versions do, so each try has the cause that it would have had.
func TestWhatIsReadAfterTheFactHasTheCauseOfItsVersion(t *testing.T) {
	const read = 600_000
	try := func(n int, created, ended Time, reason string, version uint64) *Run {
		r := pod(n, ended, reason, "trainer", 1)
		r.Created, r.Scheduled, r.Started, r.EndVersion = created, created, created, version
		return r
	}
	runs := []*Run{
		try(1, 1000, 5000, OOMKilled, 10), try(2, 6000, 9000, Errored, 20), try(3, 10_000, 10_500, Evicted, 30),
		try(4, 10_000, 590_000, Errored, 31), // it was to be deleted then, and took its time
		try(5, 591_000, 592_000, OOMKilled, 50),
	}
	for version, want := range map[uint64]string{10: "train-1", 15: "train-1", 20: "train-2", 25: "train-2", 40: "train-3", 60: "train-5", 9: "train-5" /* versions say nothing */} {
		for _, j := range []*Job{{State: Retrying, Version: version, Since: read}, {State: Failed, Reason: "BackoffLimitExceeded", Version: version, Since: read}} {
			if version == 40 && j.State == Failed {
				want = "train-4" // those long before the last were forgiven
			}
			cause := CauseOf(j, runs, Circumstances{})
			if cause == nil || cause.Pod != want {
				t.Errorf("%s at %d: %+v, not %s", j.State, version, cause, want)
				continue
			}
			if known := cause.IsKnownFor(j, runs); known != (version != 9) {
				t.Errorf("%s at %d: it is certain: %t", j.State, version, known)
			}
		}
	}
	elsewhere := &Job{State: Retrying, Version: 1000, Since: 7000} // the versions of jobs and pods are not of one etcd
	if cause := CauseOf(elsewhere, append(runs, try(6, 30_000, 40_000, OOMKilled, 60)), Circumstances{}); cause == nil || cause.Pod == "train-6" || cause.Pod == "train-5" {
		t.Errorf("%+v", cause)
	}
	stopped := try(1, 1000, 0, "CrashLoopBackOff", 20) // it is deleted for having failed
	stopped.Restarts = 3
	if cause := CauseOf(&Job{State: Failed, Version: 15, Since: read}, []*Run{try(2, 100, 200, Errored, 5), stopped}, Circumstances{}); cause.Pod != "train-1" {
		t.Errorf("%+v", cause)
	}
}

// A gateway began to record while a pod was being evicted: it found that by comparing, or an earlier
// release had seen it. The pod's end is then seen live, and its version counts as the first at which
// the end was certain. Its job was tried again in between.
func TestAnEvictionThatWasFoundLateRemainsTheCause(t *testing.T) {
	before := pod(1, 5000, Errored, "trainer", 1) // of an earlier try
	before.EndVersion = 20
	evicted := SeenPod{ObjectID: ObjectID{UID: "u2", Namespace: "n", Name: "train-2"}, Version: 41, Created: 6000, Observed: 61_000, Late: true,
		PodSaid: PodSaid{Node: "gpu-02", Bound: 6000, Begun: true, Began: 7000, Deleting: true, Finished: 90_000, Reason: Evicted, Message: "Eviction API: evicting"}}
	j := &Job{ObjectID: ObjectID{Name: "train"}, State: Retrying, Version: 45, Since: 61_000}
	run := NextRun(nil, evicted)
	if cause := CauseOf(j, []*Run{before, run}, Circumstances{}); cause == nil || cause.Pod != "train-2" {
		t.Fatalf("at first: %+v", cause)
	}
	over := evicted
	over.Version, over.Late, over.Over, over.Deleting, over.Observed, over.Finished = 60, false, true, false, 65_000, 64_000
	run = NextRun(run, over)
	if cause := CauseOf(j, []*Run{before, run}, Circumstances{}); cause == nil || cause.Pod != "train-2" {
		t.Errorf("once it has ended, at version %d: %+v", run.EndVersion, cause)
	}
}

// Pods of a PyTorchJob, an MPIJob or a Volcano Job have the names of those before them.
func TestAPodIsNoneOfThoseBeforeItOfItsName(t *testing.T) {
	was, now := pod(1, 60_000, Errored, "trainer", 1), pod(2, 60_000*60, OOMKilled, "trainer", 137)
	was.Name, now.Name, now.Created, now.Scheduled, now.Started = "train-worker-0", "train-worker-0", 70_000, 70_000, 71_000
	was.EndVersion, now.EndVersion = 10, 90
	j := &Job{ObjectID: ObjectID{Name: "train"}, State: Failed, Version: 100, Since: 60_000 * 60, Message: "pod train-worker-0 failed"}
	if cause := CauseOf(j, []*Run{was, now}, Circumstances{}); cause == nil || cause.Reason != OOMKilled {
		t.Errorf("the job names its pod: %+v", cause)
	}
	j.Version, j.Message = 80, "" // it is not certain that the second had ended by then
	if c := (&Cause{Reason: OOMKilled, Pod: "train-worker-0", Pods: 1}); c.IsKnownFor(j, []*Run{was, now}) {
		t.Error("it is certain for a pod that ended later, since one of its name ended before")
	}
}

// Whatever order the times of pods are in, and however many are the same, there is a cause and nobody fails.
func TestCausesOfAnyTimes(t *testing.T) {
	random := rand.New(rand.NewPCG(20261125, 1))
	ends := []string{"", Completed, OOMKilled, Evicted, Preempted, NodeLost, Deadline, Errored, Removed, "CrashLoopBackOff", "Unschedulable"}
	for n := range 20_000 {
		at := func() Time { return Time(random.IntN(4) * 20_000) }
		var runs []*Run
		for i := range random.IntN(4) {
			end := ends[random.IntN(len(ends))]
			r := pod(i, at(), end, "trainer", 1)
			r.Created, r.Scheduled, r.Started = at(), at(), at()
			runs = append(runs, r)
		}
		job := &Job{State: []State{Failed, Retrying, Cancelled, Queued}[random.IntN(4)], Since: 40_000 + at(), Reason: []string{"", "BackoffLimitExceeded"}[random.IntN(2)], Spent: map[State]time.Duration{Running: 1}}
		if cause := CauseOf(job, runs, Circumstances{}); cause != nil && cause.Pods > len(runs) {
			t.Errorf("%d: %+v of %d pods", n, cause, len(runs))
		}
	}
}

func FuzzCauseIsAShortPlainSentence(f *testing.F) {
	f.Add("DeadlineExceeded", "m", "trainer", "Evicted", "The node was low on resource: memory.")
	f.Add("x\x00", strings.Repeat("ä", 500), "<b>", "Preempted", "(UID: w, JobUID: u7) due to \x1b[31m; \u202e")
	f.Fuzz(func(t *testing.T, reason, message, container, end, words string) {
		for _, state := range []State{Failed, Retrying, Cancelled, Queued} {
			job := &Job{State: state, Since: 60_000, Reason: reason, Message: message, Spent: map[State]time.Duration{Running: 1}, Reasons: []Reason{{At: 60_000, Reason: end, Message: words, Source: "Workload"}}}
			runs := []*Run{pod(1, 60_000, end, container, 1), pod(2, 60_000, end, container, 1)}
			runs[0].Message, runs[0].Index, runs[1].Index = words, container+"-1", container+"-2"
			cause := CauseOf(job, runs, Circumstances{NameOf: func(uid string) string { return uid }})
			if cause == nil {
				continue
			}
			if len(cause.Text) > maxCause || !utf8.ValidString(cause.Text) || strings.ContainsAny(cause.Text, "\x00\n\x1b\u202e") || len(cause.Reason) > maxName {
				t.Errorf("%q %q", cause.Text, cause.Reason)
			}
		}
	})
}
