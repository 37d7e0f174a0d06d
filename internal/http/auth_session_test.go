package http

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sessions "github.com/kubecast/kubecast/internal/auth/session"
)

// sealed gives the gateway sessions and tickets, and an origin elsewhere that may use them.
func sealed(g *gateway, o *Options) {
	sealer, err := sessions.NewSealer(bytes.Repeat([]byte{1}, sessions.KeySize))
	if err != nil {
		panic(err)
	}
	g.sealer = sealer
	o.Sessions, o.Origins = sessions.NewSessions(sealer, o.Authenticator), []string{"https://portal.example.org"}
}

// expiring lets all tokens end in an hour.
func (g *gateway) expiring() {
	g.access.set(func(a *fakeAuth) { a.expires = time.Unix(time.Now().Add(time.Hour).Unix(), 0) })
}

func (g *gateway) post(path, body string, headers ...string) answer {
	g.t.Helper()
	return g.send(http.MethodPost, path, body, headers...)
}

func (g *gateway) send(method, path, body string, headers ...string) answer {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), g.patience)
	defer cancel()
	r := g.newRequest(ctx, method, path, headers)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	response, err := g.client.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	g.checkPublic(string(text))
	return answer{response.StatusCode, response.Header, string(text)}
}

// session signs alice in, and returns her browser's header.
func (g *gateway) session() (cookie string) {
	g.t.Helper()
	a := g.post("/auth/session", "")
	set := a.header.Get("Set-Cookie")
	value, attributes, _ := strings.Cut(set, "; ")
	if a.code != 200 || !strings.HasPrefix(value, "__Host-kubecast=") || !strings.Contains(a.body, `"username":"alice"`) || a.header.Get("Cache-Control") != "no-store" {
		g.t.Fatalf("%d %v %s", a.code, a.header, a.body)
	}
	for _, attribute := range []string{"Path=/", "HttpOnly", "Secure", "SameSite=Strict", "Max-Age=3600"} {
		if !strings.Contains(attributes, attribute) {
			g.t.Errorf("%s is not in %s", attribute, set)
		}
	}
	if strings.Contains(attributes, "Domain") {
		g.t.Error(set)
	}
	return "Cookie: " + value
}

func TestSessionStandsForItsToken(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.expiring()
		g.api.Put("pods", "a/web")
		cookie := g.session()
		if a := g.get("/api/v1/namespaces/a/pods", "Authorization: ", cookie); a.code != 200 || !strings.Contains(a.body, `"web"`) {
			t.Errorf("%d %s", a.code, a.body)
		}
		if a := g.get("/auth/me", "Authorization: ", cookie); !strings.Contains(a.body, `"username":"alice"`) {
			t.Error(a.body)
		}
		if a := g.get("/auth/me", "Authorization: Bearer bob", cookie); !strings.Contains(a.body, `"username":"bob"`) {
			t.Errorf("the header does not count first: %s", a.body)
		}
		if a := g.get("/auth/me", "Authorization: Bearer forged", cookie); a.code != 401 {
			t.Errorf("a forged token beside a session: %d", a.code)
		}
		for name, bad := range map[string]string{
			"changed": cookie + "x", "two": cookie + "; " + strings.TrimPrefix(cookie, "Cookie: "), "of nobody": "Cookie: __Host-kubecast=x",
		} {
			if a := g.get("/auth/me", "Authorization: ", bad); a.code != 401 || a.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: %d %s", name, a.code, a.body)
			}
		}
		s := g.stream("/api/v1/namespaces/a/pods", "Authorization: ", cookie)
		s.expect("added web", "synced")
		pass(time.Hour + time.Second)
		if a := g.get("/auth/me", "Authorization: ", cookie); a.code != 401 || !strings.Contains(a.header.Get("WWW-Authenticate"), "expired") {
			t.Errorf("at its end: %d %v", a.code, a.header)
		}
	}, sealed)
}

func TestSessionBeginsWithATokenOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.expiring()
		cookie := g.session()
		for name, headers := range map[string][]string{
			"nothing": {"Authorization: "}, "a session": {"Authorization: ", cookie}, "a forged token": {"Authorization: Bearer forged"},
		} {
			if a := g.post("/auth/session", "", headers...); a.code != 401 || a.header.Get("Set-Cookie") != "" || a.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: %d %v %s", name, a.code, a.header, a.body)
			}
		}
		if a := g.post("/auth/session?access_token=alice", "", "Authorization: "); a.code != 401 && a.code != 400 {
			t.Errorf("a token in the address: %d", a.code)
		}
		if a := g.get("/auth/session"); a.code != 200 || a.header.Get("Set-Cookie") != "" || strings.Contains(a.body, "alice") {
			t.Errorf("GET: %d %v", a.code, a.header)
		}
		if a := g.post("/auth/logout", "", "Authorization: ", "Cookie: __Host-kubecast=whatever"); a.code != 204 ||
			!strings.Contains(a.header.Get("Set-Cookie"), "__Host-kubecast=; ") || !strings.Contains(a.header.Get("Set-Cookie"), "Max-Age=0") {
			t.Errorf("logout: %d %v", a.code, a.header)
		}
	}, sealed)
}

// What another site's page lets a browser send carries no session, however it is sent.
func TestForeignPagesDoNotUseTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.expiring()
		cookie := g.session()
		own := "https://" + strings.TrimPrefix(g.url, "http://")
		for name, c := range map[string]struct {
			headers []string
			good    bool
		}{
			"no browser":           {nil, true},
			"its own page":         {[]string{"Origin: " + own}, true},
			"its own, plain":       {[]string{"Origin: " + g.url}, true},
			"a configured origin":  {[]string{"Origin: https://portal.example.org"}, true},
			"its own, no Origin":   {[]string{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors"}, true},
			"its own, by a proxy":  {[]string{"Origin: https://kubecast.example.org", "Sec-Fetch-Site: same-origin"}, true},
			"a sibling host":       {[]string{"Origin: https://other.example.org", "Sec-Fetch-Site: same-site"}, false},
			"typed by the user":    {[]string{"Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"}, true},
			"a link":               {[]string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, true},
			"another origin":       {[]string{"Origin: https://evil.example"}, false},
			"an origin alike":      {[]string{"Origin: " + own + ".evil.example"}, false},
			"another port":         {[]string{"Origin: " + own + "0"}, false},
			"null":                 {[]string{"Origin: null"}, false},
			"another scheme":       {[]string{"Origin: ftp://" + strings.TrimPrefix(g.url, "http://")}, false},
			"an image elsewhere":   {[]string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, false},
			"a script of the site": {[]string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"}, false},
			"its host, plain":      {[]string{"Origin: " + g.url, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"}, false},
			"another's form":       {[]string{"Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, false},
		} {
			for _, path := range []string{"/api/v1/pods", "/auth/me", "/clusters"} {
				a := g.get(path, append([]string{"Authorization: ", cookie}, c.headers...)...)
				if want := map[bool]int{true: 200, false: 403}[c.good]; a.code != want {
					t.Errorf("%s at %s: %d %s", name, path, a.code, a.body)
				}
			}
		}
		for _, path := range []string{"/stream?pods=/api/v1/pods", "/api/v1/pods", "/api/v1/pods?watch=true"} {
			a := g.get(path, "Authorization: ", cookie, "Origin: https://evil.example", "Accept: text/event-stream")
			if a.code != 403 || a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("a stream at %s: %d %s", path, a.code, a.body)
			}
		}
		for _, path := range []string{"/auth/logout", "/auth/session", "/auth/ticket"} {
			headers := []string{cookie, "Origin: https://evil.example"}
			if path == "/auth/ticket" {
				headers = append(headers, "Authorization: ")
			}
			if a := g.post(path, `{"path":"/clusters"}`, headers...); a.code != 403 || a.header.Get("Set-Cookie") != "" {
				t.Errorf("POST %s: %d %s", path, a.code, a.body)
			}
			a := g.request(http.MethodOptions, path, "Origin: https://portal.example.org", "Access-Control-Request-Method: POST")
			want := map[bool]string{false: "POST, OPTIONS", true: "GET, HEAD, POST, OPTIONS"}[path == "/auth/session"]
			if a.header.Get("Access-Control-Allow-Methods") != want || a.header.Get("Access-Control-Allow-Credentials") != "true" {
				t.Errorf("preflight of %s: %v", path, a.header)
			}
			if a := g.request(http.MethodOptions, path, "Origin: https://evil.example"); a.header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("preflight of %s by another: %v", path, a.header)
			}
		}
		// A token in the header is no session: a page must have it to send it.
		if a := g.get("/clusters", cookie, "Origin: https://evil.example"); a.code != 200 {
			t.Errorf("with a token: %d", a.code)
		}
	}, sealed)
}

func (g *gateway) ticket(path string, headers ...string) string {
	g.t.Helper()
	a := g.post("/auth/ticket", `{"path":"`+path+`"}`, headers...)
	var got struct {
		Ticket    string
		ExpiresAt time.Time
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.code != 200 || got.Ticket == "" || time.Until(got.ExpiresAt) > sessions.TicketTime || a.header.Get("Cache-Control") != "no-store" {
		g.t.Fatalf("%d %v %s", a.code, a.header, a.body)
	}
	return got.Ticket
}

func TestTicketOpensOneStreamFromWhereverItWas(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.expiring()
		g.api.Put("pods", "a/web", "metadata.labels.app=x")
		const path = "/stream?pods=/api/v1/pods%3FlabelSelector%3Dapp%253Dx&heartbeat=20s"
		ticket := g.ticket(path)
		s := g.stream(path+"&ticket="+ticket, "Authorization: ")
		s.expect("pods.added web")
		if a := g.get(path+"&ticket="+ticket, "Authorization: "); a.code != 401 {
			t.Errorf("a second time: %d %s", a.code, a.body)
		}
		// In another order, and from a position.
		g.stream("/stream?heartbeat=20s&lastEventId=another.pods-5&ticket="+g.ticket(path)+"&pods=/api/v1/pods%3FlabelSelector%3Dapp%253Dx", "Authorization: ").expect("pods.reset epoch")
		for name, other := range map[string]string{
			"another path":      "/api/v1/pods?heartbeat=20s&ticket=",
			"another query":     "/stream?pods=/api/v1/pods&heartbeat=20s&ticket=",
			"more":              path + "&jobs=/apis/batch/v1/jobs&ticket=",
			"less":              "/stream?pods=/api/v1/pods%3FlabelSelector%3Dapp%253Dx&ticket=",
			"as a second value": path + "&heartbeat=30s&ticket=",
		} {
			if a := g.get(other+g.ticket(path), "Authorization: "); a.code != 401 {
				t.Errorf("%s: %d %s", name, a.code, a.body)
			}
		}
		late := g.ticket(path)
		pass(sessions.TicketTime + time.Second)
		if a := g.get(path+"&ticket="+late, "Authorization: "); a.code != 401 {
			t.Errorf("late: %d", a.code)
		}
		if a := g.get("/clusters?ticket=", "Authorization: "); a.code != 401 {
			t.Errorf("an empty one: %d", a.code)
		}
		if strings.Contains(g.log.String(), ticket) || strings.Contains(g.log.String(), late) {
			t.Error("a ticket is in the log")
		}
	}, sealed)
}

// A ticket stands for its caller wherever a token would, and in whatever form the answer is.
func TestTicketIsGoodForEachForm(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.expiring()
		g.api.Put("pods", "a/web")
		const events = "Accept: text/event-stream"
		for _, form := range []struct{ path, accept, want string }{
			{"/api/v1/namespaces/a/pods?heartbeat=20s", events, "event: added"},
			{"/api/v1/namespaces/a/pods/web?fields=status.phase", events, "event: added"},
			{"/clusters/default/api/v1/pods?sendInitialEvents=false", events, "retry:"},
			{"/stream?pods=/api/v1/pods&deltas=merge-patch", events, "event: pods.added"},
			{"/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=5", "Accept: application/json", `"type":"ADDED"`},
			{"/api/v1/pods?limit=5", "Accept: application/json", `"PodList"`},
			{"/api/v1/namespaces/a/pods/web", "Accept: application/json", `"web"`},
		} {
			ticket := g.ticket(form.path)
			address := form.path + "?ticket=" + ticket
			if strings.Contains(form.path, "?") {
				address = form.path + "&ticket=" + ticket
			}
			ctx, cancel := context.WithCancel(context.Background())
			response, err := g.client.Do(g.newRequest(ctx, http.MethodGet, address, []string{"Authorization: ", form.accept}))
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for space := make([]byte, 4096); !strings.Contains(text, form.want); {
				n, err := response.Body.Read(space)
				if text += string(space[:n]); err != nil {
					break
				}
			}
			if response.StatusCode != 200 || !strings.Contains(text, form.want) {
				t.Errorf("%s: %d %s", form.path, response.StatusCode, text)
			}
			cancel()
			response.Body.Close()
			if a := g.get(address, "Authorization: ", form.accept); a.code != 401 {
				t.Errorf("%s: a second time: %d %s", form.path, a.code, a.body)
			}
			if strings.Contains(g.log.String(), ticket) {
				t.Errorf("%s: the ticket is in the log", form.path)
			}
		}
		for query, code := range map[string]int{
			"ticket=/api/v1/pods&pods=/api/v1/pods": 400, // a watch that is called so
			"pods=/api/v1/pods%3Fticket%3Dx":        400,
			"pods=/api/v1/pods&ticket=x&ticket=y":   401,
		} {
			headers := []string{events}
			if code == 401 {
				headers = append(headers, "Authorization: ")
			}
			if a := g.get("/stream?"+query, headers...); a.code != code {
				t.Errorf("%s: %d %s", query, a.code, a.body)
			}
		}
	}, sealed)
}

func TestTicketsAreIssuedForPathsOfTheGatewayOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.expiring()
		cookie := g.session()
		for body, code := range map[string]int{
			``: 400, `{}`: 400, `{"path":""}`: 400, `{"path":"stream"}`: 400, `{"path":"//evil.example/x"}`: 400, `{"path":"https://evil.example/"}`: 400,
			`{"path":"/x#y"}`: 400, `{"path":"/x?%zz"}`: 400, `{"path":"/auth/ticket"}`: 400, `{"path":"/auth/callback?code=x"}`: 400, `{"path":"/x?token=a"}`: 400, `{"path":7}`: 400, `[]`: 400,
			`{"path":"/` + strings.Repeat("x", (8<<10)) + `"}`: 400, `{"path":"/` + strings.Repeat("x", 1<<20) + `"}`: 413,
			`{"path":"/clusters"}`: 200,
		} {
			if a := g.post("/auth/ticket", body, "Authorization: ", cookie); a.code != code || code == 400 && a.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%.60s: %d %s", body, a.code, a.body)
			}
		}
		if a := g.post("/auth/ticket", `{"path":"/clusters"}`, "Authorization: "); a.code != 401 {
			t.Errorf("by nobody: %d", a.code)
		}
		if a := g.post("/auth/ticket?ticket="+g.ticket("/auth/ticketx"), `{"path":"/clusters"}`, "Authorization: "); a.code != 400 {
			t.Errorf("by a ticket: %d", a.code)
		}
		if a := g.get("/clusters?ticket="+g.ticket("/clusters", "Authorization: ", cookie), "Authorization: "); a.code != 200 {
			t.Errorf("by a session: %d %s", a.code, a.body)
		}
		// A client that sends a token needs no ticket, so a bad one does no harm.
		if a := g.get("/clusters?ticket=whatever"); a.code != 200 {
			t.Errorf("beside a token: %d", a.code)
		}
		pass(time.Second) // the server waits that long for who sent too much to read its answer
	}, sealed)
}

func TestWithoutAKeyThereAreNoSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.expiring()
		for _, path := range []string{"/auth/session", "/auth/ticket"} {
			if a := g.post(path, `{"path":"/clusters"}`); a.code != 404 {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
		if a := g.get("/clusters?ticket=x", "Authorization: ", "Cookie: __Host-kubecast=x"); a.code != 401 {
			t.Errorf("%d", a.code)
		}
	})
}
