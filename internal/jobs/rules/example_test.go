package rules_test

import (
	"fmt"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/rules"
)

// A kind without a built-in rule is read by expressions. A word that none of them knows says
// nothing, and the job stays what it was.
func ExampleNew() {
	set, err := rules.New(rules.Options{Key: "history", Kinds: []rules.KindRules{{
		Resource: "experiments.example.com",
		State:    `{'queued': 'Pending', 'active': 'Running', 'done': 'Succeeded'}[object.status.phase]`,
		Message:  `object.status.note`,
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	rule := set.For("experiments.example.com")
	for _, phase := range []string{"queued", "active", "paused by the moon"} {
		o, err := cluster.NewObject(`{"metadata": {"namespace": "team-a", "name": "e", "uid": "1", "resourceVersion": "7"}, "status": {"phase": "` + phase + `", "note": "step 3"}}`)
		if err != nil {
			fmt.Println(err)
			return
		}
		said, err := rule.Read(o, &jobs.Job{State: jobs.Pending})
		fmt.Printf("%q %q %t\n", said.State, said.Message, err != nil)
	}
	// Output:
	// "Pending" "" false
	// "Running" "step 3" false
	// "" "" true
}
