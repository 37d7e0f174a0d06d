package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/e2e/harness"
)

// A browser signs in once, and every replica knows its session, even after a restart. A ticket opens one stream.
// Neither shows more than the token did.
func TestBrowsersSessionIsKnownToEveryReplica(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	key := filepath.Join(t.TempDir(), "cookie.key")
	if err := os.WriteFile(key, []byte("AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	options := gatewayOptions{auth: "  cookieKeyFile: " + key + "\n", listen: harness.Address(t)}
	one := s.startGateway(t, options)
	options.listen = ""
	two, stranger := s.startGateway(t, options), s.startGateway(t, gatewayOptions{})
	for _, g := range []*gateway{one, two, stranger} {
		g.waitReady(t)
	}
	token := s.viewer(t)
	a, err := fetch(http.MethodPost, one.url+"/auth/session", bearer(token))
	if err != nil || a.code != http.StatusOK {
		t.Fatalf("%v: %d %s", err, a.code, a.body)
	}
	cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	as := func(g *gateway, path string, headers ...string) answer {
		t.Helper()
		header := http.Header{"Cookie": {cookie}}
		for i := 0; i < len(headers); i += 2 {
			header.Set(headers[i], headers[i+1])
		}
		a, err := fetch(http.MethodGet, g.url+path, header)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for name, g := range map[string]*gateway{"the one": one, "the other": two} {
		if a := as(g, "/auth/me?kinds=pods"); a.code != http.StatusOK || !strings.Contains(a.body, `"resource":"pods","all":true`) {
			t.Errorf("%s: %d %s", name, a.code, a.body)
		}
		if a := as(g, "/api/v1/secrets"); a.code != http.StatusForbidden {
			t.Errorf("%s shows what the token does not: %d", name, a.code)
		}
		if a := as(g, "/api/v1/pods?limit=1", "Origin", "https://evil.example"); a.code != http.StatusForbidden {
			t.Errorf("%s, for another's page: %d", name, a.code)
		}
	}
	if a := as(stranger, "/auth/me"); a.code != http.StatusUnauthorized {
		t.Errorf("a gateway with another key: %d", a.code)
	}
	openAs(t, two, "", "/api/v1/pods", http.Header{"Cookie": {cookie}}).find(t, "synced")
	one.kill()
	one.restart(t)
	one.waitReady(t)
	if a := as(one, "/api/v1/pods?limit=1"); a.code != http.StatusOK {
		t.Errorf("after a restart: %d %s", a.code, a.body)
	}

	ticket := func(path string) string {
		t.Helper()
		request, err := http.NewRequest(http.MethodPost, one.url+"/auth/ticket", strings.NewReader(`{"path":"`+path+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Cookie", cookie)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var got struct{ Ticket string }
		if err := json.NewDecoder(response.Body).Decode(&got); err != nil || got.Ticket == "" {
			t.Fatalf("%d %v", response.StatusCode, err)
		}
		return got.Ticket
	}
	const path = "/stream?pods=/api/v1/pods"
	first := ticket(path)
	openAs(t, two, "", path+"&ticket="+first, nil).find(t, "pods.synced") // at another replica than the one that gave it
	if a, err := fetch(http.MethodGet, two.url+path+"&ticket="+first, nil); err != nil || a.code != http.StatusUnauthorized {
		t.Errorf("a second time: %v, %d", err, a.code)
	}
	if a, err := fetch(http.MethodGet, two.url+"/api/v1/pods?ticket="+ticket(path), nil); err != nil || a.code != http.StatusUnauthorized {
		t.Errorf("for another path: %v, %d", err, a.code)
	}
	for _, g := range []*gateway{one, two} {
		for name, secret := range map[string]string{"cookie": strings.TrimPrefix(cookie, "__Host-kubecast="), "ticket": first, "token": token} {
			if strings.Contains(g.log(), secret) {
				t.Errorf("a %s is in the log", name)
			}
			for _, page := range []string{"/metrics", "/readyz", "/debug/streams", "/debug/kinds"} {
				if a, err := fetch(http.MethodGet, g.ops+page, nil); err != nil || strings.Contains(a.body, secret) {
					t.Errorf("%v: a %s is on %s", err, name, page)
				}
			}
		}
	}
}
