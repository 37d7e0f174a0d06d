package http

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/authtest"
)

// logout is what the provider sends.
func (g *gateway) logout(token string, headers ...string) answer {
	g.t.Helper()
	return g.post("/auth/backchannel-logout", url.Values{"logout_token": {token}}.Encode(),
		append([]string{"Authorization: ", "Content-Type: application/x-www-form-urlencoded"}, headers...)...)
}

// A session that was ended at the provider is of no use any more, in no form, and what runs in its
// name ends within a second.
func TestSessionThatTheProviderEndsIsOver(t *testing.T) {
	provider := authtest.New()
	name := "jane"
	provider.Claims = func(claims map[string]any) { claims["sub"] = name }
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "a/web")
		jane, joe := g.browser(), g.browser()
		jane.signIn(provider)
		provider.Set(func(*authtest.Provider) { name = "joe" })
		joe.signIn(provider)
		pass(2 * time.Second)
		as := func(b *browser) []string {
			return []string{"Authorization: ", b.header("/stream", false), "Sec-Fetch-Site: same-origin"}
		}
		told, others := g.stream("/stream?p=/api/v1/pods", as(jane)...), g.stream("/stream?p=/api/v1/pods", as(joe)...)
		told.expect("p.added web", "p.synced")
		others.expect("p.added web", "p.synced")
		watch := make(chan answer, 1)
		go func() { watch <- g.get("/api/v1/pods?watch=true", as(jane)...) }()
		ticket := jane.post("/auth/ticket", "X-Nothing: x") // without a body: 400, so it is made below
		if ticket.code != http.StatusBadRequest {
			t.Errorf("%d", ticket.code)
		}
		issued := g.post("/auth/ticket", `{"path":"/api/v1/pods"}`, as(jane)...)
		text := textBetween(issued.body, `"ticket":"`, `"`)
		pass(time.Second)

		ended := time.Now()
		if a := g.logout(provider.LogoutToken(nil)); a.code != http.StatusOK || a.header.Get("Cache-Control") != "no-store" {
			t.Fatalf("%d %s", a.code, a.body)
		}
		left := told.end()
		if last := left[len(left)-1]; last.String() != "goodbye revoked" || time.Since(ended) > time.Second {
			t.Errorf("%q after %v", last.raw, time.Since(ended))
		}
		if a := <-watch; a.code != 200 || time.Since(ended) > time.Second {
			t.Errorf("the watch: %d after %v", a.code, time.Since(ended))
		}
		for what, a := range map[string]answer{
			"the session": jane.get("/auth/me"),
			"a stream":    g.get("/stream?p=/api/v1/pods", as(jane)...),
			"a ticket":    g.get("/api/v1/pods?ticket="+text, "Authorization: "),
			"a new one":   g.post("/auth/ticket", `{"path":"/api/v1/pods"}`, as(jane)...),
			"a renewal":   jane.post("/auth/session"),
		} {
			if a.code != http.StatusUnauthorized {
				t.Errorf("%s: %d %s", what, a.code, a.body)
			}
		}
		if jane.session().Username != "" {
			t.Error("the page is told that there is a session")
		}
		if joe.get("/auth/me").code != 200 {
			t.Error("another's session")
		}
		g.api.Put("pods", "a/new")
		others.expect("p.added new")
		others.close()
		pass(time.Second)
		provider.Set(func(*authtest.Provider) { name = "jane" })
		jane.signInAgain(provider)
		for _, secret := range []string{"eyJ", "logout_token"} {
			if strings.Contains(g.log.String(), secret) {
				t.Errorf("%s is in the log", secret)
			}
		}
	}, withLogin(provider))
}

// textBetween is the text between two others.
func textBetween(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	rest, _, _ = strings.Cut(rest, after)
	return rest
}

func TestLogoutsThatAreNoneAreRefused(t *testing.T) {
	provider := authtest.New()
	inBubble(t, func(t *testing.T, g *gateway) {
		b := g.browser()
		b.signIn(provider)
		good := provider.LogoutToken(nil)
		form := []string{"Authorization: ", "Content-Type: application/x-www-form-urlencoded"}
		for name, c := range map[string]struct {
			a    answer
			code int
		}{
			"an ID token":    {g.logout(provider.IDToken("")), 400},
			"nothing":        {g.logout(""), 400},
			"no form":        {g.post("/auth/backchannel-logout", `{"logout_token":"x"}`, "Authorization: ", "Content-Type: application/json"), 415},
			"two":            {g.post("/auth/backchannel-logout", "logout_token="+good+"&logout_token="+good, form...), 400},
			"in the address": {g.post("/auth/backchannel-logout"+"?logout_token="+good, "", form...), 400},
			"too much":       {g.post("/auth/backchannel-logout", "logout_token="+strings.Repeat("x", 1<<20), form...), 413},
			"GET":            {g.get("/auth/backchannel-logout", "Authorization: "), 404},
		} {
			if c.a.code != c.code || strings.Contains(c.a.body, "eyJ") {
				t.Errorf("%s: %d %s", name, c.a.code, c.a.body)
			}
		}
		if b.get("/auth/me").code != 200 {
			t.Error("the session has ended")
		}
		for range maxFailures {
			g.logout("garbage")
		}
		if a := g.logout("garbage"); a.code != http.StatusTooManyRequests {
			t.Errorf("%d", a.code)
		}
		if a := g.logout(good); a.code != 200 || b.get("/auth/me").code == 200 {
			t.Errorf("a good one beside many bad ones: %d", a.code)
		}
		pass(time.Second) // net/http lingers where a body was too large
	}, withLogin(provider))
	inBubble(t, func(t *testing.T, g *gateway) {
		if a := g.logout("x"); a.code != 404 {
			t.Errorf("without a login: %d", a.code)
		}
	}, sealed)
}

// A caller who is revoked after they were identified, and before their stream begins, must not slip through.
func TestStreamThatBeginsAsItsCallerIsRevokedEnds(t *testing.T) {
	revocations := auth.NewRevocations(auth.RevocationOptions{Keep: 48 * time.Hour})
	inBubble(t, func(t *testing.T, g *gateway) {
		hold := make(chan struct{})
		g.access.set(func(a *fakeAuth) { a.hang = hold })
		streams := make(chan *events, 1)
		go func() { streams <- g.open("/stream?p=/api/v1/pods") }() // the fake authenticator knows of no revocations
		g.eventually("its permission is asked for", func() bool { return g.access.questions() > 0 })
		if err := revocations.Revoke(context.Background(), "a", auth.Revocation{Username: "alice"}); err != nil {
			t.Fatal(err)
		}
		close(hold)
		left := (<-streams).end()
		if last := left[len(left)-1]; last.String() != "goodbye revoked" {
			t.Errorf("%q", last.raw)
		}
	}, options(func(o *Options) { o.Revocations = revocations }))
}

// Nobody tells the gateway that a ServiceAccount is deleted; its streams ask.
func TestStreamsEndWithTheirServiceAccount(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		s := g.stream("/stream?p=/api/v1/pods")
		s.expect("p.synced")
		began := time.Now()
		g.access.set(func(a *fakeAuth) { a.gone = map[string]bool{"alice": true} })
		left := s.end()
		if last := left[len(left)-1]; last.String() != "goodbye revoked" || time.Since(began) > 11*time.Second {
			t.Errorf("%q after %v", last.raw, time.Since(began))
		}
	})
}

// A gateway that cannot know who was revoked says so to those who send requests to it.
func TestNotReadyWithoutKnowingWhoWasRevoked(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		a := g.ops("/readyz")
		if a.code != http.StatusServiceUnavailable || !strings.Contains(a.body, "what was revoked") {
			t.Errorf("%d %s", a.code, a.body)
		}
	}, options(func(o *Options) {
		o.Revocations = auth.NewRevocations(auth.RevocationOptions{ConfigMap: "revoked", Keep: 48 * time.Hour})
	}))
}
