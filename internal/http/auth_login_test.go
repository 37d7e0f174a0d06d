package http

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/authtest"
	"github.com/kubecast/kubecast/internal/auth/oidc"
)

// withLogin gives the gateway sessions, a login at the provider, and the provider's tokens beside its own users.
func withLogin(provider *authtest.Provider) option {
	return func(g *gateway, o *Options) {
		sealed(g, o)
		o.Revocations = auth.NewRevocations(auth.RevocationOptions{Keep: 48 * time.Hour})
		a, err := auth.New(auth.Options{
			Issuers: []auth.Issuer{{
				Issuer: authtest.Issuer, Audiences: []string{"kubecast", authtest.ClientID}, Claims: auth.Claims{Username: "sub", Groups: "groups"},
			}},
			Transport:   provider,
			Revocations: o.Revocations,
		}, o.Log)
		if err != nil {
			g.t.Fatal(err)
		}
		g.access.confirmer = a
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		g.t.Cleanup(func() {
			cancel()
			<-ended
		})
		o.Login, err = oidc.New(oidc.Options{Issuer: authtest.Issuer, ClientID: authtest.ClientID, RedirectURL: cmp.Or(provider.Redirect, authtest.RedirectURL)}, a, g.sealer, o.Log)
		if err != nil {
			g.t.Fatal(err)
		}
	}
}

// What the contract of signing in has.
const (
	maxFailures   = 100 // to sign in, a minute
	renewalCookie = "__Secure-kubecast-renewal"
	// maxLoginCookies are of logins that a browser has begun.
	maxLoginCookies = 5
)

// sessionAnswer is what /auth/session tells.
type sessionAnswer struct {
	Login     bool       `json:"login"`
	Username  string     `json:"username"`
	ExpiresAt *time.Time `json:"expiresAt"`
	Renewable bool       `json:"renewable"`
}

// browser keeps cookies as browsers do, as far as it matters here: by name, with their path, and for a time.
type browser struct {
	g       *gateway
	cookies map[string]*http.Cookie
}

func (g *gateway) browser() *browser { return &browser{g, map[string]*http.Cookie{}} }

// header is what goes with a request. A cookie that is SameSite=Strict stays away if another site
// sends the browser here.
func (b *browser) header(path string, fromElsewhere bool) string {
	var sent []string
	for name, c := range b.cookies {
		if time.Now().After(c.Expires) || !strings.HasPrefix(path, c.Path) || fromElsewhere && c.SameSite != http.SameSiteLaxMode {
			continue
		}
		sent = append(sent, name+"="+c.Value)
	}
	slices.Sort(sent)
	return "Cookie: " + strings.Join(sent, "; ")
}

func (b *browser) keep(a answer) answer {
	b.g.t.Helper()
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		if !c.Secure || !c.HttpOnly || c.Domain != "" || c.SameSite != http.SameSiteStrictMode && !strings.Contains(c.Name, "-kubecast-login-") ||
			strings.HasPrefix(c.Name, "__Host-") && c.Path != "/" || len(c.Name)+len(c.Value) > 4000 {
			b.g.t.Errorf("a cookie that is not safe: %v", c)
		}
		if b.cookies[c.Name] = c; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	return a
}

func (b *browser) get(path string, headers ...string) answer {
	b.g.t.Helper()
	return b.keep(b.g.get(path, append([]string{"Authorization: ", b.header(path, false), "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors"}, headers...)...))
}

func (b *browser) post(path string, headers ...string) answer {
	b.g.t.Helper()
	return b.keep(b.g.post(path, "", append([]string{"Authorization: ", b.header(path, false), "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors"}, headers...)...))
}

// visit goes to an address as somebody does who is sent there from another site.
func (b *browser) visit(path string, headers ...string) answer {
	b.g.t.Helper()
	all := []string{"Authorization: ", b.header(path, true), "Accept: text/html,*/*;q=0.8", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}
	return b.keep(b.g.get(path, append(all, headers...)...))
}

// goToProvider begins a login, signs in, and returns the path to which the provider sends the browser back.
func (b *browser) goToProvider(provider *authtest.Provider, returnTo string) string {
	b.g.t.Helper()
	a := b.visit("/auth/login?returnTo=" + escape(returnTo))
	if a.code != http.StatusSeeOther || a.header.Get("Cache-Control") != "no-store" {
		b.g.t.Fatalf("%d %v %s", a.code, a.header, a.body)
	}
	callback, err := provider.SignIn(a.header.Get("Location"))
	if err != nil {
		b.g.t.Fatal(err)
	}
	return strings.TrimPrefix(callback, "https://kubecast.example.org")
}

func (b *browser) signIn(provider *authtest.Provider) {
	b.g.t.Helper()
	a := b.visit(b.goToProvider(provider, "/#jobs?ns=a"))
	if a.code != http.StatusSeeOther || a.header.Get("Location") != "/#jobs?ns=a" || len(b.cookies) != 2 {
		b.g.t.Fatalf("%d %v %s %v", a.code, a.header, a.body, b.cookies)
	}
}

func (b *browser) session() (told sessionAnswer) {
	b.g.t.Helper()
	a := b.get("/auth/session")
	if err := json.Unmarshal([]byte(a.body), &told); err != nil || a.code != 200 || a.header.Get("Cache-Control") != "no-store" || a.header.Get("Set-Cookie") != "" {
		b.g.t.Errorf("%d %v %s", a.code, a.header, a.body)
	}
	return told
}

func TestLoginFromTheFirstPageToTheLast(t *testing.T) {
	provider := authtest.New()
	provider.Lasts = 10 * time.Minute
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "a/web")
		b := g.browser()
		if told := b.session(); !told.Login || told.Username != "" || told.ExpiresAt != nil || told.Renewable {
			t.Errorf("a stranger is told %+v", told)
		}
		b.signIn(provider)
		if a := b.get("/auth/me"); !strings.Contains(a.body, `"username":"jane"`) || !strings.Contains(a.body, `"platform"`) {
			t.Errorf("%d %s", a.code, a.body)
		}
		told := b.session()
		if told.Username != "jane" || !told.Renewable || time.Until(*told.ExpiresAt) > 10*time.Minute {
			t.Errorf("%+v", told)
		}
		if header := b.header("/stream", false); strings.Contains(header, renewalCookie) {
			t.Error("what renews a session is sent with each request")
		}
		s := g.stream("/stream?pods=/api/v1/pods", "Authorization: ", b.header("/stream", false))
		s.expect("pods.added web", "pods.synced")

		pass(9*time.Minute + 10*time.Second)
		provider.RotateKey()
		renewed := b.post("/auth/session")
		if again := b.session(); renewed.code != 200 || !again.ExpiresAt.After(*told.ExpiresAt) || !again.Renewable {
			t.Errorf("%d %s; %+v", renewed.code, renewed.body, again)
		}
		before := b.header("/auth/session", false)
		if a := b.post("/auth/session"); a.code != 200 || a.header.Get("Set-Cookie") != "" || b.header("/auth/session", false) != before {
			t.Errorf("another tab: %d %v", a.code, a.header)
		}
		pass(time.Hour) // the lid was closed
		if a := b.get("/auth/me"); a.code != 401 {
			t.Errorf("%d %s", a.code, a.body)
		}
		if told := b.session(); told.Username != "" || !told.Renewable {
			t.Errorf("%+v", told)
		}
		g.expiring()
		if a := b.get("/api/v1/pods?ticket=" + g.ticket("/api/v1/pods")); a.code != 200 {
			t.Errorf("a ticket beside a session that has ended: %d %s", a.code, a.body)
		}
		if a := b.post("/auth/session"); a.code != 200 || b.get("/auth/me").code != 200 {
			t.Errorf("%d %s", a.code, a.body)
		}

		old := b.header("/auth/session", false)
		a := b.post("/auth/logout")
		var end struct{ Location string }
		if err := json.Unmarshal([]byte(a.body), &end); err != nil || a.code != 200 || !strings.HasPrefix(end.Location, authtest.Issuer+"/logout?") || len(b.cookies) != 0 {
			t.Errorf("%d %s %v", a.code, a.body, b.cookies)
		}
		if a := g.post("/auth/session", "", "Authorization: ", old); a.code != 401 && !strings.Contains(a.body, "jane") {
			t.Errorf("kept cookies: %d %s", a.code, a.body)
		}
		if a := b.post("/auth/logout"); a.code != 204 {
			t.Errorf("twice: %d", a.code)
		}
		for _, secret := range []string{"code=", "state=", "id_token_hint", "eyJ"} {
			if strings.Contains(g.log.String(), secret) {
				t.Errorf("%q is in the log: %s", secret, g.log)
			}
		}
	}, withLogin(provider))
}

// A page elsewhere sends somebody's browser to the end of a login that it began itself; or somebody saw an address.
func TestLoginsOfOthersAreRefused(t *testing.T) {
	provider := authtest.New()
	inBubble(t, func(t *testing.T, g *gateway) {
		attacker, victim := g.browser(), g.browser()
		callback := attacker.goToProvider(provider, "/")
		for name, path := range map[string]string{
			"a login of another browser": callback,
			"no state":                   strings.Replace(callback, "state=", "estate=", 1),
			"two states":                 callback + "&state=A",
			"two codes":                  callback + "&code=A",
			"a state that is none":       "/auth/callback?code=x&state=../../x",
			"nothing":                    "/auth/callback",
			"an error":                   "/auth/callback?error=access_denied&error_description=%3Cscript%3E",
			"malformed":                  "/auth/callback?code=%zz",
		} {
			a := victim.visit(path)
			if a.code != 400 || a.header.Get("Location") != "" || len(victim.cookies) != 0 || !strings.Contains(a.body, "Sign-in failed") ||
				!strings.HasPrefix(a.header.Get("Content-Type"), "text/html") || !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") ||
				strings.Contains(a.body, "<script") {
				t.Errorf("%s: %d %v %s", name, a.code, a.header, a.body)
			}
		}
		if a := victim.visit(callback, "Accept: application/json"); a.code != 400 || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("for programs: %d %v", a.code, a.header)
		}
		// With the victim's own login under way, too.
		victim.visit("/auth/login")
		if a := victim.visit(callback); a.code != 400 || victim.session().Username != "" {
			t.Errorf("%d %s", a.code, a.body)
		}
		// The address that a login ended with is of no use a second time, nor is it with the cookies of before.
		own := victim.goToProvider(provider, "/")
		before := victim.header(own, true)
		if a := victim.visit(own); a.code != http.StatusSeeOther {
			t.Fatalf("%d %s", a.code, a.body)
		}
		if a := victim.visit(own); a.code != 400 {
			t.Errorf("replayed: %d %s", a.code, a.body)
		}
		if a := g.get(own, "Authorization: ", before); a.code != 400 || a.header.Get("Location") != "" {
			t.Errorf("replayed with the cookies of before: %d %s", a.code, a.body)
		}
		if victim.session().Username != "jane" {
			t.Error("a replay ended the session")
		}
		// What somebody puts beside a cookie makes both worthless.
		double := victim.goToProvider(provider, "/")
		header := victim.header(double, true)
		if a := g.get(double, "Authorization: ", header+"; "+strings.TrimPrefix(header, "Cookie: ")); a.code != 400 {
			t.Errorf("two cookies: %d %s", a.code, a.body)
		}
	}, withLogin(provider))
}

func TestLoginLeadsNowhereElse(t *testing.T) {
	provider := authtest.New()
	inBubble(t, func(t *testing.T, g *gateway) {
		b := g.browser()
		for _, returnTo := range []string{"https://evil.example", "//evil.example", `/\evil.example`, "", "javascript:alert(1)", "/auth/logout", "/\t/evil.example", "jobs"} {
			if a := b.visit("/auth/login?returnTo=" + escape(returnTo)); a.code != 400 || a.header.Get("Location") != "" || len(b.cookies) != 0 {
				t.Errorf("%q: %d %v", returnTo, a.code, a.header)
			}
		}
		for _, query := range []string{"returnTo=/&returnTo=//x", "return=/", "prompt=none", "returnTo=%zz"} {
			if a := b.visit("/auth/login?" + query); a.code != 400 {
				t.Errorf("%s: %d", query, a.code)
			}
		}
		for name, headers := range map[string][]string{
			"a frame":   {"Sec-Fetch-Dest: iframe"},
			"an image":  {"Sec-Fetch-Dest: image", "Sec-Fetch-Mode: no-cors"},
			"a script":  {"Sec-Fetch-Dest: empty", "Sec-Fetch-Mode: cors"},
			"a preload": {"Sec-Purpose: prefetch"},
		} {
			for _, path := range []string{"/auth/login", "/auth/callback?code=x&state=y"} {
				if a := b.visit(path, headers...); a.code != 403 || len(b.cookies) != 0 {
					t.Errorf("%s by %s: %d", path, name, a.code)
				}
			}
		}
		for range 30 {
			b.visit("/auth/login")
			if len(b.cookies) > maxLoginCookies {
				t.Fatalf("%d logins are kept", len(b.cookies))
			}
		}
		b.signInAgain(provider)
	}, withLogin(provider))
}

// signInAgain is for a browser that has other cookies, too.
func (b *browser) signInAgain(provider *authtest.Provider) {
	b.g.t.Helper()
	if a := b.visit(b.goToProvider(provider, "/")); a.code != http.StatusSeeOther || b.session().Username != "jane" {
		b.g.t.Errorf("%d %s", a.code, a.body)
	}
}

func TestProviderThatIsAwayLeavesTheSession(t *testing.T) {
	provider := authtest.New()
	inBubble(t, func(t *testing.T, g *gateway) {
		b := g.browser()
		b.signIn(provider)
		pass(59 * time.Minute)
		provider.Set(func(p *authtest.Provider) { p.Away = true })
		before := b.header("/auth/session", false)
		if a := b.post("/auth/session"); a.code != 503 || a.header.Get("Retry-After") == "" || a.header.Get("Set-Cookie") != "" || b.header("/auth/session", false) != before {
			t.Errorf("%d %v", a.code, a.header)
		}
		if b.get("/auth/me").code != 200 {
			t.Error("a session ends before its time")
		}
		pass(10 * time.Minute)
		if a := b.post("/auth/session"); a.code != 503 {
			t.Errorf("%d", a.code)
		}
		other := g.browser()
		if a := other.visit("/auth/login"); a.code != 303 { // what was known of it is still known
			t.Errorf("%d", a.code)
		}
		provider.Set(func(p *authtest.Provider) { p.Away = false })
		if a := b.post("/auth/session"); a.code != 200 || b.get("/auth/me").code != 200 {
			t.Errorf("%d %s", a.code, a.body)
		}
		provider.Set(func(p *authtest.Provider) { p.Fails = "invalid_grant" })
		pass(59 * time.Minute)
		if a := b.post("/auth/session"); a.code != 401 || b.get("/auth/me").code != 200 {
			t.Errorf("%d %s", a.code, a.body)
		}
	}, withLogin(provider))
}

// A neighbouring host can put cookies into a browser, but none that begins with __Host-.
func TestRenewalOfAStrangerIsOfNoUse(t *testing.T) {
	provider := authtest.New()
	inBubble(t, func(t *testing.T, g *gateway) {
		attacker, victim := g.browser(), g.browser()
		attacker.signIn(provider)
		victim.signIn(provider)
		victim.cookies[renewalCookie] = attacker.cookies[renewalCookie]
		pass(59*time.Minute + 30*time.Second)
		if a := victim.post("/auth/session"); a.code != 401 || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%d %s", a.code, a.body)
		}
		delete(victim.cookies, "__Host-kubecast")
		if a := victim.post("/auth/session"); a.code != 401 {
			t.Errorf("without a session: %d", a.code)
		}
		for name, headers := range map[string][]string{
			"another origin": {"Origin: https://evil.example", "Sec-Fetch-Site: cross-site"},
			"a sibling":      {"Origin: https://other.example.org", "Sec-Fetch-Site: same-site"},
		} {
			for _, path := range []string{"/auth/session", "/auth/logout"} {
				if a := attacker.post(path, headers...); a.code != 403 || a.header.Get("Set-Cookie") != "" {
					t.Errorf("%s at %s: %d", name, path, a.code)
				}
			}
			if a := attacker.get("/auth/session", headers...); a.code != 403 || strings.Contains(a.body, "jane") {
				t.Errorf("%s learns %s", name, a.body)
			}
		}
	}, withLogin(provider))
}

func TestTooManyLoginsThatAreNoneAreToldToWait(t *testing.T) {
	provider := authtest.New()
	inBubble(t, func(t *testing.T, g *gateway) {
		b := g.browser()
		for n := range maxFailures + 5 {
			want := 400
			if n >= maxFailures {
				want = http.StatusTooManyRequests
			}
			if a := b.visit("/auth/callback?code=guess&state=" + url.QueryEscape(strings.Repeat("A", 26))); a.code != want || want == 429 && a.header.Get("Retry-After") == "" {
				t.Fatalf("%d: %d %s", n, a.code, a.body)
			}
		}
		b.signInAgain(provider)
		if provider.Asked("/token") != 1 {
			t.Errorf("the provider was asked %d times", provider.Asked("/token"))
		}
	}, withLogin(provider))
}

func TestWithoutALoginThereIsNone(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.expiring()
		for _, path := range []string{"/auth/login", "/auth/callback?code=x&state=y"} {
			if a := g.get(path, "Authorization: "); a.code != 404 || a.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
		b := g.browser()
		if told := b.session(); told.Login || told.Renewable {
			t.Errorf("%+v", told)
		}
		cookie := g.session()
		a := g.get("/auth/session", "Authorization: ", cookie)
		if !strings.Contains(a.body, `"username":"alice"`) || !strings.Contains(a.body, `"renewable":false`) {
			t.Error(a.body)
		}
		if a := g.post("/auth/session", "", "Authorization: ", cookie); a.code != 401 {
			t.Errorf("%d", a.code)
		}
		if a := g.post("/auth/logout", "", "Authorization: ", cookie+"; "+renewalCookie+"=x"); a.code != 204 {
			t.Errorf("%d", a.code)
		}
	}, sealed)
}

// FuzzCallback: whatever stands in the address and in the cookies, nobody is signed in, and nothing of it is repeated.
func FuzzCallback(f *testing.F) {
	provider := authtest.New()
	g := newGateway(f, withLogin(provider))
	b := g.browser()
	good := b.goToProvider(provider, "/")
	_, query, _ := strings.Cut(good, "?")
	kept := strings.TrimPrefix(b.header("/auth/callback", true), "Cookie: ")
	f.Add(query, strings.Replace(kept, "=", "=A", 1))
	f.Add(query+"&state=x", kept)
	f.Add("code=x&state=AAAAAAAAAAAAAAAAAAAAAAAAAA&iss=x&error=y", "__Host-kubecast-login-AAAAAAAAAA=x; __Host-kubecast=y; __Secure-kubecast-renewal=z")
	f.Add("error=login_required", "")
	f.Fuzz(func(t *testing.T, query, cookies string) {
		clean := func(r rune) rune {
			if r <= ' ' || r >= 0x7f {
				return '_'
			}
			return r
		}
		query, cookies = strings.Map(clean, query), strings.Map(clean, cookies)
		if strings.Contains(cookies, kept) {
			return
		}
		address, err := url.Parse(g.url + "/auth/callback")
		if err != nil {
			t.Fatal(err)
		}
		address.RawQuery = strings.ReplaceAll(query, "#", "%23")
		for method, path := range map[string]string{http.MethodGet: "/auth/callback", http.MethodPost: "/auth/session"} {
			address.Path = path
			response, err := g.client.Do(&http.Request{Method: method, URL: address, Header: http.Header{"Cookie": {cookies}, "Accept": {"text/html"}}})
			if err != nil {
				return // net/http itself refuses it
			}
			var body strings.Builder
			_, _ = io.Copy(&body, response.Body)
			response.Body.Close()
			if response.StatusCode < 400 || response.StatusCode >= 500 || response.Header.Get("Location") != "" {
				t.Errorf("%s %s with %q: %s", path, query, cookies, response.Status)
			}
			if len(query) > 20 && strings.Contains(body.String(), query) {
				t.Errorf("%q is repeated", query)
			}
		}
	})
}
