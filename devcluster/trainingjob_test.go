package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestTrainingJobsAreValidAndOfAllFates(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var failing, flaky, deleted, suspended int
	for range 2000 {
		job := newTrainingJob(random, paceFor(0.5, 10))
		for key, value := range job.Labels {
			if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
				t.Fatalf("label %s=%s: %v", key, value, problems)
			}
		}
		// The names of the job and of its pods must be valid host names.
		if problems := validation.IsDNS1123Label(job.Name + "-0-abcde"); len(problems) > 0 {
			t.Fatalf("name %s: %v", job.Name, problems)
		}
		if *job.Spec.Completions < 1 || *job.Spec.Completions > 8 || *job.Spec.Parallelism > *job.Spec.Completions {
			t.Fatalf("%s: parallelism %d, completions %d", job.Name, *job.Spec.Parallelism, *job.Spec.Completions)
		}
		if gpus := job.Spec.Template.Spec.Containers[0].Resources.Requests[gpu]; gpus.Value() > 8 {
			t.Fatalf("%s: no node has %v GPUs", job.Name, gpus.Value())
		}
		switch job.Spec.Template.Annotations[failPercent] {
		case "100":
			failing++
		case "30":
			flaky++
		}
		if job.deleteAfter > 0 {
			deleted++
		}
		if job.resumeAfter > 0 {
			suspended++
		}
		if suspends := job.Spec.Suspend != nil && *job.Spec.Suspend; suspends != (job.resumeAfter > 0) {
			t.Fatalf("%s: suspended %v, resumed after %v", job.Name, suspends, job.resumeAfter)
		}
	}
	if failing == 0 || flaky == 0 || deleted == 0 || suspended == 0 {
		t.Errorf("of 2000 jobs %d fail, %d are flaky, %d deleted, %d suspended; want some of each", failing, flaky, deleted, suspended)
	}
}

func TestExamplesAreValidAndOfOnePerson(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	kinds := map[string]bool{}
	for _, e := range newExamples(random, paceFor(0.5, 10)) {
		if problems := validation.IsDNS1123Label(e.Name + "-0-abcde"); len(problems) > 0 || e.Labels["app.kubernetes.io/instance"] != e.Name || e.Labels["kubecast.io/owner"] != teams[0].owners[0] {
			t.Errorf("%s, %v: %v", e.Name, e.Labels, problems)
		}
		for _, r := range e.resizes { // or the API server takes no other number of completions
			if *e.Spec.Parallelism != *e.Spec.Completions || e.Spec.CompletionMode == nil || r.workers == *e.Spec.Completions {
				t.Errorf("%s cannot be resized", e.Name)
			}
		}
		if e.Spec.Suspend != nil || e.deleteAfter != 0 {
			t.Errorf("%s has a fate", e.Name)
		}
		kinds[e.Spec.Template.Annotations["kubecast.io/description"]+e.Annotations["kubecast.io/description"]] = true
	}
	if len(kinds) != 5 {
		t.Errorf("%v", kinds)
	}
}

func TestPaceFitsTheCluster(t *testing.T) {
	usual, busy, large := paceFor(0.5, 10), paceFor(20, 10), paceFor(20, 400)
	if usual.longest < time.Minute || busy.longest >= usual.longest || large.longest < usual.longest {
		t.Errorf("longest runs: %v at 0.5 jobs/s on 10 nodes, %v at 20 on 10, %v at 20 on 400", usual.longest, busy.longest, large.longest)
	}
	if idle := paceFor(0.001, 10); idle.longest > 10*time.Minute || idle.keep > 10*time.Minute {
		t.Errorf("at one job in a quarter of an hour: %+v", idle)
	}
}
