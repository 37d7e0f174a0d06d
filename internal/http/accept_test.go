package http

import (
	"net/http"
	"testing"
)

func TestNegotiation(t *testing.T) {
	const kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
	for _, test := range []struct {
		accept string
		want   form
		events bool // would do on /stream
	}{
		{"", formJSON, true},
		{"  ", formJSON, true},
		{"*/*", formJSON, true},
		{"text/event-stream", formEvents, true},
		{"Text/Event-Stream; charset=utf-8", formEvents, true},
		{"text/*", formNone, true},
		{"application/json", formJSON, false},
		{"application/json;charset=utf-8", formJSON, false},
		{"application/*", formJSON, false},
		{kubectl, formTable, false},
		{"application/json;as=Table;v=v1beta1;g=meta.k8s.io", formTableBeta, false},
		{"application/json;as=Table;v=v2;g=meta.k8s.io", formNone, false},
		{"application/json;as=Table;v=v1", formNone, false},
		{"application/yaml;as=Table;v=v1;g=meta.k8s.io", formNone, false},
		{"application/json;as=Chair;v=v1;g=meta.k8s.io,application/json", formJSON, false},
		{"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json", formMetadata, false},
		{"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io", formMetadataBeta, false},
		{"application/vnd.kubernetes.protobuf,application/json", formJSON, false},
		{"application/vnd.kubernetes.protobuf", formNone, false},
		{"application/yaml", formNone, false},
		{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", formJSON, true},
		{"text/event-stream, */*", formEvents, true},
		{"*/*, text/event-stream", formEvents, true}, // what is named comes first
		{"*/*;q=0.9, text/event-stream;q=0.8", formJSON, true},
		{"application/json, text/event-stream", formJSON, true},
		{"text/event-stream;q=0.1, application/json;q=0.2", formJSON, true},
		{"text/event-stream;q=0", formNone, false},
		{"application/json;q=0, text/event-stream;q=0.000", formNone, false},
		{"text/event-stream;q=nonsense, application/json;q=0.1", formJSON, false},
		{"text/event-stream;q=NaN", formNone, false},
		{"text/event-stream;q=Inf, application/json", formJSON, false},
		{"text/event-stream;q=-1", formNone, false},
		{"text/event-stream;q=2", formNone, false},
		{";;;,,,", formNone, false},
		{"/", formNone, false},
		{"\x00\xff", formNone, false},
	} {
		h := http.Header{}
		if test.accept != "" {
			h.Set("Accept", test.accept)
		}
		if got := negotiate(h); got != test.want {
			t.Errorf("%q: %v, not %v", test.accept, got, test.want)
		}
		if got := acceptsEvents(h); got != test.events {
			t.Errorf("%q: events: %v", test.accept, got)
		}
	}
	several := http.Header{"Accept": {"application/yaml", "text/event-stream"}}
	if negotiate(several) != formEvents {
		t.Error("the second header line was not read")
	}
}

func FuzzNegotiate(f *testing.F) {
	for _, seed := range []string{"", "*/*", "text/event-stream;q=0.5,application/json", "a/b;q=\"", ",;=q", "text/event-stream;q=1e-400"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		h := http.Header{"Accept": {accept}}
		if negotiate(h) == formEvents && !acceptsEvents(h) {
			t.Errorf("%q prefers events, and does not accept them", accept)
		}
	})
}
