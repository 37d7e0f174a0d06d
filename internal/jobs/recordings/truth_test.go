package recordings_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/recordings"
	"github.com/kubecast/kubecast/internal/jobs/rules"
)

// otherStates are what is told of lives of which the job's own object does not say what a person sees, and why.
var otherStates = map[string]struct {
	states   string
	attempts int
	why      string
}{
	"container-restarts": {"Submitted → Pending → Running → Succeeded", 1,
		"a container that is restarted in place moves nothing in the Job but ready, as a probe that fails does"},
	"tj-container-restarts": {"Submitted → Pending → Running → Succeeded", 1, "likewise"},
	"js-restart-then-crash": {"Submitted → Pending → Running → Retrying → Running → Succeeded", 2, "likewise, after a restart that is told"},
	"tk-task-cancelled":     {"Submitted → Pending → Running → Cancelled", 1, "cancelled, and not failed, as the person says, too"},
	"vj-terminated":         {"Submitted → Pending → Running → Cancelled", 1, "likewise"},
	"tk-pipeline-cancelled": {"Submitted → Running → Cancelled", 1, "likewise; and a PipelineRun runs from the moment that it has made its first TaskRun, and does not say that this waits"},
	"tk-pipeline-pending":   {"Suspended → Running → Succeeded", 1, "likewise"},
	"tk-pipeline-success":   {"Submitted → Running → Succeeded", 1, "likewise"},
	"wf-dag":                {"Submitted → Running → Failed", 1, "a Workflow is Running before its first pod is there, and these pods waited for nothing"},
	"wf-deleted":            {"Submitted → Running → Deleted", 1, "likewise"},
	"wf-opened-again":       {"Submitted → Running → Failed → Running → Succeeded", 2, "likewise"},
	"wf-success":            {"Submitted → Running → Succeeded", 1, "likewise"},
	"wf-suspended":          {"Suspended → Running → Succeeded", 1, "likewise"},
	"wf-three-steps":        {"Submitted → Running → Succeeded", 1, "likewise"},
	"wf-retry-strategy": {"Submitted → Running → Retrying → Succeeded", 2,
		"Argo looked when the step had been tried again, and then when it had ended: of the second run no version says anything"},
}

// why has the causes of lives, state by state. Others have none.
var why = map[string][]string{
	"all-pods-evicted":           {"Retrying: evicted: node drained on node-03; 2 of 2 pods likewise [Evicted, 2]"},
	"failed-with-others-running": {"Failed: main failed (exit 1) on node-01 [Error, 1]"},
	"fails-then-suspended":       {"Retrying: main failed (exit 1) on node-01 [Error, 1]"},
	"gpu-training-oom":           {"Failed: main was OOM-killed (exit 137) on node-03 [OOMKilled, 1]"},
	"kubelet-evicted":            {"Retrying: evicted: node memory pressure on node-00 [Evicted, 1]"},
	"node-dies-2":                {"Retrying: node node-02 was lost; 2 of 2 pods likewise [NodeLost, 2]"},
	"par1-comp5-one-failure":     {"Retrying: main failed (exit 1) on node-02 [Error, 1]"},
	"pod-deleted":                {"Retrying: a pod was deleted [Deleted, 1]"},
	"policy-failjob-exitcode":    {"Failed: main failed (exit 42) on node-01 (podFailurePolicy) [Error, 1]"},
	"js-blocking-recreate":       {"Retrying: main failed (exit 1) on node-03; 2 of 2 workers likewise [Error, 2]"},
	"js-fail-rule":               {"Failed: main failed (exit 3) on node-03; 2 of 2 workers likewise [Error, 2]"},
	"js-restart-once":            {"Retrying: main failed (exit 1) on node-01; 2 of 2 workers likewise [Error, 2]"},
	"js-restart-then-crash":      {"Retrying: main failed (exit 1) on node-03 [Error, 1]"},
	"js-restarts-exhausted":      {"Retrying: main was OOM-killed (exit 137) on node-02; 2 of 2 workers likewise [OOMKilled, 2]", "Failed: main was OOM-killed (exit 137) on node-02; 2 of 2 workers likewise [OOMKilled, 2]"},
	"kq-fails":                   {"Failed: main failed (exit 1) on node-01 [Error, 1]"},
	"kq-pods-never-ready":        {"Queued: evicted: its pods were not ready in time [Evicted, 0]", "Queued: given up by its queue: The workload is deactivated due to exceeding the maximum number of re-queuing retries [Deactivated, 0]"},
	"kq-queue-stopped":           {"Queued: evicted: its queue was stopped [Evicted, 0]"},
	"kq-rayjob-preempted":        {"Queued: preempted by r-kq-rayjob-preempted/urgent [Preempted, 0]"},
	"mpi-deadline":               {"Failed: deadline of 8 s exceeded [Deadline, 0]"},
	"mpi-launcher-retried":       {"Retrying: launcher failed (exit 1) on node-01 [Error, 1]"},
	"tk-pipeline-cancelled":      {"Cancelled: cancelled: PipelineRun \"tk-pipeline-cancelled\" was cancelled [Cancelled, 0]"},
	"pt-backoff":                 {"Retrying: pytorch failed (exit 137) on node-03 [Error, 1]", "Retrying: pytorch failed (exit 137) on node-03 [Error, 1]", "Retrying: pytorch failed (exit 137) on node-01 [Error, 1]", "Retrying: pytorch failed (exit 137) on node-03 [Error, 1]", "Retrying: pytorch failed (exit 137) on node-03 [Error, 1]", "Retrying: pytorch failed (exit 137) on node-03 [Error, 1]", "Retrying: pytorch failed (exit 137) on node-03 [Error, 1]", "Retrying: pytorch failed (exit 137) on node-03 [Error, 1]", "Retrying: pytorch failed (exit 137) on node-03 [Error, 1]", "Retrying: pytorch failed (exit 137) on node-03 [Error, 1]", "Retrying: pytorch failed (exit 137) on node-03 [Error, 1]", "Retrying: pytorch failed (exit 137) on node-03 [Error, 1]", "Retrying: pytorch failed (exit 137) on node-03 [Error, 1]", "Retrying: pytorch failed (exit 137) on node-03 [Error, 1]"},
	"rj-app-fails":               {"Failed: submitter failed (exit 1) on node-03 [Error, 1]"},
	"rj-deadline":                {"Failed: deadline of 15 s exceeded [Deadline, 0]"},
	"rj-retry-then-success":      {"Retrying: submitter failed (exit 1) on node-03 [Error, 1]"},
	"tk-task-cancelled":          {"Cancelled: cancelled: TaskRun \"tk-task-cancelled\" was cancelled. [Cancelled, 0]"},
	"tk-task-retried":            {"Retrying: step-s0 failed (exit 1) on node-03 [Error, 1]"},
	"tk-task-timeout":            {"Failed: deadline of 8 s exceeded [Deadline, 0]"},
	"tj-restart-once":            {"Retrying: node failed (exit 1) on node-03 [Error, 1]"},
	"vj-restarts-exhausted":      {"Retrying: w was OOM-killed (exit 137) on node-03 [OOMKilled, 1]", "Failed: w was OOM-killed (exit 137) on node-03 [OOMKilled, 1]"},
	"vj-terminated":              {"Cancelled: cancelled [Cancelled, 0]"},
	"wf-dag":                     {"Failed: main failed (exit 1) on node-01 [Error, 1]"},
	"wf-opened-again":            {"Failed: main failed (exit 1) on node-03 [Error, 1]"},
	"wf-retry-strategy":          {"Retrying: main failed (exit 1) on node-01 [Error, 1]"},
}

// recordedOtherwise are causes of lives that recorders tell otherwise, and why.
var recordedOtherwise = map[string]struct {
	causes []string
	why    string
}{
	"kq-rayjob-preempted": {[]string{"Queued: preempted: prioritization in the ClusterQueue [Preempted, 0]"}, "a job of another kind is not named"},
}

// otherHours are the CPU seconds of lives whose pods held their nodes for longer than they ran, and why.
var otherHours = map[string]struct {
	cpu, gpu float64
	why      string
}{
	"js-fail-rule":     {18.8, 0, "its leader runs on, and the recording ends with the pods' last version, a second after the person's"},
	"gpu-training-oom": {56.9, 28.5, "its container was not started for five seconds after the pod had its node and its GPUs"},
}

// otherFailures are numbers of pods that failed where a person counts otherwise, and why.
var otherFailures = map[string]struct {
	failures int
	why      string
}{
	"pod-deleted":        {0, "somebody deleted it; nothing in the pod says that this was nobody's controller"},
	"replacement-failed": {0, "likewise"},
}

// TestRecordedLivesAreToldAsTheyWere has recorders of jobs and pods see what real controllers wrote, as it happened. What
// they tell of states, attempts, causes, failures and hours is what a person says of each life.
func TestRecordedLivesAreToldAsTheyWere(t *testing.T) {
	eachRecorded(t, func(t *testing.T, set *rules.Set, life *recordings.Life) {
		told := undisturbed(t, set, life)
		checkStates(t, life, told)
		want := why[life.Scenario]
		if other, ok := recordedOtherwise[life.Scenario]; ok {
			want = other.causes
		}
		if causes := told.causes(); !slices.Equal(causes, want) {
			t.Errorf("%q, not %q", causes, want)
		}
		checkHours(t, life, told)
	})
}

func checkStates(t *testing.T, life *recordings.Life, told recorded) {
	t.Helper()
	want, attempts := strings.Join(life.Truth.States, " → "), life.Truth.Attempts
	if strings.HasPrefix(life.Folder, "Kueue") { // nobody suspended it, as the person says, too
		want = strings.ReplaceAll(want, "Suspended", "Queued")
	}
	if other, ok := otherStates[life.Scenario]; ok {
		want, attempts = other.states, other.attempts
	}
	var states []string
	for _, tr := range told.transitions {
		if tr.From != tr.To {
			states = append(states, string(tr.To))
		}
	}
	if got := strings.Join(states, " → "); got != want {
		t.Errorf("told as\n%s, not as\n%s", got, want)
	}
	if told.job.Attempt != attempts {
		t.Errorf("told in %d attempts, not %d", told.job.Attempt, attempts)
	}
}

// checkHours checks pods that failed, and hours: those that a person reckons by the time that pods ran, a little more
// since they have their nodes before.
func checkHours(t *testing.T, life *recordings.Life, told recorded) {
	t.Helper()
	total := &jobs.Total{}
	var runs, began []*jobs.Run
	for _, r := range told.runs {
		runs = append(runs, r.Run)
		total.Add(r.Run)
		if r.Started != 0 {
			from := *r.Run
			from.Scheduled = r.Started
			began = append(began, &from)
		}
	}
	hours := jobs.HoursOf(jobs.HoldsOf(runs, told.until))
	kept := total.Use(told.until)
	if math.Abs(kept.Hours.CPUs-hours.CPUs)+math.Abs(kept.Hours.Memory-hours.Memory)+math.Abs(kept.Hours.GPUs-hours.GPUs) > 1e-9 || kept.Tally != jobs.TallyOf(runs) {
		t.Errorf("its total is %+v, not %+v", kept, hours)
	}
	failures := life.Truth.Failures
	if other, ok := otherFailures[life.Scenario]; ok {
		failures = other.failures
	}
	if kept.Failures != failures {
		t.Errorf("%d pods failed, not %d", kept.Failures, failures)
	}
	want := [2]float64{life.Truth.CPU, life.Truth.GPU}
	if other, ok := otherHours[life.Scenario]; ok {
		want = [2]float64{other.cpu, other.gpu}
	}
	ran := jobs.HoursOf(jobs.HoldsOf(began, told.until))
	for i, is := range [][2]float64{{hours.CPUs * 3600, ran.CPUs * 3600}, {hours.GPUs * 3600, ran.GPUs * 3600}} {
		if least, most := want[i]-0.1, want[i]*1.1+0.2; is[0] < least || is[0] > most {
			t.Errorf("held for %.1f s, not %.1f", is[0], want[i])
		}
		if said := [2]float64{life.Truth.CPU, life.Truth.GPU}[i]; math.Abs(is[1]-said) > 0.1+0.005*said && life.Scenario != "js-fail-rule" {
			t.Errorf("ran for %.1f s, not %.1f", is[1], said)
		}
	}
}
