package recorder

import (
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history"
)

// BenchmarkUpdateThatChangesNoState is what the recorder does with most of what happens to jobs. There is no database.
func BenchmarkUpdateThatChangesNoState(b *testing.B) {
	r := &Recorder{opts: Options{Rule: batchRule(b), Cluster: apitest.New(apitest.Jobs).Connect(b)}, living: map[string]*history.Job{}}
	o, err := cluster.NewObject(`{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"j","namespace":"n","uid":"u","resourceVersion":"5",` +
		`"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"train"}},"spec":{"parallelism":8,"completions":8,"suspend":false,` +
		`"template":{"spec":{"containers":[{"name":"main","image":"train:1","resources":{"requests":{"cpu":"4","nvidia.com/gpu":"1"}}}]}}},` +
		`"status":{"active":8,"ready":5,"startTime":"2026-01-01T00:00:01Z","uncountedTerminatedPods":{}}}`)
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	r.see(&batch{}, o, false, sight{at: now})
	b.ReportAllocs()
	for b.Loop() {
		var none batch
		r.see(&none, o, false, sight{at: now})
		if len(none.transitions) > 0 {
			b.Fatal("a transition")
		}
	}
}
