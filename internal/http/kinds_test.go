package http

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/http/rest"
)

// serving lets a gateway serve some kinds only, and at most so many at once.
func serving(atMost int, denied ...string) option {
	return func(g *gateway, _ *Options) {
		g.atMost = atMost
		g.serves = func(group, resource string) bool {
			for _, kind := range denied {
				if kind == strings.TrimSuffix(resource+"."+group, ".") {
					return false
				}
			}
			return true
		}
	}
}

// TestDeniedKindIsAsIfItDidNotExist: word by word, in each form, for who may see it at the API
// server and for who may not; nor is it in discovery, nor does the API server notice.
func TestDeniedKindIsAsIfItDidNotExist(t *testing.T) {
	g := newGateway(t, serving(0, "secrets", "jobs.batch"))
	g.api.Put("secrets", "a/password")
	g.api.Put("jobs", "a/train")
	g.get("/api/v1/gadgets") // so that what exists is known
	for denied, unknown := range map[string]string{"/api/v1/%sX": "secrets", "/apis/batch/v1/%sX": "jobs"} {
		for _, path := range []string{"", "/none", "?watch=1", "?limit=1"} {
			for _, accept := range []string{"application/json", "text/event-stream", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
				if path == "/none" {
					path = "/password"
				}
				of := func(resource string) string {
					a := g.get(strings.Replace(fmt.Sprintf(denied, resource), "X", path, 1), "Accept: "+accept)
					return fmt.Sprint(a.code, " ", a.header.Get("Content-Type"), " ", strings.ReplaceAll(a.body, resource, "RESOURCE"))
				}
				if have, want := of(unknown), of("gadgets"); have != want || !strings.HasPrefix(have, "404") {
					t.Errorf("%s %s: %s, not %s", denied, path, have, want)
				}
			}
		}
	}
	if a := g.get("/stream?a=/api/v1/pods&b=/api/v1/secrets", "Accept: text/event-stream"); a.code != 404 {
		t.Errorf("%d %s", a.code, a.body)
	}
	for _, path := range []string{"/api/v1", "/apis/batch/v1", "/api", "/apis"} {
		for _, accept := range []string{rest.AsJSON, rest.AsDiscovery + "," + rest.AsJSON + ";q=0.5"} {
			a := g.get(path, "Accept: "+accept)
			for _, name := range []string{`"secrets"`, `"jobs"`} {
				if strings.Contains(a.body, name) {
					t.Errorf("%s (%s) tells %s: %s", path, accept, name, a.body)
				}
			}
			if path == "/api/v1" && !strings.Contains(a.body, `"pods"`) {
				t.Errorf("%s (%s): %s", path, accept, a.body)
			}
		}
	}
	var me rest.Me
	if err := json.Unmarshal([]byte(g.get("/auth/me?kinds=pods,secrets,jobs.batch").body), &me); err != nil {
		t.Fatal(err)
	}
	if w := me.Clusters[0].Watch; !w[0].All || w[1].All || w[2].All || len(w[1].Namespaces) > 0 || w[1].Unknown {
		t.Errorf("%+v", w)
	}
	if kinds := g.kinds.All(); len(kinds) != 1 { // pods, by the stream that was refused for the other watch
		t.Errorf("%d kinds are cached", len(kinds))
	}
}

// TestKindsThatAreTooManyAreRefusedAndHeal: 429, and for event streams goodbye limit, which an EventSource survives.
func TestKindsThatAreTooManyAreRefusedAndHeal(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		pods := g.stream("/api/v1/pods")
		pods.until("synced")
		s := g.stream("/api/v1/secrets")
		if f := s.end(); f[len(f)-1].field("reason") != "limit" {
			t.Errorf("%v", f)
		}
		for _, path := range []string{"/api/v1/secrets", "/api/v1/secrets?watch=1"} {
			if a := g.get(path); a.code != 429 || a.header.Get("Retry-After") == "" {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
		if a := g.get("/api/v1/secrets", "Authorization: Bearer bob"); a.code != 200 {
			t.Errorf("another user suffers: %d %s", a.code, a.body)
		}
		pods.close()
		g.eventually("the stream has ended", func() bool { return g.streams() == 0 })
		if a := g.get("/apis/batch/v1/jobs"); a.code != 200 { // in the place of what is idle
			t.Errorf("%d %s", a.code, a.body)
		}
	}, serving(2))
}
