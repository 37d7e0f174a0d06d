package table

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/cluster"
)

// everyTable returns all tables that exist, and one of a custom resource with a column of each type.
func everyTable() []*Table {
	all := []*Table{plain, Custom(nil), Custom([]cluster.PrinterColumn{
		{Name: "Text", Type: "string", JSONPath: ".spec.a"},
		{Name: "Number", Type: "integer", JSONPath: ".spec.a"},
		{Name: "Rate", Type: "number", JSONPath: ".status.b"},
		{Name: "Flag", Type: "boolean", JSONPath: ".spec.a.b"},
		{Name: "Since", Type: "date", JSONPath: ".spec.a"},
		{Name: "Each", Type: "string", JSONPath: ".spec.containers[*].name"},
		{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
	})}
	for _, t := range builtin {
		all = append(all, t)
	}
	return all
}

// Aggregated API servers may send anything, and so may custom resources with a loose schema. Whatever an object
// holds, its row is JSON with a cell for each column.
func FuzzRow(f *testing.F) {
	f.Add(`{"metadata":{"name":"a","resourceVersion":"1"}}`)
	f.Add(`{"metadata":{"name":"a","resourceVersion":"1","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"kubernetes.io/role":"x"}},` +
		`"spec":{"containers":[{"name":"a","image":"b"}],"initContainers":[{"name":"i","restartPolicy":"Always"}],"a":"b"},` +
		`"status":{"phase":"Running","containerStatuses":[{"restartCount":3,"state":{"terminated":{"exitCode":1}},"lastState":{"terminated":{"finishedAt":"x"}}}]}}`)
	f.Add(`{"metadata":{"name":"a","resourceVersion":"1"},"spec":7,"status":[{"phase":1}],"data":[1],"involvedObject":"x"}`)
	f.Add(`{"metadata":{"name":"\u0000\ud800","resourceVersion":"1","annotations":[]},"spec":{"a":{"b":[null]},"selector":{"matchLabels":7},"ports":[1]},"status":{"b":1e400,"conditions":{"type":"Ready"}}}`)
	tables := everyTable()
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			t.Skip()
		}
		o, err := cluster.NewObject(text)
		if err != nil {
			t.Skip()
		}
		for _, table := range tables {
			var row metav1.TableRow
			text := table.AppendRow(nil, o, Options{Include: metav1.IncludeNone, Now: now})
			if err := json.Unmarshal(text, &row); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			want := len(table.Columns())
			if table == builtin[groupResource{"networking.k8s.io", "ipaddresses"}] {
				want++ // as at the API server
			}
			if len(row.Cells) != want {
				t.Fatalf("%d cells for %d columns: %s", len(row.Cells), len(table.Columns()), text)
			}
		}
	})
}

const runningPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"train-0","namespace":"team-a","uid":"5d4e0f9a-1","resourceVersion":"4711",` +
	`"creationTimestamp":"2026-06-30T12:00:00Z","labels":{"app":"train","job":"train"}},"spec":{"containers":[{"name":"main","image":"registry.example.org/train:1",` +
	`"env":[{"name":"RANK","value":"0"},{"name":"WORLD_SIZE","value":"8"}],"resources":{"limits":{"cpu":"8","memory":"64Gi"}}}],"nodeName":"node-1"},` +
	`"status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],"conditions":[{"type":"Initialized","status":"True"},{"type":"Ready","status":"True"},` +
	`{"type":"PodScheduled","status":"True"}],"containerStatuses":[{"name":"main","ready":true,"restartCount":1,"state":{"running":{"startedAt":"2026-06-30T12:00:01Z"}},` +
	`"lastState":{"terminated":{"exitCode":1,"finishedAt":"2026-06-30T12:00:00Z"}}}]}}`

func BenchmarkPodRow(b *testing.B) {
	o, err := cluster.NewObject(runningPod)
	if err != nil {
		b.Fatal(err)
	}
	pods := builtin[groupResource{"", "pods"}]
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = pods.AppendRow(buf[:0], o, Options{Now: time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)})
	}
}

func BenchmarkCustomRow(b *testing.B) {
	o, err := cluster.NewObject(runningPod)
	if err != nil {
		b.Fatal(err)
	}
	for name, column := range map[string]cluster.PrinterColumn{
		"a plain path": {Name: "Phase", Type: "string", JSONPath: ".status.phase"},
		"a filter":     {Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
	} {
		b.Run(name, func(b *testing.B) {
			custom := Custom([]cluster.PrinterColumn{column})
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = custom.AppendRow(buf[:0], o, Options{Now: time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)})
			}
		})
	}
}

// TestServicesThatAreNotThere: a real API server without what an APIService names has no complete
// discovery, so this is not tried there.
func TestServicesThatAreNotThere(t *testing.T) {
	for conditions, want := range map[string]string{
		``: `["v1.a","team/s","Unknown","\u003cunknown\u003e"]`,
		`{"type":"Available","status":"False","reason":"ServiceNotFound"}`:         `["v1.a","team/s","False (ServiceNotFound)","\u003cunknown\u003e"]`,
		`{"type":"Other","status":"True"},{"type":"Available","status":"Unknown"}`: `["v1.a","team/s","Unknown","\u003cunknown\u003e"]`,
		`{"type":"Available","status":"True","reason":"Passed"}`:                   `["v1.a","team/s","True","\u003cunknown\u003e"]`,
	} {
		o, err := cluster.NewObject(`{"metadata":{"name":"v1.a","resourceVersion":"1"},"spec":{"service":{"namespace":"team","name":"s"}},"status":{"conditions":[` + conditions + `]}}`)
		if err != nil {
			t.Fatal(err)
		}
		row := builtin[groupResource{"apiregistration.k8s.io", "apiservices"}].AppendRow(nil, o, Options{Include: metav1.IncludeNone, Now: time.Now()})
		if got := string(row); got != `{"cells":`+want+`,"object":null}` {
			t.Errorf("%s: %s", conditions, got)
		}
	}
}

// TestMetadataOfCustomResourcesIsOrderedAsThatOfOthers: the API server reads it into its own type
// before it writes it alone.
func TestMetadataOfCustomResourcesIsOrderedAsThatOfOthers(t *testing.T) {
	for metadata, want := range map[string]string{
		`{"annotations":{"b":"c"},"creationTimestamp":"2026-01-01T00:00:00Z","finalizers":["f"],"generation":1,"labels":{"a":"b"},"name":"a","namespace":"n","ownerReferences":[{"apiVersion":"v1","blockOwnerDeletion":true,"controller":true,"kind":"K","name":"o","uid":"1"}],"resourceVersion":"7","uid":"u"}`: `{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"b"},"annotations":{"b":"c"},"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"o","uid":"1","controller":true,"blockOwnerDeletion":true}],"finalizers":["f"]}`,
		`{"name":"a","namespace":"n","resourceVersion":"7","labels":{"a":"b"}}`: `{"name":"a","namespace":"n","resourceVersion":"7","labels":{"a":"b"}}`,
	} {
		o, err := cluster.NewObject(`{"apiVersion":"example.org/v1","kind":"Widget","metadata":` + metadata + `}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendMetadata(nil, o, "")); got != `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`+want+`}` {
			t.Errorf("%s, not with\n%s", got, want)
		}
	}
}
