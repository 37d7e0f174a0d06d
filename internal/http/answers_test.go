package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
)

func (a answer) status(t testing.TB) metav1.Status {
	t.Helper()
	var s metav1.Status
	if err := json.Unmarshal([]byte(a.body), &s); err != nil || s.Kind != "Status" || s.APIVersion != "v1" {
		t.Fatalf("not a Status: %d %s", a.code, a.body)
	}
	if int(s.Code) != a.code || a.header.Get("Content-Type") != "application/json" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v: %s", a.code, a.header, a.body)
	}
	return s
}

// TestErrorsSayNothingOfTheInside: one table, with what each sort of error becomes, and what clients may do about it.
func TestErrorsSayNothingOfTheInside(t *testing.T) {
	secret := errors.New(apitest.SecretDetail)
	wrap := func(err error) error { return fmt.Errorf("asking %s: %w: %w", apitest.SecretDetail, err, secret) }
	for name, test := range map[string]struct {
		err    error
		code   int
		reason metav1.StatusReason
		retry  bool
		header string // that must be there
	}{
		"no credentials":    {wrap(auth.ErrNoCredentials), 401, metav1.StatusReasonUnauthorized, false, "Www-Authenticate"},
		"bad token":         {wrap(auth.ErrBadToken), 401, metav1.StatusReasonUnauthorized, false, "Www-Authenticate"},
		"expired token":     {wrap(errors.Join(auth.ErrTokenExpired, auth.ErrBadToken)), 401, metav1.StatusReasonUnauthorized, false, "Www-Authenticate"},
		"undecided":         {wrap(auth.ErrUndecided), 503, metav1.StatusReasonServiceUnavailable, true, "Retry-After"},
		"keys unknown":      {wrap(auth.ErrUnavailable), 503, metav1.StatusReasonServiceUnavailable, true, "Retry-After"},
		"no kind":           {wrap(cluster.ErrNoKind), 404, metav1.StatusReasonNotFound, false, ""},
		"not watchable":     {wrap(cache.ErrNotWatchable), 405, metav1.StatusReasonMethodNotAllowed, false, "Allow"},
		"gateway refused":   {wrap(cache.ErrRefused), 503, metav1.StatusReasonServiceUnavailable, true, "Retry-After"},
		"cluster away":      {wrap(cluster.ErrUnavailable), 503, metav1.StatusReasonServiceUnavailable, true, "Retry-After"},
		"not synced":        {wrap(cache.ErrNotSynced), 503, metav1.StatusReasonServiceUnavailable, true, "Retry-After"},
		"shutting down":     {wrap(cache.ErrClosed), 503, metav1.StatusReasonServiceUnavailable, true, "Retry-After"},
		"anything":          {secret, 500, metav1.StatusReasonInternalError, false, ""},
		"bad request":       {badRequest("limit: %q", "x"), 400, metav1.StatusReasonBadRequest, false, ""},
		"forbidden":         {forbidden(auth.Identity{Username: "u"}, target{resource: "pods", version: "v1"}, "list"), 403, metav1.StatusReasonForbidden, false, ""},
		"expired":           {expired("gone", "fresh"), 410, metav1.StatusReasonExpired, false, ""},
		"version too large": {askedVersion{version: 9}.check(5), 504, metav1.StatusReasonTimeout, true, "Retry-After"},
	} {
		for _, path := range []string{"/api/v1/pods", "/stream"} {
			w := httptest.NewRecorder()
			replyTo(test.err).write(w, httptest.NewRequest(http.MethodGet, path, nil))
			a := answer{w.Code, w.Result().Header, w.Body.String()}
			if a.code != test.code || strings.Contains(a.body, apitest.SecretDetail) {
				t.Errorf("%s: %d %s", name, a.code, a.body)
			}
			if test.header != "" && a.header.Get(test.header) == "" {
				t.Errorf("%s: without %s", name, test.header)
			}
			if retry := a.header.Get("Retry-After"); (retry != "") != test.retry || retry == "0" {
				t.Errorf("%s: Retry-After: %q", name, retry)
			}
			if path == "/stream" {
				var problem map[string]any
				if err := json.Unmarshal([]byte(a.body), &problem); err != nil || problem["status"] != float64(test.code) ||
					problem["type"] != "about:blank" || problem["title"] == "" || a.header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("%s: not a problem: %v %s", name, a.header, a.body)
				}
				continue
			}
			if s := a.status(t); s.Reason != test.reason || s.Status != metav1.StatusFailure || s.Message == "" {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
}

// TestWhatHealsIsNoStatusOnAStream (WIRE.md, rule 8): an EventSource that gets a 4xx or 5xx never comes back, so only
// what coming back does not change is one.
func TestWhatHealsIsNoStatusOnAStream(t *testing.T) {
	const position = "otherone.42"
	type reply struct {
		list   int    // status of the list
		stream int    // status of the stream
		reason string // of its goodbye
	}
	for name, test := range map[string]struct {
		path    string
		set     func(*gateway)
		options option
		headers []string
		want    reply
	}{
		"no token":              {"/api/v1/pods", nil, nil, []string{"Authorization: "}, reply{401, 401, ""}},
		"forged token":          {"/api/v1/pods", nil, nil, []string{"Authorization: Bearer forged"}, reply{401, 401, ""}},
		"basic auth":            {"/api/v1/pods", nil, nil, []string{"Authorization: Basic YTpi"}, reply{401, 401, ""}},
		"unknown kind":          {"/api/v1/gadgets", nil, nil, nil, reply{404, 404, ""}},
		"unknown cluster":       {"/clusters/none/api/v1/pods", nil, nil, nil, reply{404, 404, ""}},
		"subresource":           {"/api/v1/namespaces/a/pods/b/log", nil, nil, nil, reply{404, 404, ""}},
		"namespace of a node":   {"/api/v1/namespaces/a/nodes", nil, nil, nil, reply{404, 404, ""}},
		"pod without namespace": {"/api/v1/pods/web", nil, nil, nil, reply{404, 404, ""}},
		"not watchable":         {"/api/v1/bindings", nil, nil, nil, reply{405, 405, ""}},
		"bad selector":          {"/api/v1/pods?labelSelector=%3D%3D", nil, nil, nil, reply{400, 400, ""}},
		"malformed query":       {"/api/v1/pods?labelSelector=%zz", nil, nil, nil, reply{400, 400, ""}},
		"semicolon":             {"/api/v1/pods?labelSelector=a;fieldSelector=b", nil, nil, nil, reply{400, 400, ""}},
		"forbidden": {"/api/v1/pods", func(g *gateway) {
			g.access.decide = func(auth.Identity, auth.Request) (bool, error) { return false, nil }
		}, nil, nil, reply{403, 403, ""}},
		"keys unknown": {"/api/v1/pods", func(g *gateway) { g.access.down = true }, nil, nil, reply{503, 200, "unavailable"}},
		"undecided": {"/api/v1/pods", func(g *gateway) {
			g.access.decide = func(auth.Identity, auth.Request) (bool, error) {
				return false, fmt.Errorf("%w: %s", auth.ErrUndecided, apitest.SecretDetail)
			}
		}, nil, nil, reply{503, 200, "unavailable"}},
		"no discovery":       {"/api/v1/pods", func(g *gateway) { g.api.Fail("discovery", 500) }, nil, nil, reply{503, 200, "unavailable"}},
		"gateway refused":    {"/api/v1/pods", func(g *gateway) { g.api.Fail("pods", 403) }, nil, nil, reply{503, 200, "unavailable"}},
		"API server errors":  {"/api/v1/pods", func(g *gateway) { g.api.Fail("pods", 500) }, nil, nil, reply{503, 200, "unavailable"}},
		"API server hangs":   {"/api/v1/pods", func(g *gateway) { g.api.Hang("pods") }, nil, nil, reply{503, 200, "unavailable"}},
		"no kube-system":     {"/api/v1/pods", func(g *gateway) { g.api.Fail("namespaces", 403) }, nil, nil, reply{200, 200, "unavailable"}},
		"limit of the user":  {"/api/v1/pods", nil, options(func(o *Options) { o.Limits.PerUser = 1 }), nil, reply{200, 200, "limit"}},
		"limit of addresses": {"/api/v1/pods", nil, options(func(o *Options) { o.Limits.PerAddress = 1 }), nil, reply{200, 200, "limit"}},
		"limit of all":       {"/api/v1/pods", nil, options(func(o *Options) { o.Limits.Total = 1 }), nil, reply{200, 200, "limit"}},
		"draining":           {"/api/v1/pods", func(g *gateway) { g.server.drain() }, nil, nil, reply{200, 200, "drain"}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := []option{options(func(o *Options) { o.SyncTimeout = 3 * time.Second })}
			if test.options != nil {
				opts = append(opts, test.options)
			}
			inBubble(t, func(t *testing.T, g *gateway) {
				if test.options != nil {
					g.stream("/api/v1/nodes").expect("synced") // takes the only place
				}
				if test.set != nil {
					g.access.set(func(*access) { test.set(g) })
				}
				if a := g.get(test.path, test.headers...); a.code != test.want.list {
					t.Errorf("the list: %d %s", a.code, a.body)
				} else if a.code >= 400 {
					if a.status(t); (a.header.Get("WWW-Authenticate") != "") != (a.code == 401) {
						t.Errorf("%v", a.header)
					}
				}
				address, query, _ := strings.Cut(test.path, "?")
				for _, path := range []string{test.path, "/stream?w=" + escape(address) + "&" + query} {
					headers := append([]string{"Last-Event-ID: " + position}, test.headers...)
					if test.want.stream != 200 {
						s := g.open(path, headers...)
						body, _ := io.ReadAll(s.body)
						a := answer{s.response.StatusCode, s.response.Header, string(body)}
						if notAPath := name == "subresource" && path != test.path; a.code != test.want.stream && (!notAPath || a.code != 400) {
							t.Errorf("GET %s: %d %s", path, a.code, a.body)
						}
						g.checkPublic(a.body)
						continue
					}
					f := g.stream(path, headers...).expect("goodbye " + test.want.reason)
					if f.id != position {
						t.Errorf("the client's position does not come back: %q", f.raw)
					}
					byQuery := g.stream(path + map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "lastEventId=" + position)
					if f := byQuery.expect("goodbye " + test.want.reason); f.id != position {
						t.Errorf("the position in the query does not come back: %q", f.raw)
					}
				}
			}, opts...)
		})
	}
}

// TestNothingCanBeInjectedThroughAPosition: the client's own position comes back in goodbye, but only if it is one.
func TestNothingCanBeInjectedThroughAPosition(t *testing.T) {
	g := newGateway(t)
	g.access.set(func(a *access) { a.down = true })
	for _, position := range []string{
		"a\n\nevent: added\ndata: {}\n\n", "a\r\rdata: x", "a\x00", "ab.c-1\ndata: x", "\u2028", "ab.1 ", strings.Repeat("a", 5000), "<script>", "ab.1.2",
	} {
		f := g.stream("/api/v1/pods?lastEventId=" + escape(position)).next()
		if f.event != "goodbye" || f.id != "" && f.id != strings.TrimSpace(position) {
			t.Errorf("%q: %q", position, f.raw)
		}
	}
	for _, position := range []string{"ab.1", "ab", "ab.0", "ab.pods-5.jobs-6"} {
		if f := g.stream("/stream?lastEventId=" + position).next(); f.id != position {
			t.Errorf("%q: %q", position, f.raw)
		}
	}
}

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
	g.access.set(func(a *access) { a.down = true })
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
		if preflight.code != 204 || (test.want != "") != (strings.Contains(allowed, "Authorization") && strings.Contains(allowed, "Last-Event-ID")) {
			t.Errorf("preflight of %q: %d %v", test.origin, preflight.code, preflight.header)
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
		"/api/v1/pods?access_token=x", "/api/v1/pods?token=x", "/stream?a=/api/v1/pods&token=x", "/api/v1/pods?id_token=",
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
	log := &syncBuffer{}
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
			return &reply{message: "the client did not take the answer"}
		case "/stream":
			_, conn, err := connect(w, r)
			if err != nil {
				return err
			}
			defer conn.close(false)
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
			t.Errorf("%s: %d; log: %s", path, response.StatusCode, log)
		}
	}
	if !strings.Contains(g.log.String(), "answers_test.go") {
		t.Error("the log does not say where it panicked")
	}
}

// TestWhoMayNotSeeAKindDoesNotLearnWhetherItExists
func TestWhoMayNotSeeAKindDoesNotLearnWhetherItExists(t *testing.T) {
	g := newGateway(t)
	g.access.set(func(a *access) { a.decide = func(auth.Identity, auth.Request) (bool, error) { return false, nil } })
	for _, path := range []string{"/api/v1/pods", "/api/v1/gadgets", "/apis/none.example.org/v1/things", "/api/v1/bindings", "/api/v1/namespaces/a/pods/web"} {
		if a := g.get(path); a.code != 403 || !strings.Contains(a.status(t).Message, `is forbidden: User "alice" cannot`) {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	if served := g.api.Served("discovery"); served != 0 {
		t.Errorf("the cluster was asked %d times", served)
	}
}

func TestClustersTellTheirState(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		read := func() (states struct {
			Clusters []struct {
				Name    string
				Default bool
				State   string
				Kinds   []struct{ Group, Version, Resource, State string }
			}
		}) {
			t.Helper()
			a := g.get("/clusters")
			if err := json.Unmarshal([]byte(a.body), &states); err != nil || a.code != 200 || a.header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%d %v %s", a.code, a.header, a.body)
			}
			return states
		}
		g.watches("pods", 1)
		g.eventually("it is live", func() bool { return read().Clusters[0].State == "live" })
		c := read().Clusters[0]
		if c.Name != "default" || !c.Default || len(c.Kinds) != 1 || c.Kinds[0].Resource != "pods" || c.Kinds[0].State != "live" {
			t.Errorf("%+v", c)
		}
		g.api.Fail("pods", 500)
		g.api.DropWatches("pods")
		g.eventually("it is stale", func() bool { return read().Clusters[0].State == "stale" })
		if a := g.get("/clusters", "Authorization: "); a.code != 401 || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%d %s", a.code, a.body)
		}
	}, cached(streamOptions(), "pods"))
}
