package http

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/jobs/webhook"
)

// A page that an operator's browser shows must not be able to give orders, nor may anybody without a token.
func TestOrdersToWebhooksComeFromOperatorsOnly(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer target.Close()
	g := newGateway(t)
	hooks, err := webhook.New(webhook.Options{
		Targets: []webhook.Target{{Name: "backend", URL: target.URL, Concurrency: 1}}, Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	g.server.opts.Webhooks = hooks
	open := OpsOptions{Gatherer: g.registry, Open: true}
	tokens := func() ([]string, error) { return []string{"0123456789abcdef"}, nil }
	for _, test := range []struct {
		opts       OpsOptions
		form, body string
		code       int
		text       string
	}{
		{open, "application/json", `{"target": "backend", "action": "test"}`, 200, "delivered: 204 No Content"},
		{open, "application/json", `{"target": "other", "action": "test"}`, 404, "no webhook has this name"},
		{open, "application/json", `{"target": "backend", "action": "enable"}`, 503, "not ready"},
		{open, "application/json", `{"target": "backend", "action": "resend", "id": "a"}`, 503, "not ready"},
		{open, "application/json", `{"target": "backend", "action": "resend"}`, 400, "resend needs"},
		{open, "application/json", `{"target": "backend", "action": "resend", "since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}`, 400, "resend needs"},
		{open, "application/json", `{"target": "backend", "action": "stop"}`, 400, "must be test"},
		{open, "application/json", `{"targets": "backend"}`, 400, "unknown field"},
		{open, "text/plain", `{"target": "backend", "action": "test"}`, 415, "application/json"},
		{open, "application/x-www-form-urlencoded", `target=backend`, 415, "application/json"},
		{OpsOptions{Gatherer: g.registry, Tokens: tokens}, "application/json", `{"target": "backend", "action": "test"}`, 401, ""},
		{OpsOptions{Gatherer: g.registry}, "application/json", `{"target": "backend", "action": "test"}`, 403, ""},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/debug/webhooks", strings.NewReader(test.body))
		r.Host = "127.0.0.1:9090"
		r.Header.Set("Content-Type", test.form)
		g.server.OpsHandler(test.opts).ServeHTTP(w, r)
		if w.Code != test.code || !strings.Contains(w.Body.String(), test.text) {
			t.Errorf("%s %s: %d %q, want %d %q", test.form, test.body, w.Code, w.Body, test.code, test.text)
		}
	}
	if page := g.ops("/debug/webhooks"); page.code != 200 || !strings.Contains(page.body, "backend  "+target.URL) || !strings.Contains(page.body, "not ready") {
		t.Errorf("%d %s", page.code, page.body)
	}
}
