package http

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
	clientrest "k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/auth/authtest"
)

const testBase = "/tools/kubecast"

// inEachWayBelow runs a test with gateways below testBase: one that was told so, one whose proxy takes it off and says
// so, and one that has both.
func inEachWayBelow(t *testing.T, test func(*testing.T, *gateway), opts ...option) {
	t.Helper()
	for name, way := range map[string]struct{ configured, taken bool }{"configured": {true, false}, "taken off": {false, true}, "both": {true, true}} {
		t.Run(name, func(t *testing.T) {
			own := opts
			if way.configured {
				own = append(own, options(func(o *Options) { o.BasePath = testBase }))
			}
			g := newGateway(t, own...)
			if way.taken {
				g.url = takingOff(t, g.url)
			}
			test(t, g)
		})
	}
}

// takingOff is a proxy that takes testBase off the path, as many do, and serves nothing else.
func takingOff(t *testing.T, gateway string) (address string) {
	t.Helper()
	target, err := url.Parse(gateway)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true}
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Set(forwardedPrefix, testBase)
	}}
	server := httptest.NewServer(http.StripPrefix(testBase, proxy))
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	return server.URL
}

func TestEverythingStandsBelowABasePath(t *testing.T) {
	inEachWayBelow(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "team-a/web")
		for path, want := range map[string]string{
			"/api/v1/pods": `"web"`, "/clusters/default/api/v1/namespaces/team-a/pods/web": `"web"`, "/clusters": `"default"`,
			"/openapi.yaml": "openapi: 3.1.0", "/": "<!doctype html>", "/assets/app-1234.js": "export {}", "/livez": "ok",
			"/openapi/v3":                  `"` + testBase + `/openapi/v3/apis/batch/v1?hash=B1"`,
			"/clusters/default/openapi/v3": `"` + testBase + `/clusters/default/openapi/v3/apis/batch/v1?hash=B1"`,
		} {
			if a := g.get(testBase + path); a.code != http.StatusOK || !strings.Contains(a.body, want) {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
		for path, want := range map[string]int{
			"/none": 404, "/assets/app-9999.js": 404, "/api/v1/pods/%2e%2e": 404, "/history/apis/batch/v1/jobs": 404,
		} {
			if a := g.get(testBase + path); a.code != want {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
		if a := g.get(testBase + "/index.html"); a.header.Get("Location") != "./" {
			t.Errorf("%d %v", a.code, a.header)
		}
		if a := g.request(http.MethodOptions, testBase+"/auth/ticket"); a.header.Get("Allow") != "POST, OPTIONS" {
			t.Errorf("%v", a.header)
		}
		s := g.stream(testBase + "/stream?pods=/api/v1/pods")
		s.expect("pods.added web", "pods.synced")
		g.api.Put("pods", "team-a/other")
		s.expect("pods.added other")
	}, options(func(o *Options) {
		o.Portal = fstest.MapFS{"index.html": {Data: []byte("<!doctype html>")}, "assets/app-1234.js": {Data: []byte("export {}")}}
	}))
}

func TestNothingStandsBesideABasePath(t *testing.T) {
	g := newGateway(t, options(func(o *Options) { o.BasePath = testBase }))
	for _, path := range []string{
		"/", "/api/v1/pods", "/livez", "/tools", "/tools/", "/tools/kubecastle/api/v1/pods", "/tools%2Fkubecast/api/v1/pods", "/TOOLS/kubecast/livez",
		"//tools/kubecast/livez", "/tools/./kubecast/livez", testBase + testBase + "/livez",
	} {
		a := g.get(path, "Accept: text/event-stream")
		if a.code != http.StatusNotFound || a.header.Get("X-Request-Id") == "" || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v %s", path, a.code, a.header, a.body)
		}
		if !strings.HasPrefix(path, testBase) && !strings.Contains(a.body, "this gateway stands below "+testBase+"/") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	if a := g.get(testBase + "?view=jobs"); a.code != http.StatusTemporaryRedirect || a.header.Get("Location") != testBase+"/?view=jobs" {
		t.Errorf("%d %v", a.code, a.header)
	}
	// A proxy that takes off something else than what is configured is not understood by chance.
	if a := g.get("/livez", forwardedPrefix+": /other"); a.code != http.StatusNotFound {
		t.Errorf("%d %s", a.code, a.body)
	}
}

func TestABadBasePathIsRefused(t *testing.T) {
	for _, bad := range []string{"/", "tools", "/tools/", "/../x", "/a b", `/a";b`} {
		if _, err := New(Options{BasePath: bad}); err == nil || !strings.Contains(err.Error(), "BasePath") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// What follows from the prefix is seen in a cookie's path.
func TestOnlyTrustedProxiesSayWhatTheyTookOff(t *testing.T) {
	g := newGateway(t, sealed, options(func(o *Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} }))
	stranger := newGateway(t, sealed, options(func(o *Options) { o.TrustedProxies = privateNetworks }))
	for _, c := range []struct {
		g            *gateway
		prefix, want string
	}{
		{g, "/tools/kubecast", "Path=/tools/kubecast/;"},
		{g, "/tools/kubecast/", "Path=/tools/kubecast/;"},
		{g, "/tools, /kubecast", "Path=/tools/kubecast/;"},
		{g, "/", "Path=/;"},
		{g, "tools", "Path=/;"},
		{g, "https://evil.example/tools", "Path=/;"},
		{g, "//evil.example", "Path=/;"},
		{g, "/tools; Domain=evil.example", "Path=/;"},
		{g, "/tools/../..", "Path=/;"},
		{g, "/" + strings.Repeat("a", 150) + ", /" + strings.Repeat("b", 150), "Path=/;"},
		{stranger, "/tools/kubecast", "Path=/;"},
	} {
		c.g.expiring()
		a := c.g.post("/auth/session", "", forwardedPrefix+": "+c.prefix)
		if cookie := a.header.Get("Set-Cookie"); !strings.Contains(cookie, c.want) || strings.Contains(cookie, "evil") ||
			strings.HasPrefix(cookie, "__Host-") != (c.want == "Path=/;") {
			t.Errorf("%s: %d %s", c.prefix, a.code, cookie)
		}
	}
	if said := g.log.String(); strings.Count(said, "X-Forwarded-Prefix that cannot be read") != 1 {
		t.Errorf("it is not logged once: %s", said)
	}
	if strings.Contains(stranger.log.String(), "X-Forwarded-Prefix") {
		t.Error("strangers write into the log")
	}
}

// A login, its session, its renewal and its end are the gateway's alone among what shares the host.
func TestLoginBelowAPathStaysThere(t *testing.T) {
	provider := authtest.New()
	provider.Redirect = "https://kubecast.example.org" + testBase + "/auth/callback"
	inEachWayBelow(t, func(t *testing.T, g *gateway) {
		b := g.browser()
		login := func(query string) answer { return b.visit(testBase + "/auth/login" + query) }
		for _, bad := range []string{testBase + "/auth/logout", testBase + "/../auth/", "/a/%2e%2e/b", "//evil.example/", "https://evil.example/"} {
			if a := login("?returnTo=" + escape(bad)); a.code != http.StatusBadRequest || !strings.Contains(a.body, `<a href="../">`) {
				t.Errorf("%s: %d %s", bad, a.code, a.body)
			}
		}
		for query, want := range map[string]string{
			"": testBase + "/", "?returnTo=" + escape(testBase+"/#jobs?ns=a"): testBase + "/#jobs?ns=a", "?returnTo=/portal/": "/portal/",
		} {
			callback, err := provider.SignIn(login(query).header.Get("Location"))
			if err != nil {
				t.Fatal(err)
			}
			a := b.visit(strings.TrimPrefix(callback, "https://kubecast.example.org"))
			if a.code != http.StatusSeeOther || a.header.Get("Location") != want {
				t.Fatalf("%q: %d %v %s", query, a.code, a.header, a.body)
			}
		}
		for name, c := range b.cookies {
			if want := map[string]string{"__Secure-kubecast": testBase + "/", renewalCookie: testBase + "/auth"}[name]; c.Path != want {
				t.Errorf("%s has path %q", name, c.Path)
			}
		}
		if len(b.cookies) != 2 {
			t.Errorf("%v", b.cookies)
		}
		if a := b.get(testBase + "/auth/me"); !strings.Contains(a.body, `"username":"jane"`) {
			t.Errorf("%d %s", a.code, a.body)
		}
		if a := b.post(testBase + "/auth/session"); a.code != http.StatusOK || !strings.Contains(a.body, `"renewable":true`) {
			t.Errorf("%d %s", a.code, a.body)
		}
		var end struct{ Location string }
		if a := b.post(testBase + "/auth/logout"); json.Unmarshal([]byte(a.body), &end) != nil || len(b.cookies) != 0 {
			t.Errorf("%d %s %v", a.code, a.body, b.cookies)
		}
		if at, err := url.Parse(end.Location); err != nil || at.Query().Get("post_logout_redirect_uri") != "https://kubecast.example.org"+testBase+"/" {
			t.Errorf("after the logout: %s", end.Location)
		}
		body := "logout_token=" + provider.LogoutToken(nil)
		if a := g.post(testBase+"/auth/backchannel-logout", body, "Authorization: ", "Content-Type: application/x-www-form-urlencoded"); a.code != http.StatusOK {
			t.Errorf("back-channel logout: %d %s", a.code, a.body)
		}
	}, withLogin(provider))
}

// A ticket is for a path as the gateway has it, wherever that stands.
func TestTicketsBelowAPath(t *testing.T) {
	inEachWayBelow(t, func(t *testing.T, g *gateway) {
		g.expiring()
		g.api.Put("pods", "a/web")
		a := g.post(testBase+"/auth/ticket", `{"path":"/stream?pods=/api/v1/pods"}`)
		var got struct{ Ticket string }
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.code != http.StatusOK {
			t.Fatalf("%d %s", a.code, a.body)
		}
		s := g.stream(testBase+"/stream?pods=/api/v1/pods&ticket="+got.Ticket, "Authorization: ")
		s.expect("pods.added web", "pods.synced")
	}, sealed)
}

// client-go takes its own base path off the addresses in an OpenAPI index, if it finds it there.
func TestClientGoReadsOpenAPIBelowAPath(t *testing.T) {
	inEachWayBelow(t, func(t *testing.T, g *gateway) {
		for _, cluster := range []string{"", "/clusters/default"} {
			config := &clientrest.Config{
				Host: g.url + testBase + cluster, BearerToken: "alice", Timeout: 10 * time.Second,
				ContentConfig: clientrest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
			}
			client, err := clientrest.UnversionedRESTClientForConfigAndClient(config, &http.Client{Transport: bearer{g.client.Transport}})
			if err != nil {
				t.Fatal(err)
			}
			paths, err := openapi.NewClient(client).Paths()
			if err != nil {
				t.Fatal(err)
			}
			group, ok := paths["apis/batch/v1"]
			if !ok {
				t.Fatalf("%v", paths)
			}
			if schema, err := group.Schema("application/json"); err != nil || string(schema) != `{"openapi":"3.0.0"}` {
				t.Errorf("%q: %s %v", cluster, schema, err)
			}
		}
	})
}

type bearer struct{ http.RoundTripper }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", fmt.Sprintf("Bearer %s", "alice"))
	return b.RoundTripper.RoundTrip(r)
}
