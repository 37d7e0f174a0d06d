package http

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/apitest"
)

// ops sends a request to the ops listener.
func (g *gateway) ops(path string) answer {
	return g.opsAs(OpsOptions{Gatherer: g.registry, Profiles: true, Open: true}, path, "")
}

func (g *gateway) opsAs(opts OpsOptions, path, authorization string) answer {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "127.0.0.1:9090"
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	g.server.OpsHandler(opts).ServeHTTP(w, r)
	return answer{w.Code, w.Result().Header, w.Body.String()}
}

// On loopback the ops listener shows everything to every caller, unless there are tokens. Elsewhere it does so only
// to holders of a token. kubelet, which has none, sees whether the gateway lives and is ready, without names.
// Profiles are served only if asked for.
func TestOpsListenerShowsTheInsideToWhoMaySeeIt(t *testing.T) {
	g := newGateway(t, cached(streamOptions(), "gadgets.example.org"))
	g.eventually("it is ready", func() bool { return g.ops("/readyz").code == 200 })
	file := filepath.Join(t.TempDir(), "token")
	const token, next = "0123456789abcdef", "fedcba9876543210"
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(token + "\n" + next + "\n")
	tokens := func() ([]string, error) { return ReadOpsTokens(file) }
	loopback := OpsOptions{Gatherer: g.registry, Open: true}
	outside := OpsOptions{Gatherer: g.registry}
	guarded := OpsOptions{Gatherer: g.registry, Tokens: tokens, Open: true, Profiles: true}
	for _, test := range []struct {
		name          string
		opts          OpsOptions
		authorization string
		inside        int
		profiles      int
		names         bool
	}{
		{"on loopback", loopback, "", 200, 404, true},
		{"outside, without a token file", outside, "", 403, 404, false},
		{"outside, without a token file, with some token", outside, "Bearer " + token, 403, 404, false},
		{"without a token", guarded, "", 401, 401, false},
		{"with a wrong token", guarded, "Bearer 0123456789abcdeF", 401, 401, false},
		{"with a part of one", guarded, "Bearer 0123456789", 401, 401, false},
		{"with another scheme", guarded, "Basic " + token, 401, 401, false},
		{"with the token", guarded, "Bearer " + token, 200, 200, true},
		{"with the next one", guarded, "bearer  " + next, 200, 200, true},
	} {
		for _, path := range []string{"/metrics", "/load", "/debug/kinds", "/debug/streams", "/debug/history", "/debug/logs", "/debug/questions"} {
			if a := g.opsAs(test.opts, path, test.authorization); a.code != test.inside || a.code != 200 && strings.Contains(a.body, "kubecast_") {
				t.Errorf("%s: %s: %d %s", test.name, path, a.code, a.body)
			}
		}
		if a := g.opsAs(test.opts, "/debug/pprof/cmdline", test.authorization); a.code != test.profiles {
			t.Errorf("%s: profiles: %d %s", test.name, a.code, a.body)
		}
		if a := g.opsAs(test.opts, "/livez", test.authorization); a.code != 200 {
			t.Errorf("%s: %d %s", test.name, a.code, a.body)
		}
		if a := g.opsAs(test.opts, "/readyz", test.authorization); a.code != 200 || strings.Contains(a.body, "gadgets") != test.names || !strings.HasPrefix(a.body, "ok\n") {
			t.Errorf("%s: %d %s", test.name, a.code, a.body)
		}
	}
	for host, want := range map[string]int{"localhost:9090": 200, "[::1]:9090": 200, "::1": 200, "127.0.0.1": 200, "rebound.example.org:9090": 403, "127.0.0.1.example.org": 403, "": 403} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/debug/streams", nil)
		r.Host = host
		g.server.OpsHandler(loopback).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("asked as %q: %d", host, w.Code)
		}
	}
	for _, bad := range []string{"", "\n", "short\n", token + "\nshort"} {
		write(bad)
		if _, err := ReadOpsTokens(file); err == nil || strings.Contains(err.Error(), "short") || strings.Contains(err.Error(), token) {
			t.Errorf("%q: %v", bad, err)
		}
		if a := g.opsAs(guarded, "/metrics", "Bearer "+token); a.code != 503 {
			t.Errorf("%q: %d %s", bad, a.code, a.body)
		}
	}
}

// The gateway is ready when the kinds to preload are. Those that the cluster lacks or refuses are named, but do not
// count.
func TestReadyWhenThePreloadedKindsAre(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		if a := g.ops("/readyz"); a.code != 503 || !strings.Contains(a.body, "waiting:") || !strings.Contains(a.body, "pods") || g.metric("kubecast_ready", "") != 0 {
			t.Errorf("%d %s", a.code, a.body)
		}
		g.api.Fail("pods", 0)
		g.eventually("it is ready", func() bool { return g.ops("/readyz").code == 200 && g.metric("kubecast_ready", "") == 1 })
		a := g.ops("/readyz")
		for _, missing := range []string{"secrets", "gadgets.example.org", "bindings"} {
			if !strings.Contains(a.body, "missing: cluster default: "+missing) {
				t.Errorf("%s is not said to be missing: %s", missing, a.body)
			}
		}
		if !strings.HasPrefix(a.body, "ok\n") || strings.Contains(a.body, "waiting:") {
			t.Error(a.body)
		}
		// A cluster that is lost later changes nothing, since other replicas could not serve it better.
		g.api.Fail(apitest.Everything, 500)
		g.api.CutWatches("pods")
		g.eventually("it is stale", func() bool { return !g.kinds.All()[0].Upstream().Live })
		if a := g.ops("/readyz"); a.code != 200 {
			t.Errorf("%d %s", a.code, a.body)
		}
		g.server.Drain(context.Background())
		if a := g.ops("/readyz"); a.code != 503 || !strings.HasPrefix(a.body, "draining\n") || g.metric("kubecast_ready", "") != 0 {
			t.Errorf("%d %s", a.code, a.body)
		}
		if a := g.ops("/livez"); a.code != 200 || a.body != "ok\n" {
			t.Errorf("%d %s", a.code, a.body)
		}
	}, cached(streamOptions(), "pods", "secrets", "gadgets.example.org", "bindings"), before(func(api *apitest.API) {
		api.Fail("pods", 500)
		api.Fail("secrets", 403)
	}))
}

// The debug pages show users and requests, but neither tokens nor objects.
func TestDebugPagesShowNothingSecret(t *testing.T) {
	g := newGateway(t, cached(streamOptions(), "secrets"))
	g.api.Put("secrets", "team-a/password", "data.key=c2VjcmV0LXZhbHVl", "metadata.labels.app=secret-label")
	s := g.stream("/stream?a=" + escape("/api/v1/secrets?labelSelector=app=secret-label"))
	if f := s.until("a.added"); !strings.Contains(f.data, `"key":""`) || strings.Contains(f.data, "c2VjcmV0") {
		t.Errorf("a secret's value: %q", f.raw)
	}
	other := g.stream("/api/v1/secrets")
	other.until("synced")
	page := g.stream("/api/v1/secrets?labelSelector=app=secret-label&sort=metadata.name&limit=10")
	page.until("page")
	pages := g.ops("/debug/questions").body + g.ops("/debug/streams").body + g.ops("/debug/kinds").body + g.ops("/readyz").body + g.get("/clusters").body + g.ops("/metrics").body
	for _, secret := range []string{"c2VjcmV0", "secret-label", "password", apitest.SecretDetail, "Bearer"} {
		if strings.Contains(pages, secret) {
			t.Errorf("%s: %s", secret, pages)
		}
	}
	for _, want := range []string{`"/stream"`, `"/api/v1/secrets"`, `"alice"`, "metadata.name", "kubecast_streams_open 3", "kubecast_stream_events_sent_total"} {
		if !strings.Contains(pages, want) {
			t.Errorf("without %s: %s", want, pages)
		}
	}
}

func TestMetricsCountWhatIsSent(t *testing.T) {
	g := newGateway(t)
	s := g.stream("/api/v1/pods", "Last-Event-ID: otherone.5")
	s.expect("reset epoch", "synced")
	g.api.Put("pods", "team-a/web")
	s.expect("added web")
	g.get("/api/v1/pods")
	g.get("/api/v1/gadgets")
	g.get("/none")
	s.close()
	g.eventually("the stream has ended", func() bool { return strings.Contains(g.ops("/metrics").body, "kubecast_streams_open 0") })
	metrics := g.ops("/metrics").body
	for _, want := range []string{
		"kubecast_stream_events_sent_total 3\n",
		`kubecast_stream_resets_total{reason="epoch"} 1`,
		`kubecast_streams_ended_total{reason="left"} 1`,
		`kubecast_http_requests_total{code="200",route="kubernetes"} 1`,
		`kubecast_http_requests_total{code="404",route="kubernetes"} 1`,
		`kubecast_http_requests_total{code="404",route="portal"} 1`,
		"kubecast_stream_append_to_flush_seconds_count 1\n",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("without %s:\n%s", want, metrics)
		}
	}
	if strings.Contains(metrics, "kubecast_stream_bytes_sent_total 0\n") {
		t.Error("no bytes are counted")
	}
}
