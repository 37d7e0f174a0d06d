package http

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/tracing/tracetest"
)

// The span of a stream ends when the stream has begun: one of hours would say nothing, and be lost with the gateway.
func TestRequestsHaveSpansAndStreamsThoseOfTheirBeginnings(t *testing.T) {
	collector := tracetest.New(t)
	tracer := collector.Tracer(t)
	g := newGateway(t, sealed, options(func(o *Options) { o.Tracer = tracer }))
	g.api.Put("pods", "team-a/web")
	s := g.stream("/stream?pods=/api/v1/pods")
	s.expect("pods.added web", "pods.synced")
	g.get("/api/v1/namespaces/team-a/pods?labelSelector=hush%3Dhush&search=hush")
	g.get("/api/v1/pods?access_token=hush", "Authorization: ")
	g.get("/api/v1/pods", "Authorization: Bearer hush", "Cookie: __Host-kubecast=hush")
	g.get("/api/v1/namespaces/eyJhbGciOiJub25lIn0.eyJzdWIiOiJodXNoIn0.c2ln/pods")
	g.get("/none/" + strings.Repeat("x", 100))
	g.request("DELETE", "/api/v1/namespaces/team-a/pods/web")
	tracer.Close() // while the stream goes on

	streams := collector.Named("GET /stream")
	if len(streams) != 1 || streams[0].Attributes["http.route"] != "/stream" || streams[0].Attributes["kubecast.request"] == "" {
		t.Fatalf("%v of %v", streams, collector.Names())
	}
	if got := collector.Named("GET /api/*"); len(got) != 4 || got[0].Attributes["url.path"] != "/api/v1/namespaces/team-a/pods" {
		t.Errorf("%v", got)
	}
	known := map[string]bool{"GET /stream": true, "GET /api/*": true, "GET /*": true, "DELETE": true}
	for _, name := range collector.Names() {
		if !known[strings.TrimSpace(name)] {
			t.Errorf("a name that is made from what was asked for: %q", name)
		}
	}
	if raw := collector.Raw(); strings.Contains(raw, "hush") || strings.Contains(raw, "eyJ") {
		t.Error("traces have what was searched for, or a token")
	}
	s.close()
}

// A client says nothing of whether its requests are traced, nor in which trace: what passes through a trusted proxy is only linked.
func TestNobodyOutsideDecidesWhatIsTraced(t *testing.T) {
	const parent = "Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00" // not sampled
	for name, trusted := range map[string]string{"a trusted proxy": "127.0.0.1/32", "a stranger": "10.0.0.0/8"} {
		collector := tracetest.New(t)
		tracer := collector.Tracer(t)
		g := newGateway(t, options(func(o *Options) { o.Tracer, o.TrustedProxies = tracer, []netip.Prefix{netip.MustParsePrefix(trusted)} }))
		g.get("/clusters", parent)
		g.request(strings.Repeat("LONG", 100), "/clusters")
		tracer.Close()
		spans := collector.Named("GET /clusters")
		if len(spans) != 1 {
			t.Fatalf("%v", collector.Names())
		}
		if linked := len(spans[0].Links) > 0; linked != (name == "a trusted proxy") || hex.EncodeToString(spans[0].TraceId) == "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s: %v", name, spans[0])
		}
		if strings.Contains(collector.Raw(), "LONG") {
			t.Errorf("a method becomes a name: %v", collector.Names())
		}
	}
}
