package tracing_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/kubecast/kubecast/internal/tracing"
	"github.com/kubecast/kubecast/internal/tracing/tracetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSpansReachTheCollector(t *testing.T) {
	collector := tracetest.New(t)
	tracer := collector.Tracer(t)
	header := http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	ctx, request := tracer.Serve(t.Context(), header, "GET")
	request.Rename("GET /apis/*")
	request.Set("url.path", "/apis/batch/v1/jobs")
	inner, list := tracer.Start(ctx, "upstream list", trace.SpanKindClient)
	onward := http.Header{}
	tracer.Inject(inner, onward)
	list.EndWith(errors.New("what is in it is secret"))
	if tracing.Of(ctx) != request || tracing.Of(inner) != list || tracing.Of(context.Background()) != nil {
		t.Error("contexts have other spans")
	}
	request.End()
	tracer.Close()
	requests, lists := collector.Named("GET /apis/*"), collector.Named("upstream list")
	if len(requests) != 1 || len(lists) != 1 {
		t.Fatalf("%v", collector.Names())
	}
	if got := requests[0]; len(got.ParentSpanId) > 0 || len(got.Links) != 1 || string(got.Links[0].SpanId) != "\xb7\xad\x6b\x71\x69\x20\x33\x31" || got.Attributes["url.path"] != "/apis/batch/v1/jobs" {
		t.Errorf("%v", got)
	}
	if !bytes.Equal(lists[0].ParentSpanId, requests[0].SpanId) || !bytes.Equal(lists[0].TraceId, requests[0].TraceId) || lists[0].Status.GetMessage() != "failed" {
		t.Errorf("%v", lists[0])
	}
	if !strings.HasPrefix(onward.Get("Traceparent"), "00-"+hex.EncodeToString(requests[0].TraceId)+"-") || !strings.HasSuffix(onward.Get("Traceparent"), "-01") {
		t.Errorf("%v", onward)
	}
	if raw := collector.Raw(); strings.Contains(raw, "secret") || !strings.Contains(raw, "kubecast") {
		t.Error("the text of an error is sent")
	}
}

func TestWithoutAnEndpointTracingCostsNothing(t *testing.T) {
	tracer, err := tracing.New(tracing.Options{})
	if tracer != nil || err != nil {
		t.Fatal(tracer, err)
	}
	ctx, header, failure := t.Context(), http.Header{}, errors.New("x")
	if n := testing.AllocsPerRun(1000, func() {
		inner, span := tracer.Start(ctx, "database transaction", trace.SpanKindClient)
		span.Set("kubecast.for", "recorder")
		span.SetInt("http.response.status_code", 200)
		tracer.Inject(inner, header)
		tracing.Of(inner).Keep()
		span.EndWith(failure)
	}); n != 0 || len(header) != 0 {
		t.Errorf("%v allocations, %v", n, header)
	}
	tracer.Close()
}

func BenchmarkSpanWithoutAnEndpoint(b *testing.B) {
	var tracer *tracing.Tracer
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, span := tracer.Start(ctx, "database transaction", trace.SpanKindClient)
		span.Set("kubecast.for", "recorder")
		span.EndWith(nil)
	}
}

// A collector that takes connections and never answers; more spans than fit into a batch.
func TestTheEndDoesNotWaitForACollectorThatHangs(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	closesWithin(t, "http://"+listener.Addr().String(), 8*time.Second)
}

func TestTheEndDoesNotWaitForACollectorThatIsAway(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if said := closesWithin(t, "http://"+listener.Addr().String(), 8*time.Second); strings.Count(said, "traces are lost") != 1 {
		t.Errorf("it is not logged once: %s", said)
	}
}

func closesWithin(t *testing.T, endpoint string, most time.Duration) (said string) {
	t.Helper()
	var log bytes.Buffer
	tracer, err := tracing.New(tracing.Options{Endpoint: endpoint, Sample: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 {
		_, span := tracer.Start(t.Context(), "webhook", trace.SpanKindClient)
		span.End()
	}
	began := time.Now()
	tracer.Close()
	if took := time.Since(began); took > most {
		t.Errorf("the end took %v", took)
	}
	return log.String()
}
