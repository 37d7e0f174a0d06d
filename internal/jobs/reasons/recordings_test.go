package reasons

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs/recordings"
)

// A job that Kueue has let in says that Kueue waits for its pods, at first and again after one was lost, in each version of
// the Workloads that Kueue's own controllers wrote; and, where Kueue finds out later on which nodes, that it waits for that.
func TestRecordedWorkloadsSayWhatIsWaitedForAfterAdmission(t *testing.T) {
	lives, err := recordings.All()
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]int{}
	for _, life := range lives {
		for i, e := range life.Workloads {
			text := string(e.Object)
			conditions := map[string]gjson.Result{}
			for _, c := range gjson.Get(text, "status.conditions").Array() {
				conditions[c.Get("type").Str] = c
			}
			is := func(name, status string) bool { return conditions[name].Get("status").Str == status }
			if is("Finished", "True") || is("Evicted", "True") || gjson.Get(text, "spec.active").Raw == "false" || !is("Admitted", "True") {
				continue
			}
			want := ""
			if ready := conditions["PodsReady"]; is("PodsReady", "False") {
				want = ready.Get("reason").Str + " " + ready.Get("message").Str
			}
			said[strings.Split(want, " ")[0]]++
			if got := saidBy(t, text); got != want {
				t.Errorf("%s, version %d: %q, not %q", life.Name(), i, got, want)
			}
			// What Kueue writes of a Workload whose topology is assigned later (SyncAdmittedCondition of its module).
			var late map[string]any
			if err := json.Unmarshal(e.Object, &late); err != nil {
				t.Fatal(err)
			}
			for _, c := range late["status"].(map[string]any)["conditions"].([]any) {
				if c := c.(map[string]any); c["type"] == "Admitted" {
					c["status"], c["reason"], c["message"] = "False", "PendingDelayedTopologyRequests", "There are pending delayed topology requests"
				}
			}
			waits, err := json.Marshal(late)
			if err != nil {
				t.Fatal(err)
			}
			if got := saidBy(t, string(waits)); got != "PendingDelayedTopologyRequests There are pending delayed topology requests" {
				t.Errorf("%s, version %d, while its topology is waited for: %q", life.Name(), i, got)
			}
		}
	}
	if said["WaitForStart"] < 5 || said["WaitForRecovery"] < 1 || said[""] < 5 {
		t.Errorf("only this was recorded: %v", said)
	}
}

func saidBy(t *testing.T, text string) string {
	t.Helper()
	o, err := cluster.NewObject(text)
	if err != nil {
		t.Fatal(err)
	}
	if said, ok := workload(o); ok {
		return said.Reason.Reason + " " + said.Message
	}
	return ""
}
