package recordings_test

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/pods"
	"github.com/kubecast/kubecast/internal/history/recordings"
	"github.com/kubecast/kubecast/internal/history/rules"
	"github.com/kubecast/kubecast/internal/ownerref"
)

// told is what the histories of a job and of its pods tell of a life together.
type told struct {
	causes []string // one for each state that has one, as it is at the end of that state
	later  []string // the same, as they are found by who reads all of it when it is over
	runs   []*history.Run
	until  history.Time // the end of the recording
}

// allTold are the recorded lives of kinds that have a rule, and what is told of each.
func allTold(t *testing.T) iter.Seq2[*recordings.Life, told] {
	t.Helper()
	lives, err := recordings.All()
	if err != nil {
		t.Fatal(err)
	}
	set := ruleSet(t)
	return func(yield func(*recordings.Life, told) bool) {
		for _, life := range lives {
			if life.Resource != "" && !yield(life, tell(t, set, life)) {
				return
			}
		}
	}
}

// tell replays a life, its job and its pods in the order in which they were seen.
func tell(t *testing.T, set *rules.Set, life *recordings.Life) (now told) {
	t.Helper()
	type seen struct {
		recordings.Event
		of string
	}
	var all []seen
	for _, e := range life.Jobs {
		all = append(all, seen{e, "job"})
	}
	for _, e := range life.Pods {
		all = append(all, seen{e, "pod"})
	}
	for _, e := range life.Workloads {
		all = append(all, seen{e, "workload"})
	}
	slices.SortStableFunc(all, func(a, b seen) int { return a.At.Compare(b.At) })
	var job *history.Job
	runs := map[string]*history.Run{}
	byPlace := map[int]string{} // causes by how many transitions there were
	var states []*history.Job   // that have causes
	transitions := 0
	deadline := time.Duration(0)
	for _, e := range all {
		o, err := cluster.NewObject(string(e.Object))
		if err != nil {
			t.Fatal(err)
		}
		identity := history.Identity{UID: o.UID(), Namespace: o.GetNamespace(), Name: o.GetName()}
		created, observed, deleted := history.Time(o.Created()*1000), history.At(e.At), e.Type == "DELETED"
		now.until = observed
		switch {
		case e.of == "pod":
			// What stands between the job and its pods was not recorded. It is called as the job, and nothing else is.
			if above, _ := ownerref.Controller(o); !strings.HasPrefix(above.Name, life.Scenario) {
				continue
			}
			if next := history.NextRun(runs[identity.UID], history.SeenPod{
				Identity: identity, PodSaid: pods.Read(o, nil), Version: o.Version(), Created: created, Observed: observed, Deleted: deleted,
			}); next != nil {
				runs[identity.UID] = next
			}
		case e.of == "workload":
			if evicted := pods.Condition(o.Path("status"), "Evicted"); evicted.Get("status").Str == "True" && job != nil && o.Get("kueue.x-k8s.io/job-uid") == job.UID {
				if next := history.Explained(job, history.Reason{
					At: history.ParseTime(evicted.Get("lastTransitionTime").Str), Reason: evicted.Get("reason").Str, Message: evicted.Get("message").Str, Source: "Workload",
				}); next != nil {
					job = next
				}
			}
		case o.GetName() == life.Scenario:
			rule := set.For(life.Resource)
			version := history.Seen{Identity: identity, Version: o.Version(), Created: created, Observed: observed, Deleted: deleted}
			if !deleted {
				if version.Said, err = rule.Read(o, job); err != nil {
					t.Error(err)
				}
				deadline = rules.Deadline(o)
			}
			next, transition := history.Next(job, version)
			if next != nil {
				job = next
			}
			if transition != nil {
				transitions++
				states = append(states, job)
			}
		}
		if job == nil {
			continue
		}
		now.runs = slices.SortedFunc(maps.Values(runs), func(a, b *history.Run) int { return cmp.Compare(a.Version, b.Version) })
		if cause := history.CauseOf(job, now.runs, history.Circumstances{Deadline: deadline, NameOf: nameOf}); cause != nil {
			byPlace[transitions] = fmt.Sprintf("%s: %s [%s, %d]", job.State, cause.Text, cause.Reason, cause.Pods)
		}
	}
	for _, place := range slices.Sorted(maps.Keys(byPlace)) {
		now.causes = append(now.causes, byPlace[place])
	}
	for _, state := range states {
		read := *state
		if state.State != history.Queued { // what its queue said is of its time
			read.Since = now.until + 3_600_000
		}
		if cause := history.CauseOf(&read, now.runs, history.Circumstances{Deadline: deadline, NameOf: nameOf}); cause != nil {
			now.later = append(now.later, fmt.Sprintf("%s: %s [%s, %d]", read.State, cause.Text, cause.Reason, cause.Pods))
		}
	}
	return now
}

// nameOf names a job that is in no recording but preempted one.
func nameOf(uid string) string {
	if uid == "658ce34f-a452-406d-b231-ec6f811d99a6" {
		return "r-kq-rayjob-preempted/urgent"
	}
	return ""
}

func ruleSet(t *testing.T) *rules.Set {
	t.Helper()
	var kinds []rules.Kind
	for _, kind := range rules.Ready() {
		kinds = append(kinds, rules.Kind{Resource: kind})
	}
	set, err := rules.New(rules.Options{Kinds: kinds})
	if err != nil {
		t.Fatal(err)
	}
	return set
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

func TestRecordedLivesSayWhy(t *testing.T) {
	for life, now := range allTold(t) {
		if !slices.Equal(now.causes, why[life.Scenario]) {
			t.Errorf("%q: %q,", life.Scenario, now.causes)
		}
	}
}

// Who reads a life when it is over, and dates all of it by that, finds the causes that would have
// been told as it went: versions say which pods had ended.
func TestRecordedLivesSayWhyToWhoReadsThemLater(t *testing.T) {
	for life, now := range allTold(t) {
		if !slices.Equal(now.later, why[life.Scenario]) {
			t.Errorf("%q: %q, not %q", life.Scenario, now.later, why[life.Scenario])
		}
	}
}

// otherHours are the CPU seconds of lives whose pods held their nodes for longer than they ran, and why.
var otherHours = map[string]struct {
	cpu, gpu float64
	why      string
}{
	"js-fail-rule":     {18.8, 0, "its leader runs on, and the recording ends with the pods' last version, a second after the person's"},
	"gpu-training-oom": {56.9, 28.5, "its container was not started for five seconds after the pod had its node and its GPUs"},
}

// The hours of runs are those that a person reckons by the time that pods ran, a little more since
// they have their nodes before.
func TestRecordedLivesTakeTheHoursOfTheirPods(t *testing.T) {
	for life, now := range allTold(t) {
		hours, total := history.HoursOf(history.HoldsOf(now.runs, now.until)), &history.Total{}
		for _, r := range now.runs {
			total.Add(r)
		}
		kept := total.Use(now.until)
		if math.Abs(kept.Hours.CPUs-hours.CPUs)+math.Abs(kept.Hours.Memory-hours.Memory)+math.Abs(kept.Hours.GPUs-hours.GPUs) > 1e-9 || kept.Tally != history.TallyOf(now.runs) {
			t.Errorf("%s: its total is %+v, not %+v", life.Name(), kept, hours)
		}
		var ran []history.Hold
		for _, r := range now.runs {
			if r.Started != 0 {
				began := *r
				began.Scheduled = r.Started
				ran = append(ran, history.HoldsOf([]*history.Run{&began}, now.until)...)
			}
		}
		want := [2]float64{life.Truth.CPU, life.Truth.GPU}
		if other, ok := otherHours[life.Scenario]; ok {
			want = [2]float64{other.cpu, other.gpu}
		}
		ranHours := history.HoursOf(ran)
		for i, told := range [][2]float64{{hours.CPUs * 3600, ranHours.CPUs * 3600}, {hours.GPUs * 3600, ranHours.GPUs * 3600}} {
			least, most := want[i]-0.1, want[i]*1.1+0.2
			if told[0] < least || told[0] > most {
				t.Errorf("%s: held for %.1f s, not %.1f", life.Name(), told[0], want[i])
			}
			if said := [2]float64{life.Truth.CPU, life.Truth.GPU}[i]; math.Abs(told[1]-said) > 0.1+0.005*said && life.Scenario != "js-fail-rule" {
				t.Errorf("%s: ran for %.1f s, not %.1f", life.Name(), told[1], said)
			}
		}
	}
}

// otherFailures are numbers of pods that failed where a person counts otherwise, and why.
var otherFailures = map[string]struct {
	failures int
	why      string
}{
	"pod-deleted":        {0, "somebody deleted it; nothing in the pod says that this was nobody's controller"},
	"replacement-failed": {0, "likewise"},
}

func TestRecordedLivesCountTheirPodsThatFailed(t *testing.T) {
	for life, now := range allTold(t) {
		want := life.Truth.Failures
		if other, ok := otherFailures[life.Scenario]; ok {
			want = other.failures
		}
		if tally := history.TallyOf(now.runs); tally.Failures != want {
			t.Errorf("%s: %d pods failed, not %d", life.Name(), tally.Failures, want)
		}
	}
}
