package pending

import (
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
