package objectstatus

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs/rules"
)

var (
	jobs    = schema.GroupResource{Group: "batch", Resource: "jobs"}
	unknown = schema.GroupResource{Group: "example.com", Resource: "widgets"}
)

// What kubectl prints of pods and nodes is held to the API server in e2e
// (TestTablesEqualTheAPIServers). These are one case of each way. The SDK's mock is held to the same
// file (web/conformance/status.test.ts).
func TestStatusIsWhatPeopleCallIt(t *testing.T) {
	text, err := os.ReadFile("testdata/status.json")
	if err != nil {
		t.Fatal(err)
	}
	var tests []struct {
		Kind, Want string
		Object     json.RawMessage
	}
	if err := json.Unmarshal(text, &tests); err != nil || len(tests) < 50 {
		t.Fatal(len(tests), err)
	}
	for _, test := range tests {
		var compact bytes.Buffer
		if err := json.Compact(&compact, test.Object); err != nil {
			t.Fatal(err)
		}
		o, err := cluster.NewObject(compact.String())
		if err != nil {
			t.Fatal(err)
		}
		if got := Of(schema.ParseGroupResource(test.Kind))(o); got != test.Want {
			t.Errorf("%s %s is %q, not %q", test.Kind, compact.String(), got, test.Want)
		}
	}
}

// Custom resources with a loose schema may have anything where a status is looked for.
func FuzzStatus(f *testing.F) {
	f.Add(`{"metadata":{"name":"a","resourceVersion":"1"},"spec":{"initContainers":7,"suspend":"x"},"status":[1]}`)
	f.Add(`{"metadata":{"name":"a","resourceVersion":"1"},"status":{"conditions":{"type":"Ready"},"phase":7,"state":{"waiting":1}}}`)
	kinds := []schema.GroupResource{{Resource: "pods"}, {Resource: "nodes"}, {Resource: "namespaces"}, {Resource: "persistentvolumes"}, jobs, unknown}
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
