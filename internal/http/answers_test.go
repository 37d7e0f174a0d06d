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
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/visibility"
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
		"bad request":       {reply.BadRequest("limit: %q", "x"), 400, metav1.StatusReasonBadRequest, false, ""},
		"forbidden":         {access.Forbidden(auth.Identity{Username: "u"}, visibility.Target{Resource: "pods", Version: "v1"}, "list"), 403, metav1.StatusReasonForbidden, false, ""},
		"expired":           {reply.Expired("gone", "fresh"), 410, metav1.StatusReasonExpired, false, ""},
		"version too large": {reply.TooLarge(9, 5), 504, metav1.StatusReasonTimeout, true, "Retry-After"},
	} {
		for _, path := range []string{"/api/v1/pods", "/stream"} {
			w := httptest.NewRecorder()
			reply.To(test.err).Write(w, httptest.NewRequest(http.MethodGet, path, nil))
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
					problem["type"] != "about:blank" || problem["title"] == "" || problem["reason"] != string(test.reason) || a.header.Get("Content-Type") != "application/problem+json" {
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

// TestWhatHealsIsNoStatusOnAStream (docs/wire.md, rule 8): an EventSource that gets a 4xx or 5xx
// never comes back, so only what coming back does not change is one.
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
		"subresource":           {"/api/v1/namespaces/a/pods/b/exec", nil, nil, nil, reply{404, 404, ""}},
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
		"draining":           {"/api/v1/pods", func(g *gateway) { g.drain() }, nil, nil, reply{200, 200, "drain"}},
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
					g.access.set(func(*fakeAuth) { test.set(g) })
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
					f := g.stream(path, headers...).ends()
					if f.String() != "goodbye "+test.want.reason {
						t.Errorf("GET %s: %q", path, f.raw)
					}
					if f.id != position {
						t.Errorf("the client's position does not come back: %q", f.raw)
					}
					byQuery := g.stream(path + map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "lastEventId=" + position)
					if f := byQuery.ends(); f.id != position {
						t.Errorf("the position in the query does not come back: %q", f.raw)
					}
				}
			}, opts...)
		})
	}
}

// ends reads up to the end, before which only the reason may be told for which nothing is.
func (s *events) ends() frame {
	s.t.Helper()
	for {
		if f := s.next(); !strings.HasSuffix(f.event, "stale") {
			return f
		}
	}
}

// TestNothingCanBeInjectedThroughAPosition: the client's own position comes back in goodbye, but only if it is one.
func TestNothingCanBeInjectedThroughAPosition(t *testing.T) {
	g := newGateway(t)
	g.access.set(func(a *fakeAuth) { a.down = true })
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

// TestWhoMayNotSeeAKindDoesNotLearnWhetherItExists, nor has the cluster asked for what they may not
// read: its discovery.
func TestWhoMayNotSeeAKindDoesNotLearnWhetherItExists(t *testing.T) {
	g := newGateway(t)
	g.access.set(func(a *fakeAuth) { a.strangers = []string{"alice"} })
	g.access.set(func(a *fakeAuth) { a.decide = func(auth.Identity, auth.Request) (bool, error) { return false, nil } })
	for _, path := range []string{"/api/v1/pods", "/api/v1/gadgets", "/apis/none.example.org/v1/things", "/api/v1/bindings", "/api/v1/namespaces/a/pods/web"} {
		if a := g.get(path); a.code != 403 || !strings.Contains(a.status(t).Message, `is forbidden: User "alice" cannot`) {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	if served := g.api.Served("discovery"); served != 0 {
		t.Errorf("the cluster was asked %d times", served)
	}
	g.access.set(func(a *fakeAuth) { a.strangers = nil })
	for _, path := range []string{"/api/v1/pods", "/api/v1/gadgets"} { // as an API server answers those who may read it
		if a := g.get(path); a.code != 403 {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
}
