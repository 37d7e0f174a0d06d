package rules

import (
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/recordings"
)

// How far jobs are, as their controllers wrote it: what succeeded is done to the last, and of kinds
// that say nothing nothing is known.
func TestRecordedLivesSayHowFarTheyAre(t *testing.T) {
	lives, err := recordings.All()
	if err != nil {
		t.Fatal(err)
	}
	silent := map[string]bool{"rayjobs.ray.io": true, "jobs.batch.volcano.sh": true, "taskruns.tekton.dev": true, "mpijobs.kubeflow.org": true, "pytorchjobs.kubeflow.org": true}
	// What is told otherwise than that all is done at a success, and never less than before.
	ends := map[string]jobs.Progress{
		"par1-comp7-no-failure": {Done: 7, Of: 7}, "par4-comp10-failures": {Done: 10, Of: 10}, "work-queue": {}, "wf-three-steps": {Done: 3, Of: 3}, "tk-pipeline-success": {Done: 2, Of: 2},
		"tj-plain-success": {Done: 1, Of: 1},
		// Not all of it had to be done.
		"success-policy": {Done: 1, Of: 3}, "js-leader-decides": {Done: 1, Of: 3}, "wf-retry-strategy": {Done: 1, Of: 2},
	}
	for _, life := range lives {
		if life.Resource == "" {
			continue
		}
		t.Run(life.Name(), func(t *testing.T) {
			r := rule(t, life.Resource)
			var last jobs.Progress
			var job *jobs.Job
			for _, e := range life.Jobs {
				o, err := cluster.NewObject(string(e.Object))
				if err != nil {
					t.Fatal(err)
				}
				if o.GetName() != life.Scenario || e.Type == "DELETED" {
					continue
				}
				said, err := r.Read(o, job)
				if err != nil {
					t.Fatal(err)
				}
				if said.Progress.Done < 0 || said.Progress.Done > said.Progress.Of || silent[life.Resource] && said.Progress != (jobs.Progress{}) {
					t.Errorf("%+v", said.Progress)
				}
				last = said.Progress
				if next, _ := jobs.Next(job, jobs.Seen{ObjectID: jobs.ObjectID{UID: o.UID()}, Version: o.Version(), Said: said}); next != nil {
					job = next
				}
			}
			if want, ok := ends[life.Scenario]; ok && last != want {
				t.Errorf("%+v at the end, not %+v", last, want)
			} else if !ok && job.State == jobs.Succeeded && last.Done != last.Of {
				t.Errorf("%+v of a job that has succeeded", last)
			}
		})
	}
}

// What objects say is taken for no more than it is, whatever somebody wrote.
func TestProgressIsWithinWhatThereIs(t *testing.T) {
	for _, test := range []struct {
		resource, object string
		want             jobs.Progress
	}{
		{Jobs, `"spec":{"completions":5},"status":{"succeeded":2,"uncountedTerminatedPods":{"succeeded":["a","b"],"failed":["c"]}}`, jobs.Progress{Done: 4, Of: 5}},
		{Jobs, `"spec":{"completions":5,"completionMode":"Indexed"},"status":{"succeeded":7}`, jobs.Progress{Done: 5, Of: 5}}, // it was made smaller
		{Jobs, `"spec":{"parallelism":5},"status":{"succeeded":7}`, jobs.Progress{}},
		{Jobs, `"spec":{"completions":0}`, jobs.Progress{}},
		{Jobs, `"spec":{"completions":-3},"status":{"succeeded":-7}`, jobs.Progress{}},
		{"jobsets.jobset.x-k8s.io", `"spec":{"replicatedJobs":[{"name":"a","replicas":3},{"name":"b"}]},"status":{"replicatedJobsStatus":[{"name":"a","succeeded":2},{"name":"b","succeeded":1}]}`, jobs.Progress{Done: 3, Of: 4}},
		{"trainjobs.trainer.kubeflow.org", `"spec":{},"status":{"trainerStatus":{"progressPercentage":45},"jobsStatus":[{"name":"node","succeeded":0}]}`, jobs.Progress{Done: 45, Of: 100}},
		{"workflows.argoproj.io", `"status":{"progress":"2/5"}`, jobs.Progress{Done: 2, Of: 5}},
		{"workflows.argoproj.io", `"status":{"progress":"0/0"}`, jobs.Progress{}},
		{"workflows.argoproj.io", `"status":{"progress":"half"}`, jobs.Progress{}},
		{"workflows.argoproj.io", `"status":{"progress":"99999999999999999999/5"}`, jobs.Progress{}},
		{"workflows.argoproj.io", `"status":{"progress":"-1/5"}`, jobs.Progress{Done: 0, Of: 5}},
		{"pipelineruns.tekton.dev", `"status":{"conditions":[{"type":"Succeeded","status":"Unknown","message":"Tasks Completed: 2 (Failed: 1, Cancelled 0), Incomplete: 3, Skipped: 1"}]}`, jobs.Progress{Done: 2, Of: 5}},
		{"pipelineruns.tekton.dev", `"status":{"conditions":[{"type":"Succeeded","status":"True","message":"Tasks Completed: 2 (Failed: 0, Cancelled 0), Skipped: 1"}]}`, jobs.Progress{Done: 2, Of: 2}},
		{"pipelineruns.tekton.dev", `"status":{"conditions":[{"type":"Succeeded","status":"False","message":"it was refused"}]}`, jobs.Progress{}},
	} {
		o, err := cluster.NewObject(`{"metadata":{"name":"n","uid":"u","resourceVersion":"7"},` + test.object + `}`)
		if err != nil {
			t.Fatal(err)
		}
		said, err := rule(t, test.resource).Read(o, nil)
		if err != nil || said.Progress != test.want {
			t.Errorf("%s %s: %+v, not %+v: %v", test.resource, test.object, said.Progress, test.want, err)
		}
	}
}
