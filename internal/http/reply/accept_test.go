package reply

import (
	"net/http"
	"testing"
)

func TestNegotiation(t *testing.T) {
	const kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
	for _, test := range []struct {
		accept string
		want   Form
		events bool // would do on /stream
	}{
		{"", FormJSON, true},
		{"  ", FormJSON, true},
		{"*/*", FormJSON, true},
		{"text/event-stream", FormEvents, true},
		{"Text/Event-Stream; charset=utf-8", FormEvents, true},
		{"text/*", FormNone, true},
		{"application/json", FormJSON, false},
		{"application/json;charset=utf-8", FormJSON, false},
		{"application/*", FormJSON, false},
		{kubectl, formTable, false},
		{"application/json;as=Table;v=v1beta1;g=meta.k8s.io", formTableBeta, false},
		{"application/json;as=Table;v=v2;g=meta.k8s.io", FormNone, false},
		{"application/json;as=Table;v=v1", FormNone, false},
		{"application/yaml;as=Table;v=v1;g=meta.k8s.io", FormNone, false},
		{"application/json;as=Chair;v=v1;g=meta.k8s.io,application/json", FormJSON, false},
		{"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json", formMetadata, false},
		{"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io", formMetadataBeta, false},
		{"application/vnd.kubernetes.protobuf,application/json", FormJSON, false},
		{"application/vnd.kubernetes.protobuf", FormNone, false},
		{"application/yaml", FormNone, false},
		{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", FormJSON, true},
		{"text/event-stream, */*", FormEvents, true},
		{"*/*, text/event-stream", FormEvents, true}, // a named type comes first
		{"*/*;q=0.9, text/event-stream;q=0.8", FormJSON, true},
		{"application/json, text/event-stream", FormJSON, true},
		{"text/event-stream;q=0.1, application/json;q=0.2", FormJSON, true},
		{"text/event-stream;q=0", FormNone, false},
		{"application/json;q=0, text/event-stream;q=0.000", FormNone, false},
		{"text/event-stream;q=nonsense, application/json;q=0.1", FormJSON, false},
		{"text/event-stream;q=NaN", FormNone, false},
		{"text/event-stream;q=Inf, application/json", FormJSON, false},
		{"text/event-stream;q=-1", FormNone, false},
		{"text/event-stream;q=2", FormNone, false},
		{";;;,,,", FormNone, false},
		{"/", FormNone, false},
		{"\x00\xff", FormNone, false},
	} {
		h := http.Header{}
		if test.accept != "" {
			h.Set("Accept", test.accept)
		}
		if got := Negotiate(h); got != test.want {
			t.Errorf("%q: %v, not %v", test.accept, got, test.want)
		}
		if got := AcceptsEvents(h); got != test.events {
			t.Errorf("%q: events: %v", test.accept, got)
		}
	}
	several := http.Header{"Accept": {"application/yaml", "text/event-stream"}}
	if Negotiate(several) != FormEvents {
		t.Error("the second header line was not read")
	}
}

func FuzzNegotiate(f *testing.F) {
	for _, seed := range []string{"", "*/*", "text/event-stream;q=0.5,application/json", "a/b;q=\"", ",;=q", "text/event-stream;q=1e-400"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		h := http.Header{"Accept": {accept}}
		if Negotiate(h) == FormEvents && !AcceptsEvents(h) {
			t.Errorf("%q prefers events, and does not accept them", accept)
		}
	})
}
