package e2e

import (
	"errors"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// madeUp is a Job's recording that nobody recorded. Versions are numbered by its seconds.
type madeUp struct{ recordedJob }

func atSecond(number int) time.Time {
	return time.Unix(1_800_000_000, 0).UTC().Add(time.Duration(number) * time.Second)
}

func (m *madeUp) job(number int, active, ready, succeeded, failed int32, conditions ...batchv1.JobConditionType) {
	j := &batchv1.Job{Spec: batchv1.JobSpec{Suspend: new(false), Parallelism: new(int32(1)), Completions: new(int32(1))}}
	j.Status = batchv1.JobStatus{Active: active, Ready: &ready, Succeeded: succeeded, Failed: failed}
	for _, c := range conditions {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue})
	}
	m.versions = append(m.versions, version[*batchv1.Job]{object: j, number: uint64(number), at: atSecond(number)})
}

func (m *madeUp) pod(name string, made, bound, ran, ended int, reason string, code int32) {
	var versions []version[*corev1.Pod]
	add := func(number int, p corev1.Pod) {
		versions = append(versions, version[*corev1.Pod]{object: &p, number: uint64(number), at: atSecond(number)})
	}
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(atSecond(made))}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	p.Spec.Containers = []corev1.Container{{Name: "trainer", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}}
	add(made, p)
	p.Spec.NodeName = "node-1"
	add(bound, p)
	p.Status.Phase, p.Status.ContainerStatuses = corev1.PodRunning, []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	add(ran, p)
	p.Status.Phase = corev1.PodFailed
	if code == 0 {
		p.Status.Phase = corev1.PodSucceeded
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code}}}}
	add(ended, p)
	if m.pods == nil {
		m.pods = map[string][]version[*corev1.Pod]{}
	}
	m.pods[name] = versions
}

// tellAttempts has the oracle look at a number of attempts, and at nothing else.
func (m *madeUp) tellAttempts(n int) error {
	o := &oracle{of: &m.recordedJob, told: toldLife{job: toldJob{Attempt: n}}}
	o.readPods()
	o.checkAttempts()
	return errors.Join(o.wrong...)
}

// Pods that fail at once are never told to be ready. Each of them was an attempt, as far as a
// version of the Job told it apart.
func TestAttemptsAreCountedWhereTheJobTellsThemApart(t *testing.T) {
	t.Parallel()
	var apart, together madeUp
	for _, m := range []*madeUp{&apart, &together} {
		m.job(10, 0, 0, 0, 0)
		m.pod("a", 11, 13, 14, 15, "Error", 1)
		m.job(16, 1, 0, 0, 0)
		if m == &apart {
			m.job(20, 0, 0, 0, 1)
		}
		m.pod("b", 29, 31, 33, 34, "Error", 1)
		m.job(35, 1, 0, 0, 1)
		if m == &apart {
			m.job(40, 0, 0, 0, 2)
		}
		m.pod("c", 49, 51, 53, 55, "Completed", 0)
		m.job(57, 1, 1, 0, 2)
		m.job(60, 0, 0, 1, 2, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
	}
	for n, right := range map[int][2]bool{0: {false, false}, 1: {false, true}, 2: {false, true}, 3: {true, true}, 4: {false, false}} {
		for i, m := range []*madeUp{&apart, &together} {
			if err := m.tellAttempts(n); (err == nil) != right[i] {
				t.Errorf("%d attempts, %d: %v", n, i, err)
			}
		}
	}
}

// The oracle finds each sort of error in what is told of a Job whose first pod ran out of memory,
// and whose second one succeeded.
func TestALifeThatIsToldWrongIsSeen(t *testing.T) {
	t.Parallel()
	var of madeUp
	of.job(10, 0, 0, 0, 0)
	of.pod("a", 11, 13, 14, 18, "OOMKilled", 137)
	of.job(12, 1, 0, 0, 0)
	of.job(15, 1, 1, 0, 0)
	of.job(20, 0, 0, 0, 1)
	of.pod("b", 29, 31, 33, 38, "Completed", 0)
	of.job(30, 1, 0, 0, 1)
	of.job(35, 1, 1, 0, 1)
	of.job(40, 0, 0, 1, 1, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)

	right := func() toldLife {
		var l toldLife
		from := ""
		for _, t := range []struct {
			number  uint64
			to      string
			attempt int
		}{{10, "Submitted", 1}, {12, "Pending", 1}, {15, "Running", 1}, {20, "Retrying", 1}, {35, "Running", 2}, {40, "Succeeded", 2}} {
			one := toldTransition{To: t.to, number: t.number, Attempt: t.attempt, From: new(from)}
			if t.to == "Retrying" {
				one.Cause = &toldCause{Reason: "OOMKilled", Pod: "a", Node: "node-1", ExitCode: new(int64(137))}
			}
			l.transitions = append(l.transitions, one)
			from = t.to
		}
		run := func(name string, made, bound, ran, ended int, reason string, code int64) toldRun {
			return toldRun{UID: name, Name: name, Node: "node-1", Reason: reason, CreatedAt: atSecond(made), ScheduledAt: new(atSecond(bound)), StartedAt: new(atSecond(ran)), EndedAt: new(atSecond(ended)), ExitCode: &code}
		}
		l.runs = map[string]toldRun{"a": run("a", 11, 13, 14, 18, "OOMKilled", 137), "b": run("b", 29, 31, 33, 38, "Completed", 0)}
		l.job = toldJob{State: "Succeeded", Attempt: 2, PodFailures: new(1), Preemptions: new(0), PodCount: new(2)}
		l.job.Hours = &struct{ CPU, Memory, GPU float64 }{CPU: 2 * 12.0 / 3600}
		l.job.Progress = &struct{ Done, Of int64 }{1, 1}
		return l
	}
	without := func(l *toldLife, i int) {
		l.transitions[i+1].From = l.transitions[i].From
		l.transitions = append(l.transitions[:i:i], l.transitions[i+1:]...)
	}
	for name, test := range map[string]struct {
		change func(*toldLife)
		away   uint64
		right  bool
	}{
		"all":                                   {func(*toldLife) {}, 0, true},
		"nothing":                               {func(l *toldLife) { *l = toldLife{} }, 0, false},
		"Retrying is missing":                   {func(l *toldLife) { without(l, 3) }, 0, false},
		"Running is missing":                    {func(l *toldLife) { without(l, 2) }, 0, false},
		"Pending is missing":                    {func(l *toldLife) { without(l, 1) }, 0, false},
		"the end is missing":                    {func(l *toldLife) { l.transitions = l.transitions[:5] }, 0, false},
		"it runs before a pod does":             {func(l *toldLife) { l.transitions[1].To = "Running"; l.transitions[2].From = new("Running") }, 0, false},
		"it is tried again while it runs":       {func(l *toldLife) { l.transitions[3].number = 15; l.transitions[2].number = 12 }, 0, false},
		"one is late":                           {func(l *toldLife) { l.transitions[3].Late = true }, 0, false},
		"one is at no version":                  {func(l *toldLife) { l.transitions[3].number = 21 }, 0, false},
		"the order is another":                  {func(l *toldLife) { l.transitions[2], l.transitions[3] = l.transitions[3], l.transitions[2] }, 0, false},
		"an attempt is missing":                 {func(l *toldLife) { l.job.Attempt = 1 }, 0, false},
		"an attempt is too many":                {func(l *toldLife) { l.job.Attempt = 3 }, 0, false},
		"it waits in a queue":                   {func(l *toldLife) { l.transitions[1].To = "Queued"; l.transitions[2].From = new("Queued") }, 0, false},
		"a run is missing":                      {func(l *toldLife) { delete(l.runs, "a") }, 0, false},
		"a run has another reason":              {func(l *toldLife) { r := l.runs["a"]; r.Reason = "Error"; l.runs["a"] = r }, 0, false},
		"a run has another exit code":           {func(l *toldLife) { r := l.runs["a"]; r.ExitCode = new(int64(1)); l.runs["a"] = r }, 0, false},
		"a run was on another node":             {func(l *toldLife) { r := l.runs["a"]; r.Node = "node-2"; l.runs["a"] = r }, 0, false},
		"a run has not ended":                   {func(l *toldLife) { r := l.runs["b"]; r.EndedAt = nil; l.runs["b"] = r }, 0, false},
		"hours are missing":                     {func(l *toldLife) { l.job.Hours.CPU -= 1.0 / 3600 }, 0, false},
		"a failure is missing":                  {func(l *toldLife) { l.job.PodFailures = new(0) }, 0, false},
		"a preemption is too many":              {func(l *toldLife) { l.job.Preemptions = new(1) }, 0, false},
		"less is done":                          {func(l *toldLife) { l.job.Progress.Done = 0 }, 0, false},
		"the cause is another pod":              {func(l *toldLife) { l.transitions[3].Cause.Pod = "b" }, 0, false},
		"the cause is another":                  {func(l *toldLife) { l.transitions[3].Cause.Reason = "Error" }, 0, false},
		"the cause is missing":                  {func(l *toldLife) { l.transitions[3].Cause = nil }, 0, false},
		"the cause is missing since a restart":  {func(l *toldLife) { l.transitions[3].Cause = nil }, 25, false},
		"a success has a cause":                 {func(l *toldLife) { l.transitions[5].Cause = &toldCause{} }, 0, false},
		"its state is not that of its last one": {func(l *toldLife) { l.job.State = "Failed" }, 0, false},
		"its queue has given it up":             {func(l *toldLife) { l.transitions = slices.Insert(l.transitions, 1, givenUp(11)) }, 0, false},
	} {
		told := right()
		test.change(&told)
		if err := (&oracle{name: name, of: &of.recordedJob, told: told, away: test.away}).check(); (err == nil) != test.right {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A Job that is suspended and resumed before its controller looked is Running by the status that it had, and stays so between two
// completions. Where Running begins after a status of its own, a pod has to have run since the suspension.
func TestAJobThatIsResumedBeforeItsControllerLookedRunsOn(t *testing.T) {
	t.Parallel()
	for ready, right := range map[int32]bool{1: true, 0: false} { // in the status that it has as it is resumed
		var of madeUp
		of.job(10, 1, 0, 0, 0)
		of.pod("a", 11, 12, 14, 19, "Completed", 0)
		of.job(15, 1, 1, 0, 0)
		of.job(20, 1, 1, 0, 0)
		of.versions[2].object.Spec.Suspend = new(true)
		of.job(21, 1, ready, 0, 0)
		of.job(22, 1, 0, 0, 0)
		o := &oracle{of: &of.recordedJob}
		for number, to := range map[uint64]string{10: "Pending", 15: "Running", 20: "Suspended", 21: "Running"} {
			o.told.transitions = append(o.told.transitions, toldTransition{To: to, number: number})
		}
		slices.SortFunc(o.told.transitions, func(a, b toldTransition) int { return int(a.number) - int(b.number) })
		o.readPods()
		o.checkStates()
		if (len(o.wrong) == 0) != right {
			t.Errorf("%d ready: %v", ready, o.wrong)
		}
	}
}

// A Job that waits is told to be given up where a version of its Workload says so, and nowhere else.
func TestGivingUpIsToldWhereAWorkloadSaysSo(t *testing.T) {
	t.Parallel()
	var of madeUp
	of.job(10, 0, 0, 0, 0)
	for number, active := range map[uint64]bool{11: false, 12: true} {
		w := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"active": active}}}
		of.workloads = append(of.workloads, version[*unstructured.Unstructured]{object: w, number: number})
	}
	for number, right := range map[uint64]bool{10: false, 11: true, 12: false} {
		first := toldTransition{To: "Queued", number: 10, From: new("")}
		o := &oracle{of: &of.recordedJob, told: toldLife{job: toldJob{State: "Queued"}, transitions: []toldTransition{first, givenUp(number)}}}
		o.checkChain()
		if (len(o.wrong) == 0) != right {
			t.Errorf("at %d: %v", number, o.wrong)
		}
	}
}

func givenUp(number uint64) toldTransition {
	return toldTransition{To: "Queued", From: new("Queued"), number: number, Cause: &toldCause{Reason: "Deactivated"}}
}
