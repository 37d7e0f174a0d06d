package rules

import (
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/recordings"
)

// otherwise is what is told of lives of which the job's own object does not say what a person sees, and why.
var otherwise = map[string]struct {
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

// TestRecordedLivesAreToldAsTheyWere replays what real controllers wrote.
func TestRecordedLivesAreToldAsTheyWere(t *testing.T) {
	lives, err := recordings.All()
	if err != nil {
		t.Fatal(err)
	}
	replayed := 0
	for _, life := range lives {
		if life.Resource == "" {
			continue
		}
		replayed++
		t.Run(life.Name(), func(t *testing.T) {
			want, attempts := strings.Join(life.Truth.States, " → "), life.Truth.Attempts
			if strings.HasPrefix(life.Folder, "Kueue") { // nobody suspended it, as the person says, too
				want = strings.ReplaceAll(want, "Suspended", "Queued")
			}
			if other, ok := otherwise[life.Scenario]; ok {
				want, attempts = other.states, other.attempts
			}
			job, states := replay(t, life)
			if told := strings.Join(states, " → "); told != want {
				t.Errorf("told as\n%s, not as\n%s", told, want)
			}
			if job.Attempt != attempts {
				t.Errorf("told in %d attempts, not %d", job.Attempt, attempts)
			}
		})
	}
	if replayed < 77 {
		t.Errorf("%d lives were replayed", replayed)
	}
}

// A Workload tells the same of what Kueue manages, whatever kind that is of, as Kueue wrote it
// beside each of these lives. It is Running once all of its pods are, and Suspended, not queued,
// once it is given up.
func TestRecordedWorkloadsAreToldAsWhatTheyManage(t *testing.T) {
	lives, err := recordings.All()
	if err != nil {
		t.Fatal(err)
	}
	otherwise := map[string]string{
		"kq-pods-never-ready": "Submitted → Pending → Queued → Pending → Suspended",
		"kq-no-queue":         "Submitted → Queued → Pending → Running → Succeeded",
	}
	replayed := 0
	for _, life := range lives {
		var states []string
		var job *history.Job
		r := rule(t, "workloads.kueue.x-k8s.io")
		first := ""
		for _, e := range life.Workloads {
			o, err := cluster.NewObject(string(e.Object))
			if err != nil {
				t.Fatal(err)
			}
			if first == "" {
				first = o.UID()
			}
			if o.UID() != first || e.Type == "DELETED" {
				continue
			}
			said, err := r.Read(o, job)
			if err != nil {
				t.Error(err)
			}
			next, transition := history.Next(job, history.Seen{Identity: history.Identity{UID: o.UID()}, Version: o.Version(), Said: said})
			if next != nil {
				job = next
			}
			if transition != nil {
				states = append(states, string(transition.To))
			}
		}
		if job == nil {
			continue
		}
		replayed++
		want := strings.Join(life.Truth.States, " → ")
		want = "Submitted" + strings.TrimPrefix(strings.ReplaceAll(want, "Suspended", "Queued"), "Queued")
		if other, ok := otherwise[life.Scenario]; ok {
			want = other
		}
		if told := strings.Join(states, " → "); told != want {
			t.Errorf("%s: told as\n%s, not as\n%s", life.Name(), told, want)
		}
	}
	if replayed < 9 {
		t.Errorf("%d Workloads were replayed", replayed)
	}
}

// replay reads each version of a life's main job, which is the one that is named as its scenario.
func replay(t *testing.T, life *recordings.Life) (job *history.Job, states []string) {
	t.Helper()
	r := rule(t, life.Resource)
	for _, e := range life.Jobs {
		o, err := cluster.NewObject(string(e.Object))
		if err != nil {
			t.Fatal(err)
		}
		if o.GetName() != life.Scenario {
			continue
		}
		seen := history.Seen{
			Identity: history.Identity{UID: o.UID(), Namespace: o.GetNamespace(), Name: o.GetName()},
			Version:  o.Version(), Created: history.Time(o.Created() * 1000), Observed: history.At(e.At), Deleted: e.Type == "DELETED",
		}
		if !seen.Deleted {
			if seen.Said, err = r.Read(o, job); err != nil {
				t.Error(err)
			}
		}
		next, transition := history.Next(job, seen)
		if next != nil {
			job = next
		}
		if transition != nil {
			states = append(states, string(transition.To))
		}
	}
	return job, states
}
