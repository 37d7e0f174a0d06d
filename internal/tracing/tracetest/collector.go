// Package tracetest gives tests a collector of OpenTelemetry, in their own process.
package tracetest

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/kubecast/kubecast/internal/tracing"
)

// Span is a span as the collector was sent it.
type Span struct {
	*otlp.Span
	Attributes map[string]string // the texts among its attributes
}

// Collector takes spans over HTTP, as protobuf.
type Collector struct {
	URL string

	mu    sync.Mutex
	spans []Span
	raw   []byte // all that was sent
}

// New runs a Collector until the test ends.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, &sent) != nil {
			t.Errorf("not what a collector is sent: %s %v %v", r.URL, r.Header, err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw = append(c.raw, body...)
		for _, resource := range sent.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					s := Span{span, map[string]string{}}
					for _, a := range span.Attributes {
						s.Attributes[a.Key] = a.Value.GetStringValue()
					}
					c.spans = append(c.spans, s)
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Tracer returns a Tracer of which every span is sent here, once it is closed.
func (c *Collector) Tracer(t testing.TB) *tracing.Tracer {
	t.Helper()
	tracer, err := tracing.New(tracing.Options{Endpoint: c.URL, Sample: 1, Version: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

// Named returns the spans of a name that have come.
func (c *Collector) Named(name string) (found []Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// Names returns the names of all spans that have come.
func (c *Collector) Names() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		names = append(names, s.Name)
	}
	return names
}

// Raw returns all that was sent.
func (c *Collector) Raw() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.raw)
}
