package objectstatus

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history/rules"
)

var (
	pods        = schema.GroupResource{Resource: "pods"}
	nodes       = schema.GroupResource{Resource: "nodes"}
	jobs        = schema.GroupResource{Group: "batch", Resource: "jobs"}
	trainJobs   = schema.GroupResource{Group: "trainer.kubeflow.org", Resource: "trainjobs"}
	deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}
	configMaps  = schema.GroupResource{Resource: "configmaps"}
	unknown     = schema.GroupResource{Group: "example.com", Resource: "widgets"}
)

func objectOf(t testing.TB, metadata, rest string) *cluster.Object {
	t.Helper()
	o, err := cluster.NewObject(`{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"1"` + metadata + `}` + rest + `}`)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// What kubectl prints of pods and nodes is held to the API server in e2e
// (TestTablesEqualTheAPIServers). These are one case of each way.
func TestStatusIsWhatPeopleCallIt(t *testing.T) {
	const deleting = `,"deletionTimestamp":"2026-01-01T00:00:00Z"`
	for _, test := range []struct {
		kind           schema.GroupResource
		metadata, rest string
		want           string
	}{
		{pods, "", `,"status":{"phase":"Running","containerStatuses":[{"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}`, "CrashLoopBackOff"},
		{pods, "", `,"status":{"phase":"Pending","containerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff"}}}]}`, "ImagePullBackOff"},
		{pods, "", `,"status":{"phase":"Pending","initContainerStatuses":[{"state":{"terminated":{"exitCode":0}}},{"state":{"running":{}}}]},` +
			`"spec":{"initContainers":[{"name":"x"},{"name":"y"}]}`, "Init:1/2"},
		{pods, deleting, `,"status":{"phase":"Running"}`, "Terminating"},
		{pods, deleting, `,"status":{"phase":"Failed","reason":"Evicted"}`, "Evicted"},
		{nodes, "", `,"spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"False"}]}`, "NotReady,SchedulingDisabled"},
		{jobs, "", `,"status":{"conditions":[{"type":"Complete","status":"True"}]}`, "Succeeded"},
		{jobs, "", `,"status":{"active":1,"ready":1,"startTime":"2026-01-01T00:00:00Z"}`, "Running"},
		{jobs, `,"labels":{"kueue.x-k8s.io/queue-name":"q"}`, `,"spec":{"suspend":true}`, "Queued"},
		{trainJobs, "", `,"status":{"conditions":[{"type":"Failed","status":"True"}]}`, "Failed"},
		{deployments, "", `,"status":{"conditions":[{"type":"Progressing","status":"True"},{"type":"Available","status":"False"}]}`, "Unavailable"},
		{unknown, "", `,"status":{"phase":"x","conditions":[{"type":"Available","status":"True"},{"type":"Ready","status":"False"}]}`, "NotReady"},
		{unknown, "", `,"status":{"conditions":[{"type":"Ready"}]}`, "Unknown"},
		{unknown, "", `,"status":{"phase":"Bound"}`, "Bound"},
		{unknown, "", `,"status":{"state":"healthy"}`, "healthy"},
		{unknown, deleting, `,"status":{"phase":"Bound"}`, "Terminating"},
		{unknown, "", `,"status":"ready"`, ""},
		{configMaps, "", `,"data":{}`, ""},
	} {
		if got := Of(test.kind)(objectOf(t, test.metadata, test.rest)); got != test.want {
			t.Errorf("%s %s%s is %q, not %q", test.kind, test.metadata, test.rest, got, test.want)
		}
	}
}

// Custom resources with a loose schema may have anything where a status is looked for.
func FuzzStatus(f *testing.F) {
	f.Add(`{"metadata":{"name":"a","resourceVersion":"1"},"spec":{"initContainers":7,"suspend":"x"},"status":[1]}`)
	f.Add(`{"metadata":{"name":"a","resourceVersion":"1"},"status":{"conditions":{"type":"Ready"},"phase":7,"state":{"waiting":1}}}`)
	kinds := []schema.GroupResource{pods, nodes, {Resource: "namespaces"}, {Resource: "persistentvolumes"}, jobs, unknown}
	for _, kind := range rules.Ready() {
		kinds = append(kinds, schema.ParseGroupResource(kind))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			t.Skip()
		}
		o, err := cluster.NewObject(text)
		if err != nil {
			t.Skip()
		}
		for _, kind := range kinds {
			if got := Of(kind)(o); utf8.ValidString(text) && !utf8.ValidString(got) {
				t.Errorf("%s: %q", kind, got)
			}
		}
	})
}
