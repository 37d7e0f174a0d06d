package http

import (
	"net/http"
	"strconv"
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

// While gateways are replaced, the page of one may ask another one for the script that runs first. It gets that one's, and must
// not keep it under a name by which the first one's is asked for.
func TestAFileIsKeptUnderNoVersionButItsOwn(t *testing.T) {
	const kept, asked = "public, max-age=31536000, immutable", "no-cache"
	g := newGateway(t, options(func(o *Options) {
		o.Portal = fstest.MapFS{"index.html": {Data: []byte("<!doctype html>")}, "start.js": {Data: []byte("start()")}}
	}))
	version := func(path string) string { return strings.Trim(g.get(path).header.Get("ETag"), `W/"`) }
	for path, want := range map[string]string{
		"/start.js":                             asked,
		"/start.js?v=" + version("/start.js"):   kept,
		"/start.js?v=" + version("/"):           asked,
		"/start.js?v=":                          asked,
		"/start.js?x&v=" + version("/start.js"): asked,
		"/?v=" + version("/"):                   asked, // it names the files of this version
	} {
		if a := g.get(path); a.code != 200 || a.header.Get("Cache-Control") != want {
			t.Errorf("%s: %d %v, not %s", path, a.code, a.header, want)
		}
	}
}

// A browser that keeps a page asks for it again by the ETag of whatever coding it got; a cache
// between must not give it to one that cannot read it.
func TestThePortalIsSentInTheCodingThatTheBrowserTakes(t *testing.T) {
	g := newGateway(t, options(func(o *Options) {
		o.Portal = fstest.MapFS{
			"index.html":            {Data: []byte("<!doctype html>")},
			"assets/app-1234.js":    {Data: []byte("export {}")},
			"assets/app-1234.js.br": {Data: []byte("brotli")},
			"assets/app-1234.js.gz": {Data: []byte("gzipped")},
			"assets/a-1234.css":     {Data: []byte("a{}")},
			"assets/a-1234.css.gz":  {Data: []byte("css gzipped")},
		}
	}))
	etag := g.get("/assets/app-1234.js", "Accept-Encoding: ").header.Get("ETag")
	if !strings.HasPrefix(etag, `W/"`) {
		t.Errorf("ETag %s", etag)
	}
	for _, test := range []struct{ path, accept, coding, body string }{
		{"/assets/app-1234.js", "", "", "export {}"},
		{"/assets/app-1234.js", "gzip, deflate, br, zstd", "br", "brotli"},
		{"/assets/app-1234.js", "gzip, br;q=0.9", "gzip", "gzipped"},
		{"/assets/app-1234.js", "zstd", "", "export {}"},
		{"/assets/app-1234.js", "gzip;q=0, br;q=0", "", "export {}"},
		{"/assets/a-1234.css", "br, gzip;q=0.1", "gzip", "css gzipped"},
		{"/", "br", "", "<!doctype html>"},
	} {
		a := g.get(test.path, "Accept-Encoding: "+test.accept)
		if a.code != 200 || a.body != test.body || a.header.Get("Content-Encoding") != test.coding ||
			a.header.Get("Vary") != "Accept-Encoding" || a.header.Get("Content-Length") != strconv.Itoa(len(test.body)) {
			t.Errorf("%s as %q: %d %v %s", test.path, test.accept, a.code, a.header, a.body)
		}
		if test.path == "/assets/app-1234.js" {
			for _, accept := range []string{"br", "gzip", ""} {
				again := g.get(test.path, "Accept-Encoding: "+accept, "If-None-Match: "+a.header.Get("ETag"))
				if again.code != 304 || again.body != "" || again.header.Get("ETag") != etag || again.header.Get("Vary") != "Accept-Encoding" ||
					again.header.Get("Content-Encoding") != "" || again.header.Get("Cache-Control") == "" {
					t.Errorf("%q of what came as %q: %d %v %s", accept, test.coding, again.code, again.header, again.body)
				}
			}
		}
	}
	// No coding's file is an address of its own.
	if a := g.get("/assets/app-1234.js.br"); a.code != 404 {
		t.Errorf("%d %v", a.code, a.header)
	}
	head, err := http.NewRequest(http.MethodHead, g.url+"/assets/app-1234.js", nil)
	if err != nil {
		t.Fatal(err)
	}
	head.Header.Set("Accept-Encoding", "br")
	a, err := g.client.Do(head)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if a.Header.Get("Content-Encoding") != "br" || a.ContentLength != int64(len("brotli")) {
		t.Errorf("HEAD: %v", a.Header)
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
