package http

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kubecast/kubecast/internal/http/reply"
)

// TestNoAnswerCanBeMadeAPage: whatever an answer holds, a browser shows it as what it is said to
// be, runs nothing of it, frames and embeds it nowhere; and what is for one caller is kept for
// nobody else.
func TestNoAnswerCanBeMadeAPage(t *testing.T) {
	g := newGateway(t)
	g.api.Put("pods", "team-a/web", "metadata.annotations.x=<script>alert(1)</script>")
	for _, request := range []struct{ method, path, headers string }{
		{"GET", "/api/v1/pods", ""}, {"GET", "/api/v1/namespaces/team-a/pods/web", ""}, {"GET", "/api/v1/pods?countBy=metadata.name", ""},
		{"GET", "/api/v1/pods", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"}, {"GET", "/api", ""}, {"GET", "/openapi/v3", ""},
		{"GET", "/version", ""}, {"GET", "/clusters", ""}, {"GET", "/openapi.yaml", ""}, {"GET", "/auth/me", ""}, {"HEAD", "/api/v1/pods", ""},
		{"GET", "/api/v1/pods", "Authorization: Bearer forged"}, {"GET", "/api/v1/pods", "Accept: text/event-stream"},
		{"GET", "/none", ""}, {"GET", "/", ""}, {"POST", "/api/v1/pods", ""}, {"OPTIONS", "/api/v1/pods", ""}, {"POST", "/auth/logout", ""},
		{"GET", "/<script>alert(1)</script>", ""}, {"GET", "/api/v1/pods?labelSelector=%3Cscript%3E", ""},
	} {
		var headers []string
		if request.headers != "" {
			headers = append(headers, request.headers)
		}
		ctx := t.Context()
		response, err := g.client.Do(g.newRequest(ctx, request.method, request.path, headers))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		h, name := response.Header, request.method+" "+request.path+" "+request.headers
		for header, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
			"Content-Security-Policy": reply.AnswerPolicy, "Strict-Transport-Security": "",
		} {
			if got := h.Get(header); got != want {
				t.Errorf("%s: %s: %q", name, header, got)
			}
		}
		if kind := h.Get("Content-Type"); strings.Contains(kind, "html") || strings.Contains(kind, "javascript") || kind == "" && response.ContentLength > 0 {
			t.Errorf("%s is said to be %q", name, kind)
		}
		caching, public := h.Get("Cache-Control"), map[string]bool{"/": true, "/openapi.yaml": true}
		private := strings.Contains(caching, "no-store") || strings.Contains(caching, "private") && strings.Contains(h.Get("Vary"), "Authorization, Cookie")
		if !private && !public[request.path] && response.StatusCode != http.StatusNoContent {
			t.Errorf("%s: caches may keep it for others: %v", name, h)
		}
	}
}

// TestBrowsersComeBackByTLS once they came by it; but for a host that everybody develops on.
func TestBrowsersComeBackByTLS(t *testing.T) {
	g := newGateway(t, overTLS(t, 2))
	for host, want := range map[string]string{"kubecast.example.org": oneYear, "kubecast.example.org:8443": oneYear, "localhost:8443": "", "localhost": ""} {
		r := g.newRequest(t.Context(), http.MethodGet, "/", nil)
		r.Host = host
		response, err := g.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if got := response.Header.Get("Strict-Transport-Security"); got != want {
			t.Errorf("%s: %q", host, got)
		}
	}
}

// TestPortalLoadsAndCallsNothingElse; that it works so is shown in Chromium (web/e2e).
func TestPortalLoadsAndCallsNothingElse(t *testing.T) {
	files := fstest.MapFS{"index.html": {Data: []byte("<!doctype html>")}}
	pages, err := readPages(files)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{opts: Options{Portal: files}, pages: pages}
	w := httptest.NewRecorder()
	if err := s.portal()(w, httptest.NewRequest(http.MethodGet, "/", nil)); err != nil {
		t.Fatal(err)
	}
	directives := map[string]string{}
	for part := range strings.SplitSeq(w.Header().Get("Content-Security-Policy"), "; ") {
		name, value, _ := strings.Cut(part, " ")
		directives[name] = value
	}
	for name, value := range directives {
		switch value {
		case "'none'", "'self'":
		case "'script'":
			if name != "require-trusted-types-for" {
				t.Errorf("%s %s", name, value)
			}
		default:
			t.Errorf("%s %s lets more in than the gateway's own files", name, value)
		}
	}
	for _, name := range []string{"default-src", "base-uri", "form-action", "frame-ancestors"} {
		if directives[name] != "'none'" {
			t.Errorf("%s: %q", name, directives[name])
		}
	}
	if h := w.Header(); h.Get("Cross-Origin-Opener-Policy") != "same-origin" || !strings.Contains(h.Get("Permissions-Policy"), "camera=()") {
		t.Errorf("%v", h)
	}
}

// TestPortalIsTriedUnderThisPolicy: the portal's tests in Chromium serve it under a copy of the policy.
func TestPortalIsTriedUnderThisPolicy(t *testing.T) {
	text, err := os.ReadFile("../../web/e2e/support/portal.ts")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"`+portalPolicy+`"`) {
		t.Errorf("web/e2e/support/portal.ts has another policy than %s", portalPolicy)
	}
}
