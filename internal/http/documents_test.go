package http

import (
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
)

// TestDocumentsAreTheAPIServers, for the default cluster and for a named one; to everyone who is signed in.
func TestDocumentsAreTheAPIServers(t *testing.T) {
	g := newGateway(t)
	for path, want := range map[string]string{
		"/version":                     `"gitVersion":"v1.36.3"`,
		"/version/":                    `"gitVersion":"v1.36.3"`,
		"/api":                         `"versions":["v1"]`,
		"/apis":                        `"name":"batch"`,
		"/api/v1":                      `"name":"pods"`,
		"/apis/batch/v1":               `"name":"jobs"`,
		"/apis/batch/v1/":              `"name":"jobs"`,
		"/openapi/v2":                  `{"swagger":"2.0"}`,
		"/openapi/v3":                  `"/openapi/v3/apis/batch/v1?hash=B1"`,
		"/openapi/v3/apis/batch/v1":    `{"openapi":"3.0.0"}`,
		"/clusters/default/version":    `"gitVersion":"v1.36.3"`,
		"/clusters/default/api":        `"versions":["v1"]`,
		"/clusters/default/api/v1":     `"name":"pods"`,
		"/clusters/default/openapi/v3": `"/clusters/default/openapi/v3/apis/batch/v1?hash=B1"`,
		"/clusters/default/openapi/v3/apis/batch/v1?hash=B1": `{"openapi":"3.0.0"}`,
	} {
		a := g.get(path)
		if a.code != 200 || !strings.Contains(a.body, want) || a.header.Get("Content-Type") != "application/json" || a.header.Get("Vary") != "Accept, Accept-Encoding, Authorization, Cookie" {
			t.Errorf("%s: %d %v %s", path, a.code, a.header, a.body)
		}
		tag := a.header.Get("ETag")
		if again := g.get(path, "If-None-Match: "+tag+", \"other\""); tag == "" || again.code != 304 || again.body != "" || again.header.Get("ETag") != tag {
			t.Errorf("%s: %q, then %d %v %s", path, tag, again.code, again.header, again.body)
		}
		if again := g.get(path, `If-None-Match: "other"`); again.code != 200 {
			t.Errorf("%s: %d", path, again.code)
		}
		cached := a.header.Get("Cache-Control")
		if want := strings.Contains(path, "?hash"); want != strings.Contains(cached, "immutable") || strings.Contains(cached, "public") {
			t.Errorf("%s: Cache-Control: %s", path, cached)
		}
		if a := g.get(path, "Authorization: "); a.code != 401 {
			t.Errorf("%s: a stranger is told: %d", path, a.code)
		}
		if a := g.request("POST", path); a.code != 405 {
			t.Errorf("%s: %d", path, a.code)
		}
	}
	if g.get("/openapi/v3").header.Get("ETag") == g.get("/clusters/default/openapi/v3").header.Get("ETag") {
		t.Error("documents of different content have one tag")
	}
	for _, path := range []string{"/api/v2", "/api//", "/api//v1", "/apis/none", "/apis/batch/v9", "/apis/batch/v1/jobs/x/y/z/a", "/openapi", "/openapi/v1", "/openapi/v2/x",
		"/openapi/v3/apis/none/v1", "/openapi/v3/", "/openapi/v3/../../api/v1/secrets", "/openapi/v3/apis/secret/v1", "/version/x", "/clusters/none/api", "/clusters/none/version"} {
		if a := g.get(path); path != "/openapi/v3/" && (a.code != 404 || a.status(t).Reason != "NotFound") {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
}

// TestWhatIsMadeUpCostsTheAPIServerNothing: only what a document names is asked for.
func TestWhatIsMadeUpCostsTheAPIServerNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.get("/openapi/v3")
		before := g.api.Served("documents")
		for range 100 {
			g.get("/openapi/v3/apis/none/v1")
		}
		if n := g.api.Served("documents"); n != before {
			t.Errorf("the API server was asked %d times", n-before)
		}
	})
}

func TestDocumentsHaveForms(t *testing.T) {
	g := newGateway(t, before(func(api *apitest.API) { api.Old = true }))
	for _, c := range []struct {
		path, accept, contentType string
		code                      int
	}{
		{"/api", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", "application/json", 200}, // an old API server has the old form
		{"/api", "application/vnd.kubernetes.protobuf, */*", "application/json", 200},
		{"/api", "application/vnd.kubernetes.protobuf", "", 406},
		{"/api", "application/json;as=Table;g=meta.k8s.io;v=v1", "", 406},
		{"/apis/batch/v1", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "", 406},
		{"/api", "text/event-stream", "", 406},
		{"/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", 200},
		{"/openapi/v2", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", 200},
		{"/openapi/v3/apis/batch/v1", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf", 200},
		{"/openapi/v3/apis/batch/v1", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "", 406},
		{"/version", "application/yaml", "", 406},
	} {
		a := g.get(c.path, "Accept: "+c.accept)
		if a.code != c.code || c.code == 200 && a.header.Get("Content-Type") != c.contentType {
			t.Errorf("%s as %s: %d %q %q", c.path, c.accept, a.code, a.header.Get("Content-Type"), a.body)
		}
		if a.code == 406 && a.status(t).Reason != "NotAcceptable" {
			t.Errorf("%s", a.body)
		}
	}
}

// TestDocumentsAreServedWhileTheClusterIsAway, once they are known.
func TestDocumentsAreServedWhileTheClusterIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		want := g.get("/api/v1").body
		g.api.Hang("")
		pass(time.Minute)
		if a := g.get("/api/v1"); a.code != 200 || a.body != want {
			t.Errorf("%d %s", a.code, a.body)
		}
		g.api.Fail("", 500)
		pass(time.Minute)
		if a := g.get("/version"); a.code != 503 || a.header.Get("Retry-After") == "" {
			t.Errorf("%d %s", a.code, a.body)
		}
	})
}
