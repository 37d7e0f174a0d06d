package http

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/http/request"
)

var privateNetworks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}

// What a stranger writes into X-Forwarded-For counts for nothing; what trusted proxies wrote, for as far as they did.
func TestOnlyTrustedProxiesSayWhereRequestsComeFrom(t *testing.T) {
	trusted := newProxies(privateNetworks, slog.New(slog.DiscardHandler))
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
		"a port":                      {"10.0.0.1:1", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		"a port of a proxy":           {"10.0.0.1:1", []string{"198.51.100.1:4711, 10.0.0.2:80"}, "198.51.100.1"},
		"a hidden port":               {"10.0.0.1:1", []string{"198.51.100.1:_gazonk"}, "198.51.100.1"},
		"IPv6":                        {"10.0.0.1:1", []string{"2001:db8::1:443"}, "2001:db8::1:443"},
		"IPv6 in brackets":            {"10.0.0.1:1", []string{"[2001:db8::1]"}, "2001:db8::1"},
		"IPv6 with a port":            {"10.0.0.1:1", []string{"[2001:db8::1]:4711"}, "2001:db8::1"},
		"IPv6 of a proxy with a port": {"10.0.0.1:1", []string{"[2001:db8::1]:4711 ,\t[fd00::2]:80 "}, "2001:db8::1"},
		"in quotes":                   {"10.0.0.1:1", []string{`"[2001:db8::1]:4711"`}, "2001:db8::1"},
		"IPv4 in quotes":              {"10.0.0.1:1", []string{`"198.51.100.1:4711"`}, "198.51.100.1"},
		"IPv4 in IPv6, with a port":   {"10.0.0.1:1", []string{"[::ffff:198.51.100.1]:4711"}, "198.51.100.1"},
		"a zone":                      {"10.0.0.1:1", []string{"fe80::1%eth0"}, "fe80::1"},
		"a zone and a port":           {"10.0.0.1:1", []string{"[fe80::1%eth0]:80"}, "fe80::1"},
		"hidden":                      {"10.0.0.1:1", []string{"198.51.100.1, _hidden"}, "10.0.0.1"},
		"hidden before a proxy":       {"10.0.0.1:1", []string{"198.51.100.1, unknown, 10.0.0.2"}, "10.0.0.2"},
		"nothing between commas":      {"10.0.0.1:1", []string{"198.51.100.1,"}, "10.0.0.1"},
		"no port":                     {"10.0.0.1:1", []string{"198.51.100.1:http"}, "10.0.0.1"},
		"a port that is too large":    {"10.0.0.1:1", []string{"198.51.100.1:65536"}, "10.0.0.1"},
		"IPv4 in brackets":            {"10.0.0.1:1", []string{"[198.51.100.1]:80"}, "10.0.0.1"},
		"brackets that do not close":  {"10.0.0.1:1", []string{"[2001:db8::1"}, "10.0.0.1"},
		"quotes that do not close":    {"10.0.0.1:1", []string{`"198.51.100.1`}, "10.0.0.1"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.remote
		if c.forwarded != nil {
			r.Header["X-Forwarded-For"] = c.forwarded
		}
		got := ""
		trusted.trust(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = request.Address(r) })).ServeHTTP(nil, r)
		if got != c.want {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
	}
}

// A proxy whose header cannot be read makes all its clients one. Its operator learns of that, once
// and not for each request.
func TestAHopThatCannotBeReadIsLoggedOnceOfEachProxy(t *testing.T) {
	var log bytes.Buffer
	trusted := newProxies(privateNetworks, slog.New(slog.NewTextHandler(&log, nil)))
	handler := trusted.trust(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	send := func(peer, forwarded string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = peer
		r.Header.Set("X-Forwarded-For", forwarded)
		handler.ServeHTTP(nil, r)
	}
	for range 3 {
		send("10.0.0.1:1", "_hidden")
		send("10.0.0.2:1", strings.Repeat("x", 5000)+"\nlevel=ERROR")
		send("10.0.0.3:1", "<script>, 198.51.100.1") // which the proxy has not written
		send("203.0.113.9:1", "unknown")             // who is believed nothing
	}
	for n := range 2 * unreadableMost {
		send(fmt.Sprintf("10.1.%d.1:1", n), "unknown")
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != unreadableMost || !strings.Contains(lines[0], "proxy=10.0.0.1 value=_hidden") || !strings.Contains(lines[1], "proxy=10.0.0.2") || len(lines[1]) > 400 {
		t.Errorf("%d lines:\n%s\n%s", len(lines), lines[0], lines[1])
	}
}

// Whatever a client writes before what its proxy writes, the client counts as the address that the proxy saw.
func FuzzForwardedFor(f *testing.F) {
	for _, seed := range []string{"", ",", "1.2.3.4:5", `"[2001:db8::1%z]:1"`, "_x, unknown", "[", `"`, "::1:80", "10.0.0.1:_", "[::ffff:10.0.0.1]"} {
		f.Add(seed)
	}
	trusted := newProxies(privateNetworks, slog.New(slog.DiscardHandler))
	peer := netip.MustParseAddr("10.0.0.1")
	f.Fuzz(func(t *testing.T, text string) {
		if client := trusted.clientOf(peer, text); client != "" {
			address, err := netip.ParseAddr(client)
			if err != nil || address.Zone() != "" || address.Is4In6() || address.String() != client {
				t.Errorf("%q became %q", text, client)
			}
		}
		for _, seen := range []string{"198.51.100.1", "198.51.100.1:80", `"198.51.100.1:80"`, "[::ffff:198.51.100.1]:1"} {
			if client := trusted.clientOf(peer, text+","+seen+",10.0.0.2:9"); client != "198.51.100.1" {
				t.Errorf("%q before %s: %q", text, seen, client)
			}
		}
	})
}

// Ten browsers behind a proxy that writes their ports are ten, and one that opens ten connections is one.
func TestPortsBehindAddressesMakeNoClients(t *testing.T) {
	for name, c := range map[string]struct {
		hop    func(n int) string
		served int
	}{
		"many":           {func(n int) string { return fmt.Sprintf("198.51.100.%d:%d", n, 40000+n) }, 6},
		"many over IPv6": {func(n int) string { return fmt.Sprintf("[2001:db8::%d]:%d", n, 40000+n) }, 6},
		"one":            {func(n int) string { return fmt.Sprintf("198.51.100.1:%d", 40000+n) }, 2},
		"one over IPv6":  {func(n int) string { return fmt.Sprintf("[2001:db8::1]:%d", 40000+n) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *gateway) {
				served := 0
				for n := range 6 {
					if g.stream("/api/v1/pods", "X-Forwarded-For: "+c.hop(n+1)).next().event != "goodbye" {
						served++
					}
				}
				if served != c.served {
					t.Errorf("%d of 6 streams are served, want %d", served, c.served)
				}
			}, options(func(o *Options) { o.Limits.PerAddress = 2 }))
		})
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
