package http

import (
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
)

func TestPortalIsServedAndNothingElse(t *testing.T) {
	g := newGateway(t, options(func(o *Options) {
		o.Portal = fstest.MapFS{
			"index.html":           {Data: []byte("<!doctype html><title>Kubecast</title>")},
			"favicon.svg":          {Data: []byte("<svg/>")},
			"assets/app-1234.js":   {Data: []byte("export {}")},
			"assets/app-1234.css":  {Data: []byte("a{}")},
			"assets/deep/font.bin": {Data: []byte("font")},
		}
	}))
	for path, want := range map[string]struct{ kind, cache, body string }{
		"/":                   {"text/html; charset=utf-8", "no-cache", "<!doctype html><title>Kubecast</title>"},
		"/?view=jobs":         {"text/html; charset=utf-8", "no-cache", "<!doctype html><title>Kubecast</title>"},
		"/favicon.svg":        {"image/svg+xml", "no-cache", "<svg/>"},
		"/assets/app-1234.js": {"text/javascript; charset=utf-8", "public, max-age=31536000, immutable", "export {}"},
	} {
		a := g.get(path, "Authorization: ") // a user who signs in must see the page
		if a.code != 200 || a.body != want.body || a.header.Get("Content-Type") != want.kind || a.header.Get("Cache-Control") != want.cache {
			t.Errorf("%s: %d %v %s", path, a.code, a.header, a.body)
		}
		policy := a.header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: the policy lacks %s: %s", path, part, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || a.header.Get("X-Frame-Options") != "DENY" || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, a.header)
		}
	}
	for _, path := range []string{
		"/assets/", "/assets", "/assets/deep/", "/none", "/assets/app-9999.js", "/../main_test.go", "/%2e%2e/main_test.go", "/assets/..", "/index.html/", "/.", "//", "/assets//app-1234.js", "/%00",
	} {
		a := g.get(path)
		if a.code != http.StatusNotFound || a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v %s", path, a.code, a.header, a.body)
		}
		if strings.Contains(a.body, "app-1234") {
			t.Errorf("%s lists the folder: %s", path, a.body)
		}
	}
	if a := g.get("/index.html"); a.code != http.StatusMovedPermanently || a.header.Get("Location") != "./" {
		t.Errorf("%d %v", a.code, a.header)
	}
}

func TestWithoutAPortalItSaysHowToBuildOne(t *testing.T) {
	g := newGateway(t)
	if a := g.get("/"); a.code != 200 || !strings.Contains(a.body, "make build") || a.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%d %v %s", a.code, a.header, a.body)
	}
	if a := g.get("/index.html"); a.code != 404 || a.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v", a.code, a.header)
	}
}

// Parts of the API that are not built are answered as by an API server, so that kubectl understands.
func TestWhatIsNotBuiltOfTheAPI(t *testing.T) {
	g := newGateway(t)
	for _, path := range []string{"/api/v1/namespaces/a/pods/b/exec", "/clusters/default/api/v1/nodes/b/proxy/metrics"} {
		if a := g.get(path); a.code != 404 || a.status(t).Reason != "NotFound" || strings.HasSuffix(path, "/exec") && !strings.Contains(a.body, "pods/exec") {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
		if a := g.get(path, "Authorization: "); a.code != 401 {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	for _, path := range []string{"/clusters/default", "/history/api/v1/pods", "/notifications", "/auth/login", "/apiextra", "/stream/x"} {
		if a := g.get(path); a.code != 404 || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
}
