package webhook

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/tracing"
	"github.com/kubecast/kubecast/internal/tracing/tracetest"
)

// A receiver is told within which span it is sent to, if there is one; and the trace does not have its URL, which may be a secret.
func TestReceiversAreToldTheTraceAndTracesNotTheURL(t *testing.T) {
	var parent string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parent = r.Header.Get("Traceparent")
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer receiver.Close()
	collector := tracetest.New(t)
	for name, tracer := range map[string]*tracing.Tracer{"traced": collector.Tracer(t), "not traced": nil} {
		to, err := newTarget(Target{Name: "backend", URL: receiver.URL + "/hush", Concurrency: 1}, tracer, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := to.attempt(t.Context(), "id", "application/json", []byte("{}")); got.outcome != refused {
			t.Errorf("%s: %+v", name, got)
		}
		to.client.CloseIdleConnections()
		if (parent != "") != (tracer != nil) {
			t.Errorf("%s: the receiver is told %q", name, parent)
		}
		tracer.Close()
	}
	spans := collector.Named("webhook")
	if len(spans) != 1 || spans[0].Attributes["kubecast.webhook"] != "backend" || spans[0].Attributes["kubecast.outcome"] != refused || spans[0].Status.GetMessage() != refused {
		t.Fatalf("%v", spans)
	}
	if strings.Contains(collector.Raw(), "hush") {
		t.Error("the trace has the URL")
	}
}
