package pending

import (
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/queues"
)

// A Workload elsewhere that names a job's uid takes nothing from it.
func TestAUIDThatAnotherNamesStaysInItsPlace(t *testing.T) {
	var s Snapshot
	for i, namespace := range []string{"a", "b", "a"} {
		of := queues.Job{Name: "train", UID: "1"}
		if i == 2 {
			of.Name = "other"
		}
		workload, err := cluster.NewObject(`{"metadata":{"namespace":"` + namespace + `","name":"w","resourceVersion":"1"}}`)
		if err != nil {
			t.Fatal(err)
		}
		s.Places = append(s.Places, Place{Namespace: namespace, Job: &Job{Job: of, Workload: workload}, Whole: i + 1})
	}
	for i := range s.Places {
		if p := s.Find(s.Places[i].Namespace, s.Places[i].Job.Name, "1"); p != &s.Places[i] {
			t.Errorf("place %d is %v", i+1, p)
		}
	}
	if p := s.Find("c", "train", "1"); p != nil {
		t.Errorf("in another namespace it is at %d", p.Whole)
	}
}

// What is kept of a snapshot is bounded, however many ask for however much of it.
func TestViewsThatAreKeptAreBounded(t *testing.T) {
	var s Snapshot
	made, text := 0, strings.Repeat("x", 1<<20)
	ask := func(key int) {
		s.View(key, func() string {
			made++
			return text
		})
	}
	for key := range 20 {
		ask(key)
	}
	for key := range 20 {
		ask(key)
	}
	if made != 24 {
		t.Errorf("views of 20 MB in all were made %d times", made)
	}
}
