package http

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
)

// exchange sends a request as it stands, and reads one answer.
func (g *gateway) exchange(request string) (answer, error) {
	g.t.Helper()
	conn, r := g.raw("")
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, request) }() // who is refused is not heard to the end
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body)}, err
}

func lines(request string, headers ...string) string {
	return request + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\n" + strings.Join(headers, "\r\n") + strings.Repeat("\r\n", min(1, len(headers))) + "\r\n"
}

// TestWhatIsTooLargeIsRefusedInWords: with the status that says what was too large, as a Status where kubectl asks.
func TestWhatIsTooLargeIsRefusedInWords(t *testing.T) {
	t.Parallel()
	// net/http keeps a connection that it closes before it was read to the end for half a second more.
	t.Cleanup(func() { time.Sleep(600 * time.Millisecond) })
	g := newGateway(t, sealed)
	long := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int, part string) string { return strings.TrimSuffix(strings.Repeat(part+",", n), ",") }
	post := func(size int) []string {
		return []string{"Content-Type: application/json", fmt.Sprintf("Content-Length: %d", size)}
	}
	for name, test := range map[string]struct {
		request string
		code    int
		says    string
	}{
		"an address that fits":      {lines("GET /api/v1/pods?search=" + long(maxAddress-100)), 200, "PodList"},
		"an address that does not":  {lines("GET /api/v1/pods?search=" + long(maxAddress)), 414, "the address, with its query, is larger than the 32768 bytes"},
		"a path that does not":      {lines("GET /api/v1/namespaces/" + long(maxAddress)), 414, "the address"},
		"a header that fits":        {lines("GET /api/v1/pods", "X-Other: "+long(maxHeader-200)), 200, "PodList"},
		"a header that does not":    {lines("GET /api/v1/pods", "X-Other: "+long(maxHeader)), 431, "the request's header is larger than the 32768 bytes"},
		"many headers":              {lines("GET /api/v1/pods", strings.Split(many(2000, "X-Other: some 20 bytes"), ",")...), 431, "the request's header"},
		"a cookie":                  {lines("GET /api/v1/pods", "Cookie: a="+long(maxHeader)), 431, "the request's header"},
		"a token":                   {strings.Replace(lines("GET /api/v1/pods"), "alice", long(maxHeader), 1), 431, "the request's header"},
		"a header beyond all":       {lines("GET /api/v1/pods", "X-Other: "+long(1<<20)), 431, ""},
		"a line beyond all":         {lines("GET /" + long(1<<20)), 431, ""},
		"requirements on labels":    {lines("GET /api/v1/pods?labelSelector=" + many(65, "a")), 400, "labelSelector: 65 requirements are more than the 64"},
		"as many as may be":         {lines("GET /api/v1/pods?labelSelector=" + many(64, "a")), 200, "PodList"},
		"values of a label":         {lines("GET /api/v1/pods?labelSelector=" + escape("a in ("+numbers(1001)+")")), 400, "more than the 1000 values"},
		"requirements on fields":    {lines("GET /api/v1/pods?fieldSelector=" + many(65, "a=b")), 400, "fieldSelector: 65 requirements are more than the 64"},
		"keys of a path":            {lines("GET /api/v1/pods?countBy=a" + strings.Repeat(".a", 64)), 400, "a path of 65 keys"},
		"paths to sort by":          {lines("GET /api/v1/pods?sort=" + many(9, "a")), 400, "9 paths are more than 8"},
		"fields":                    {lines("GET /api/v1/pods?fields=" + many(65, "a")), 400, "65 paths are more than 64"},
		"kinds to ask about":        {lines("GET /auth/me?kinds=" + many(51, "pods")), 400, "51 kinds are asked about; allowed: 50"},
		"a body that is said to be": {lines("POST /auth/ticket", post(maxBody+1)...) + long(maxBody+1), 413, "the request's body is larger than the 65536 bytes"},
		"a body in chunks":          {lines("POST /auth/ticket", "Transfer-Encoding: chunked") + strings.Repeat("1000\r\n"+long(4096)+"\r\n", 20) + "0\r\n\r\n", 413, "the request's body is larger"},
		"a body nobody asked for":   {lines("GET /api/v1/pods", post(1<<20)...), 200, "PodList"},
		"what only reads is sent":   {lines("POST /api/v1/namespaces/a/pods", post(1<<20)...), 405, "the gateway only reads"},
		"a path to give a ticket":   {lines("POST /auth/ticket", post(9020)...) + `{"path":"/` + long(9008) + `"}`, 400, "path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := g.exchange(test.request)
			if err != nil || a.code != test.code || !strings.Contains(a.body, test.says) {
				t.Fatalf("%v: %d %.300s", err, a.code, a.body)
			}
			switch {
			case a.code < 400 || test.says == "":
			case strings.Contains(test.request, " /api"):
				if s := a.status(t); s.Reason == "" || len(s.Message) > 300 {
					t.Errorf("%s", a.body)
				}
			case a.header.Get("Content-Type") != "application/problem+json":
				t.Errorf("%v %s", a.header, a.body)
			}
		})
	}
	t.Run("on a stream", func(t *testing.T) {
		t.Parallel()
		watches := func(n int) (query string) {
			for i := range n {
				query += fmt.Sprintf("&w%d=/api/v1/pods", i)
			}
			return query[1:]
		}
		const accept = "Accept: text/event-stream"
		for path, says := range map[string]string{
			"/stream?" + watches(33):                                        "33 watches are more than the 32",
			"/stream?a=/api/v1/pods&labelSelector=" + many(65, "a"):         "65 requirements",
			"/stream?a=/api/v1/pods%3FfieldSelector%3D" + many(65, "a%3Db"): "65 requirements",
			"/api/v1/pods?fields=" + many(65, "a"):                          "65 paths are more than 64",
			"/stream?" + long(300) + "=/api/v1/pods":                        "",
		} {
			if a, err := g.exchange(lines("GET "+path, accept)); err != nil || a.code != 400 || !strings.Contains(a.body, says) {
				t.Errorf("%.60s: %v %d %.300s", path, err, a.code, a.body)
			}
		}
		// A position is never a mistake that ends an EventSource.
		g.stream("/api/v1/pods", "Last-Event-ID: "+systemEpoch+strings.Repeat(".a-1", 4000)).expect("reset unreadable")
		s := g.stream("/stream?" + watches(32))
		s.until("w9.synced")
	})
}

func numbers(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return strings.Join(all, ",")
}

// TestWhoSendsByDropsIsNotWaitedFor (slow loris): neither for a header nor for a body, wherever it
// stops; and who sends nothing between requests is not kept for long.
func TestWhoSendsByDropsIsNotWaitedFor(t *testing.T) {
	const request = "GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\n"
	for name, test := range map[string]struct {
		begin  string
		drops  string // which follow, a byte every second
		within time.Duration
		code   int // of the one answer; 0: none
	}{
		"silence":                 {"", "", headerTimeout, 0},
		"half a line":             {"GET /api/v1", "/pods?search=" + strings.Repeat("a", 1000), headerTimeout, 400},
		"a header without end":    {request, strings.Repeat("X: y\r\n", 1000), headerTimeout, 0},
		"a body that never comes": {"POST /auth/ticket HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nContent-Length: 100\r\n\r\n", "", bodyTimeout, 408},
		"a body by drops":         {"POST /auth/ticket HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nContent-Length: 100\r\n\r\n{", strings.Repeat(" ", 98), bodyTimeout, 408},
		"a body nobody reads":     {"POST /auth/logout HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", strings.Repeat(" ", 98), bodyTimeout, 0},
		"nothing after an answer": {request + "\r\n", "", idleTimeout, 200},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *gateway) {
				conn, r := g.raw(test.begin)
				began := time.Now()
				var sending sync.WaitGroup
				defer sending.Wait()
				defer conn.Close()
				sending.Go(func() {
					for i := range len(test.drops) {
						pass(time.Second)
						if _, err := conn.Write([]byte(test.drops[i : i+1])); err != nil {
							return
						}
					}
				})
				code := 0
				if response, err := http.ReadResponse(r, nil); err == nil {
					code = response.StatusCode
					_, _ = io.Copy(io.Discard, response.Body) // how it ends is seen below
				}
				if _, err := io.Copy(io.Discard, r); err != nil && !strings.Contains(err.Error(), "closed pipe") {
					t.Error(err)
				}
				if took := time.Since(began); code != test.code || took > test.within+2*time.Second {
					t.Errorf("%d, and it was cut after %v, not %v", code, took, test.within)
				}
			}, sealed)
		})
	}
}

// A client that reads nothing is not waited for, whatever it asked for, and however small the answer is.
func TestWhoReadsNothingIsNotWaitedFor(t *testing.T) {
	portal := fstest.MapFS{"index.html": {Data: []byte("<!doctype html>")}, "assets/large.js": {Data: make([]byte, 1<<20)}}
	for _, request := range []string{
		"GET /", "GET /assets/large.js", "HEAD /assets/large.js", "GET /none", "GET /openapi.yaml", "GET /auth/me", "GET /clusters", "OPTIONS /api/v1/pods",
		"POST /api/v1/pods", "GET /api/v1/pods", "GET /api/v1/namespaces/team-a/pods/web", "GET /api/v1/namespaces/team-a/pods/none", "GET /api", "POST /auth/logout",
		"GET /api/v1/pods?countBy=metadata.name", "GET /api/v1/pods?search=" + strings.Repeat("x", maxAddress),
	} {
		t.Run(request[:min(len(request), 40)], func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *gateway) {
				g.api.Put("pods", "team-a/web")
				began := time.Now()
				conn, _ := g.raw("")
				defer conn.Close()
				var sending sync.WaitGroup
				sending.Go(func() { _, _ = io.WriteString(conn, lines(request)) })
				sending.Wait()
				g.eventually("the connection is closed", func() bool {
					g.server.connections.mu.Lock()
					defer g.server.connections.mu.Unlock()
					return len(g.server.connections.open) == 0
				})
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("after %v", took)
				}
			}, sealed, options(func(o *Options) { o.Portal = portal }))
		})
	}
}

var anyRefused = regexp.MustCompile(`kubecast_connections_refused_total\{limit="\w+"\} [1-9]`)

// TestConnectionsAreBounded: those that are too many are closed at once, so that the gateway keeps
// what it needs for itself; who is there stays, and what a trusted proxy brings counts in the total
// only.
func TestConnectionsAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		limits  ConnectionLimits
		trusted string
		stream  bool // one of the connections is a stream
		fit     int
	}{
		"of a peer":            {limits: ConnectionLimits{PerPeer: 3}, fit: 3},
		"of a trusted proxy":   {limits: ConnectionLimits{PerPeer: 3}, trusted: "127.0.0.0/8", fit: 10},
		"in total":             {limits: ConnectionLimits{Total: 4}, trusted: "127.0.0.0/8", fit: 4},
		"in total, of streams": {limits: ConnectionLimits{Total: 4}, trusted: "127.0.0.0/8", stream: true, fit: 3},
		"without limits":       {fit: 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, options(func(o *Options) {
				o.Limits.Connections = test.limits
				if test.trusted != "" {
					o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix(test.trusted)}
				}
			}))
			if test.stream {
				_, s := g.rawStream("/api/v1/pods")
				s.expect("synced")
			}
			type client struct {
				close func() error
				r     *bufio.Reader
				send  func() error
			}
			var clients []client
			get := func(c client) bool {
				if c.send() != nil {
					return false
				}
				response, err := http.ReadResponse(c.r, nil)
				if err != nil {
					return false
				}
				_, err = io.Copy(io.Discard, response.Body)
				return err == nil && response.StatusCode == 200
			}
			fit := 0
			for range 10 {
				conn, r := g.raw("")
				c := client{conn.Close, r, func() error { _, err := io.WriteString(conn, lines("GET /api/v1/pods")); return err }}
				if get(c) {
					fit++
				}
				clients = append(clients, c)
			}
			if fit != test.fit {
				t.Fatalf("%d connections are served, not %d", fit, test.fit)
			}
			if !get(clients[0]) {
				t.Error("who was there is sent away")
			}
			metrics := g.ops("/metrics").body
			if refused := anyRefused.MatchString(metrics); refused != (fit < 10) {
				t.Errorf("%d fit: %s", fit, metrics)
			}
			open := fit
			if test.stream {
				open++
			}
			if want := fmt.Sprintf("\nkubecast_connections %d\n", open); !strings.Contains(metrics, want) {
				t.Errorf("without %q: %s", want, metrics)
			}
			if told := strings.Count(g.log.String(), "connections are refused"); told != map[bool]int{true: 1, false: 0}[fit < 10] {
				t.Errorf("it is said %d times", told)
			}
			for _, c := range clients {
				if err := c.close(); err != nil {
					t.Error(err)
				}
			}
			g.eventually("there is room again", func() bool {
				conn, r := g.raw(lines("GET /api/v1/pods"))
				defer conn.Close()
				_, err := http.ReadResponse(r, nil)
				return err == nil
			})
		})
	}
}
