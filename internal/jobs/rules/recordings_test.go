package rules

import (
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/recordings"
)

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
		var job *jobs.Job
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
			next, transition := jobs.Next(job, jobs.Seen{ObjectID: jobs.ObjectID{UID: o.UID()}, Version: o.Version(), Said: said})
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
