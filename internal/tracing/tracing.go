// Package tracing owns the spans that a collector of OpenTelemetry is sent, over OTLP.
//
// What it promises: nothing waits for the collector. Spans are lost when it is away, and the end waits for it for a bounded
// time. Without an endpoint there is no Tracer, and a nil Tracer and its nil Spans cost nothing.
//
// What it refuses: queries, bodies, tokens and URLs of others. Names of spans come from fixed sets.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options configure a Tracer.
type Options struct {
	Endpoint string  // http or https URL of the collector; without a path, that is /v1/traces. Empty: there is no Tracer
	Sample   float64 // the share of traces that are sent, from 0 to 1
	Version  string  // of the gateway
	Log      *slog.Logger
}

const (
	// exportWithin is how long the collector may take for one batch.
	exportWithin = 2 * time.Second
	// closeWithin is how long Close waits for the collector.
	closeWithin = 2 * time.Second
)

// Tracer begins spans. Its methods may be called concurrently, and on nil.
type Tracer struct {
	provider *sdktrace.TracerProvider
	exporter *exporter
	tracer   trace.Tracer
}

// New returns a Tracer, nil without an endpoint. It does not connect to the collector. What is not configured comes from the
// usual variables: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_EXPORTER_OTLP_HEADERS, …_CERTIFICATE and so on.
func New(opts Options) (*Tracer, error) {
	if opts.Endpoint == "" {
		return nil, nil
	}
	endpoint, err := url.Parse(opts.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("tracing.Options.Endpoint: %w", err)
	}
	if strings.Trim(endpoint.Path, "/") == "" {
		endpoint.Path = "/v1/traces"
	}
	ctx := context.Background() // nothing is connected to
	otlp, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint.String()), otlptracehttp.WithTimeout(exportWithin),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
	if err != nil {
		return nil, fmt.Errorf("tracing.Options.Endpoint: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "kubecast"), attribute.String("service.version", opts.Version)),
		resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, fmt.Errorf("tracing: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	own := &exporter{SpanExporter: otlp, log: opts.Log, done: make(chan struct{})}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(opts.Sample))), sdktrace.WithResource(about),
		sdktrace.WithBatcher(own, sdktrace.WithExportTimeout(exportWithin)),
	)
	return &Tracer{provider, own, provider.Tracer("github.com/kubecast/kubecast")}, nil
}

// Close sends what has not been sent, as far as the collector takes it in time, and ends the Tracer. It leaves no goroutine behind.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	if t.provider.Shutdown(ctx) != nil {
		t.exporter.over.Store(true)
		_ = t.exporter.SpanExporter.Shutdown(ctx) // breaks off the request that is under way
	}
	<-t.exporter.done
}

// Start begins a span within the one in the context, if there is one, of which the name is one of a fixed set.
func (t *Tracer) Start(ctx context.Context, name string, kind trace.SpanKind) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	return t.start(ctx, name, trace.WithSpanKind(kind))
}

func (t *Tracer) start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, *Span) {
	ctx, span := t.tracer.Start(ctx, name, opts...)
	s := &Span{span: span}
	return context.WithValue(ctx, key{}, s), s
}

// Serve begins the trace of a request. It has a link to the span in which its header says that it was sent, unless the
// header is nil. It is no part of that one's trace: proxies pass on what their clients send, who could
// have all their requests traced, and write into others' traces.
func (t *Tracer) Serve(ctx context.Context, header http.Header, name string) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	opts := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer)}
	if sender := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(header))); sender.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: sender}))
	}
	return t.start(ctx, name, opts...)
}

// Inject tells the receiver of a request within which span it is sent.
func (t *Tracer) Inject(ctx context.Context, header http.Header) {
	if t != nil {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

type key struct{}

// Of is the span that was begun last in a context; nil if there is none.
func Of(ctx context.Context) *Span {
	s, _ := ctx.Value(key{}).(*Span)
	return s
}

// Span is a span that has begun. Its methods may be called on nil; only one goroutine at a time may have it.
type Span struct {
	span trace.Span
	kept atomic.Bool
}

// Rename gives the span a name that was not known when it began.
func (s *Span) Rename(name string) {
	if s != nil {
		s.span.SetName(name)
	}
}

// Set adds an attribute.
func (s *Span) Set(name, value string) {
	if s != nil {
		s.span.SetAttributes(attribute.String(name, value))
	}
}

// SetInt is Set.
func (s *Span) SetInt(name string, value int) {
	if s != nil {
		s.span.SetAttributes(attribute.Int(name, value))
	}
}

// Keep says that somebody else ends the span than who began it.
func (s *Span) Keep() {
	if s != nil {
		s.kept.Store(true)
	}
}

// Kept reports whether Keep was called.
func (s *Span) Kept() bool { return s != nil && s.kept.Load() }

// Fail says that what the span is of has failed, and in what way. That is public: no text of an error.
func (s *Span) Fail(how string) {
	if s != nil {
		s.span.SetStatus(codes.Error, how)
	}
}

// End ends the span. Only the first call counts.
func (s *Span) End() {
	if s != nil {
		s.span.End()
	}
}

// EndWith ends the span, as failed if there was an error, of which only that it was is told.
func (s *Span) EndWith(err error) {
	if s == nil {
		return
	}
	if err != nil {
		s.Fail("failed")
	}
	s.End()
}

// exporter sends spans, and logs when that begins to fail and when it does no more.
type exporter struct {
	sdktrace.SpanExporter
	log     *slog.Logger
	failing bool // the provider exports one batch at a time
	over    atomic.Bool
	done    chan struct{} // closed when nothing is exported any more
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if e.over.Load() {
		return nil
	}
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !e.failing:
		e.log.Warn("traces are lost: the collector does not take them", "error", err)
	case err == nil && e.failing:
		e.log.Info("traces are sent again")
	}
	e.failing = err != nil
	return nil // it was told
}

// Shutdown implements sdktrace.SpanExporter. It is called when nothing is exported any more.
func (e *exporter) Shutdown(ctx context.Context) error {
	defer close(e.done)
	return e.SpanExporter.Shutdown(ctx)
}
