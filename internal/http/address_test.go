package http

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/http/request"
)

// What a stranger writes into X-Forwarded-For counts for nothing; what trusted proxies wrote, for as far as they did.
func TestOnlyTrustedProxiesSayWhereRequestsComeFrom(t *testing.T) {
	s := &Server{opts: Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}}
	for name, c := range map[string]struct {
		remote    string
		forwarded []string
		want      string
	}{
		"direct":                      {"203.0.113.9:1", nil, "203.0.113.9"},
		"a stranger's word":           {"203.0.113.9:1", []string{"198.51.100.1"}, "203.0.113.9"},
		"a proxy":                     {"10.0.0.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		"a proxy over IPv6":           {"[fd00::1]:1", []string{"2001:db8::1"}, "2001:db8::1"},
		"a proxy as IPv4 in IPv6":     {"[::ffff:10.0.0.1]:1", []string{"198.51.100.1"}, "198.51.100.1"},
		"a stranger's word before":    {"10.0.0.1:1", []string{"192.0.2.1, 198.51.100.1"}, "198.51.100.1"},
		"several proxies":             {"10.0.0.1:1", []string{"192.0.2.1, 198.51.100.1, 10.0.0.3, 10.0.0.2"}, "198.51.100.1"},
		"several headers":             {"10.0.0.1:1", []string{"192.0.2.1", "198.51.100.1", "10.0.0.2"}, "198.51.100.1"},
		"from within":                 {"10.0.0.1:1", []string{"10.0.0.7"}, "10.0.0.7"},
		"a proxy that says nothing":   {"10.0.0.1:1", nil, "10.0.0.1"},
		"a proxy that says nonsense":  {"10.0.0.1:1", []string{"unknown"}, "10.0.0.1"},
		"nonsense before":             {"10.0.0.1:1", []string{"<script>, 198.51.100.1"}, "198.51.100.1"},
		"nonsense before a proxy":     {"10.0.0.1:1", []string{"<script>, 10.0.0.2"}, "10.0.0.2"},
		"empty":                       {"10.0.0.1:1", []string{""}, "10.0.0.1"},
		"an address of no known form": {"pipe", []string{"198.51.100.1"}, "pipe"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.remote
		if c.forwarded != nil {
			r.Header["X-Forwarded-For"] = c.forwarded
		}
		got := ""
		s.trustProxies(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = request.Address(r) })).ServeHTTP(nil, r)
		if got != c.want {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
	}
}

// A client that tries one token after the other is told to wait. One with a good token, from the same address, is not.
func TestTooManyFailuresToSignInAreToldToWait(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		from := func(address, token string) answer {
			return g.get("/clusters", "X-Forwarded-For: "+address, "Authorization: Bearer "+token)
		}
		for range maxFailures {
			if a := from("198.51.100.1", "forged"); a.code != 401 {
				t.Fatalf("%d %s", a.code, a.body)
			}
		}
		a := from("198.51.100.1", "forged")
		if a.code != 429 || a.header.Get("Retry-After") == "" || a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("WWW-Authenticate") != "" {
			t.Errorf("%d %v %s", a.code, a.header, a.body)
		}
		if a := from("198.51.100.1", "alice"); a.code != 200 {
			t.Errorf("a good token: %d", a.code)
		}
		if a := from("198.51.100.2", "forged"); a.code != 401 {
			t.Errorf("another address: %d", a.code)
		}
		if a := g.get("/clusters", "X-Forwarded-For: 198.51.100.1", "Authorization: "); a.code != 401 {
			t.Errorf("without a token: %d", a.code)
		}
		if a := g.get("/api/v1/pods", "X-Forwarded-For: 198.51.100.1", "Authorization: Bearer forged", "Accept: text/event-stream"); a.code != 401 {
			t.Errorf("a stream: %d", a.code)
		}
		if n := strings.Count(g.log.String(), "too many failures to sign in"); n != 1 {
			t.Errorf("told %d times", n)
		}
		pass(time.Minute)
		if a := from("198.51.100.1", "forged"); a.code != 401 {
			t.Errorf("a minute later: %d", a.code)
		}
	})
}
