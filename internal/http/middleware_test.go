package http

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/reply"
)

func TestOnlyReading(t *testing.T) {
	g := newGateway(t)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "CONNECT", "TRACE", "PROPFIND"} {
		for _, path := range []string{"/api/v1/pods", "/clusters/default/apis/batch/v1/jobs", "/stream?a=/api/v1/pods", "/", "/assets/x", "/clusters"} {
			if method == "CONNECT" {
				continue // has no path
			}
			a := g.request(method, path)
			if a.code != http.StatusMethodNotAllowed || a.header.Get("Allow") != "GET, HEAD, OPTIONS" {
				t.Errorf("%s %s: %d %v", method, path, a.code, a.header)
			}
			if wantStatus := strings.Contains(path, "/api") && path[:2] != "/s"; wantStatus != (a.header.Get("Content-Type") == "application/json") {
				t.Errorf("%s %s: %s", method, path, a.header.Get("Content-Type"))
			}
		}
	}
	if n := len(g.kinds.All()); n != 0 {
		t.Errorf("%d kinds were read for it", n)
	}
}

func TestHeadIsGetWithoutTheBody(t *testing.T) {
	g := newGateway(t)
	g.api.Put("pods", "team-a/web")
	for _, path := range []string{
		"/api/v1/pods", "/api/v1/namespaces/team-a/pods/web", "/api/v1/namespaces/team-a/pods/none", "/api/v1/gadgets", "/clusters", "/", "/none",
		"/api/v1/pods?limit=x",
	} {
		get, head := g.get(path), g.request(http.MethodHead, path)
		if head.code != get.code || head.body != "" || head.header.Get("Content-Type") != get.header.Get("Content-Type") {
			t.Errorf("%s: %d %q %v", path, head.code, head.body, head.header)
		}
	}
	for _, path := range []string{"/api/v1/pods", "/stream?a=/api/v1/pods"} {
		a := g.request(http.MethodHead, path, "Accept: text/event-stream")
		if a.code != 200 || a.header.Get("Content-Type") != "text/event-stream" || a.header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("HEAD of a stream: %d %v", a.code, a.header)
		}
	}
	if a := g.request(http.MethodHead, "/stream?a=/api/v1/pods", "Accept: text/event-stream", "Authorization: "); a.code != 401 {
		t.Errorf("%d", a.code)
	}
	g.access.set(func(a *fakeAuth) { a.down = true })
	if a := g.request(http.MethodHead, "/stream?a=/api/v1/pods", "Accept: text/event-stream"); a.code != 200 {
		t.Errorf("%d", a.code)
	}
}

// TestForeignPages: a page of another origin can read answers if it is configured, and never otherwise.
func TestForeignPages(t *testing.T) {
	const ours = "https://portal.example.org"
	g := newGateway(t, options(func(o *Options) { o.Origins = []string{ours, "http://localhost:5173"} }))
	g.api.Put("pods", "team-a/web")
	for _, test := range []struct{ origin, want string }{
		{ours, ours}, {"http://localhost:5173", "http://localhost:5173"}, {"", ""}, {"null", ""}, {"*", ""},
		{"https://evil.example.org", ""}, {ours + ".evil.org", ""}, {ours + ":8443", ""}, {"http://portal.example.org", ""},
	} {
		for _, path := range []string{"/api/v1/pods", "/api/v1/gadgets", "/clusters", "/stream"} {
			a := g.get(path, "Origin: "+test.origin)
			if got := a.header.Get("Access-Control-Allow-Origin"); got != test.want {
				t.Errorf("%q on %s: %q", test.origin, path, got)
			}
			if a.header.Get("Vary") != "Origin" || a.header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%q on %s: %v", test.origin, path, a.header)
			}
		}
		s := g.stream("/api/v1/pods", "Origin: "+test.origin)
		if got := s.response.Header.Get("Access-Control-Allow-Origin"); got != test.want {
			t.Errorf("%q on a stream: %q", test.origin, got)
		}
		s.close()
		preflight := g.request(http.MethodOptions, "/stream", "Origin: "+test.origin, "Authorization: ",
			"Access-Control-Request-Method: GET", "Access-Control-Request-Headers: authorization,last-event-id")
		allowed := preflight.header.Get("Access-Control-Allow-Headers")
		if vary := strings.Join(preflight.header.Values("Vary"), ", "); vary != "Origin, Access-Control-Request-Method, Access-Control-Request-Headers" {
			t.Errorf("preflight of %q varies by %s", test.origin, vary)
		}
		if (preflight.header.Get("Access-Control-Max-Age") != "") != (test.want != "") || preflight.header.Get("Access-Control-Expose-Headers") != "" {
			t.Errorf("preflight of %q: %v", test.origin, preflight.header)
		}
		if preflight.code != 204 || (test.want != "") != (strings.Contains(allowed, "Authorization") && strings.Contains(allowed, "Last-Event-ID")) {
			t.Errorf("preflight of %q: %d %v", test.origin, preflight.code, preflight.header)
		}
	}
	// What a page can do something with: ask again only for what has changed, wait, sign in anew, tell whom to ask.
	for _, name := range []string{"ETag", "Retry-After", "WWW-Authenticate", "X-Request-Id"} {
		if a := g.get("/api/v1/pods", "Origin: "+ours); !slices.Contains(strings.Split(a.header.Get("Access-Control-Expose-Headers"), ", "), name) {
			t.Errorf("%s may not be read: %v", name, a.header)
		}
	}
	plain := g.request(http.MethodOptions, "/api/v1/pods", "Authorization: ")
	if plain.code != 204 || plain.header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("%d %v", plain.code, plain.header)
	}
}

func TestTokensInAddressesAreRefused(t *testing.T) {
	g := newGateway(t)
	const jwt = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"
	for _, path := range []string{
		"/api/v1/pods?access_token=x", "/api/v1/pods?token=x", "/api/v1/pods?acc%65ss_tok%65n=x", "/stream?a=/api/v1/pods&token=x", "/api/v1/pods?id_token=",
		"/api/v1/pods?auth=" + jwt, "/stream?a=" + escape("/api/v1/pods?jwt="+jwt), "/api/v1/namespaces/" + jwt + "/pods", "/clusters?x=" + jwt,
	} {
		a := g.get(path)
		if a.code != http.StatusBadRequest || strings.Contains(a.body, "eyJ") || !strings.Contains(a.body, "Authorization: Bearer") {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	if strings.Contains(g.log.String(), "auth=eyJ") {
		t.Error("a query is in the log")
	}
}

func TestEachRequestHasAnID(t *testing.T) {
	g := newGateway(t)
	seen := map[string]bool{}
	for _, path := range []string{"/api/v1/pods", "/api/v1/pods", "/nothing", "/clusters", "/stream"} {
		id := g.get(path).header.Get("X-Request-Id")
		if len(id) < 8 || seen[id] {
			t.Errorf("%q", id)
		}
		seen[id] = true
	}
	s := g.stream("/api/v1/pods")
	id := s.response.Header.Get("X-Request-Id")
	s.close()
	g.eventually("the end of the stream is logged with its id", func() bool { return strings.Contains(g.log.String(), `msg="stream ended" request=`+id) })
}

// TestPanicIsAnAnswerOrABrokenConnection, and never a short answer that looks complete.
func TestPanicIsAnAnswerOrABrokenConnection(t *testing.T) {
	g := newGateway(t)
	s := g.server
	handler := s.identify(s.recover(s.answer("test", func(w http.ResponseWriter, r *http.Request) error {
		switch r.URL.Path {
		case "/api/panic":
			panic(apitest.SecretDetail)
		case "/late":
			_, _ = w.Write([]byte("[1,2"))
			panic(apitest.SecretDetail)
		case "/error-late":
			_, _ = w.Write([]byte("[1,2"))
			return errors.New(apitest.SecretDetail)
		case "/not-a-status":
			return &reply.Error{Message: "the client did not take the answer"}
		case "/stream":
			to, err := conn.Open(w, r, eventStream)
			if err != nil {
				return err
			}
			defer to.Close(false)
			panic(apitest.SecretDetail)
		}
		return errors.New(apitest.SecretDetail)
	})))
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = discardLog()
	server.Start()
	defer server.Close()
	for path, complete := range map[string]bool{"/api/panic": true, "/late": false, "/error-late": false, "/not-a-status": false, "/stream": false, "/error": true} {
		response, err := server.Client().Get(server.URL + path)
		var body []byte
		if err == nil {
			body, err = io.ReadAll(response.Body)
			response.Body.Close()
		}
		if (err == nil) != complete {
			t.Errorf("%s: %q, %v", path, body, err)
		}
		if strings.Contains(string(body), apitest.SecretDetail) {
			t.Errorf("%s: %s", path, body)
		}
		if complete && (response.StatusCode != 500 || !strings.Contains(g.log.String(), "request="+response.Header.Get("X-Request-Id"))) {
			t.Errorf("%s: %d; log: %s", path, response.StatusCode, g.log)
		}
	}
	if !strings.Contains(g.log.String(), "middleware_test.go") {
		t.Error("the log does not say where it panicked")
	}
}
