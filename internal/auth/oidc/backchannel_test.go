package oidc

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/authtest"
)

func TestLogoutAtTheProviderEndsTheSessionsHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		session := "s-1"
		provider.Claims = func(c map[string]any) { c["sid"] = session }
		l := loginAt(t, provider)
		signInAs := func(name string) LoggedIn {
			provider.Set(func(*authtest.Provider) { session = name })
			return signedIn(t, l, provider)
		}
		open := func(in LoggedIn) bool {
			_, err := sessionsOf(l).Open(t.Context(), in.Session)
			return err == nil
		}
		first, second := signInAs("s-1"), signInAs("s-2")
		bearer := provider.IDToken("")
		time.Sleep(time.Minute)

		if _, err := l.EndAt(t.Context(), provider.LogoutToken(func(_, c map[string]any) { c["sid"] = "s-1" })); err != nil {
			t.Fatal(err)
		}
		if open(first) || !open(second) {
			t.Errorf("of one session: %v, %v", open(first), open(second))
		}
		if _, err := l.Renew(t.Context(), first.Session, first.Renewal); !errors.Is(err, auth.ErrBadToken) {
			t.Error(err)
		}
		// A provider may name the session only at the sign-in, and not in later tokens.
		provider.Set(func(p *authtest.Provider) { p.Claims = nil })
		time.Sleep(50 * time.Minute)
		second, err := l.Renew(t.Context(), second.Session, second.Renewal)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.EndAt(t.Context(), provider.LogoutToken(func(_, c map[string]any) { c["sid"], c["sub"] = "s-2", nil })); err != nil {
			t.Fatal(err)
		}
		if open(second) {
			t.Error("a session that was renewed without its name goes on")
		}
		third := signedIn(t, l, provider)
		time.Sleep(time.Minute)
		token := provider.LogoutToken(nil)
		if _, err := l.EndAt(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		if open(third) {
			t.Error("of all sessions")
		}
		if _, err := l.authenticator.Authenticate(t.Context(), bearer); !errors.Is(err, auth.ErrBadToken) {
			t.Errorf("a bearer token from before: %v", err)
		}
		time.Sleep(time.Second)
		fourth := signedIn(t, l, provider)
		if _, err := l.EndAt(t.Context(), token); !errors.Is(err, ErrRefused) {
			t.Errorf("sent again: %v", err)
		}
		if !open(fourth) {
			t.Error("who has signed in again is signed out")
		}
	})
}

// An attacker who could end others' sessions could lock them out.
func TestLogoutTokensThatAreNoneEndNothing(t *testing.T) {
	const event = "http://schemas.openid.net/event/backchannel-logout"
	for name, c := range map[string]struct {
		change func(header, claims map[string]any)
		token  func(*authtest.Provider) string
		good   bool
	}{
		"good":                    {good: true},
		"typ JWT":                 {change: func(h, _ map[string]any) { h["typ"] = "JWT" }, good: true},
		"without exp":             {change: func(_, c map[string]any) { c["exp"] = nil }, good: true},
		"several audiences":       {change: func(_, c map[string]any) { c["aud"] = []string{"other", authtest.ClientID} }, good: true},
		"an access token":         {change: func(h, _ map[string]any) { h["typ"] = "at+jwt" }},
		"of another issuer":       {change: func(_, c map[string]any) { c["iss"] = "https://elsewhere.example" }},
		"for another client":      {change: func(_, c map[string]any) { c["aud"] = "kubecast" }},
		"for nobody":              {change: func(_, c map[string]any) { c["aud"] = nil }},
		"no event":                {change: func(_, c map[string]any) { c["events"] = nil }},
		"another event":           {change: func(_, c map[string]any) { c["events"] = map[string]any{"https://x": map[string]any{}} }},
		"an event that is none":   {change: func(_, c map[string]any) { c["events"] = map[string]any{event: true} }},
		"events as a list":        {change: func(_, c map[string]any) { c["events"] = []string{event} }},
		"a nonce":                 {change: func(_, c map[string]any) { c["nonce"] = "" }},
		"without jti":             {change: func(_, c map[string]any) { c["jti"] = nil }},
		"without iat":             {change: func(_, c map[string]any) { c["iat"] = nil }},
		"an iat that is none":     {change: func(_, c map[string]any) { c["iat"] = "now" }},
		"from the future":         {change: func(_, c map[string]any) { c["iat"] = time.Now().Add(time.Hour).Unix() }},
		"from the far future":     {change: func(_, c map[string]any) { c["iat"] = 1e300 }},
		"old":                     {change: func(_, c map[string]any) { c["iat"], c["exp"] = time.Now().Add(-time.Hour).Unix(), nil }},
		"past":                    {change: func(_, c map[string]any) { c["exp"] = time.Now().Unix() }},
		"an exp that is none":     {change: func(_, c map[string]any) { c["exp"] = "never" }},
		"of nobody":               {change: func(_, c map[string]any) { c["sub"] = nil }},
		"of an enormous somebody": {change: func(_, c map[string]any) { c["sub"] = strings.Repeat("x", 1000) }},
		"an ID token":             {token: func(p *authtest.Provider) string { return p.IDToken("") }},
		"signed by another":       {token: func(p *authtest.Provider) string { token := p.LogoutToken(nil); p.RotateKey(); return token }},
		"changed":                 {token: func(p *authtest.Provider) string { token := p.LogoutToken(nil); return token[:len(token)-4] + "AAAA" }},
		"nothing":                 {token: func(*authtest.Provider) string { return "" }},
		"garbage":                 {token: func(*authtest.Provider) string { return rand.Text() }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				provider := authtest.New()
				l := loginAt(t, provider)
				token := provider.LogoutToken(c.change)
				if c.token != nil {
					token = c.token(provider)
				}
				if name == "signed by another" {
					signedIn(t, l, provider) // its keys are known
				}
				in := signedIn(t, l, provider)
				_, err := l.EndAt(t.Context(), token)
				if (err == nil) != c.good || !c.good && !errors.Is(err, ErrRefused) {
					t.Error(err)
				}
				if _, err := sessionsOf(l).Open(t.Context(), in.Session); (err == nil) == c.good {
					t.Errorf("the session: %v", err)
				}
			})
		})
	}
}

// The provider's keys also sign logout tokens, and those of some providers do not say in their header what they are.
func TestLogoutTokenLetsNobodyIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		l := loginAt(t, provider)
		for _, typ := range []any{"logout+jwt", "JWT", "at+jwt"} {
			token := provider.LogoutToken(func(h, _ map[string]any) { h["typ"] = typ })
			if id, err := l.authenticator.Authenticate(t.Context(), token); !errors.Is(err, auth.ErrBadToken) {
				t.Errorf("%v: %v, %v", typ, id, err)
			}
		}
	})
}

// A session does not live on if it is revoked just when another replica, which does not know that yet, renews it.
func TestRenewalDoesNotOutrunARevocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		l := loginAt(t, provider)
		in := signedIn(t, l, provider)
		time.Sleep(59 * time.Minute)
		revoked := time.Now()
		time.Sleep(2 * time.Second)
		renewed, err := l.Renew(t.Context(), in.Session, in.Renewal)
		if err != nil || renewed.Identity.Claims["iat"].(float64) <= float64(revoked.Unix()) {
			t.Fatal(renewed.Identity, err)
		}
		if err := l.revocations.Revoke(t.Context(), "a", auth.Revocation{Issuer: authtest.Issuer, Subject: "jane", Before: revoked}); err != nil {
			t.Fatal(err)
		}
		if _, err := sessionsOf(l).Open(t.Context(), renewed.Session); !errors.Is(err, auth.ErrRevoked) {
			t.Errorf("the renewed session: %v", err)
		}
		asked := provider.Asked("/token")
		for _, s := range []LoggedIn{in, renewed} {
			if _, err := l.Renew(t.Context(), s.Session, s.Renewal); !errors.Is(err, auth.ErrBadToken) || !errors.Is(err, auth.ErrRevoked) {
				t.Errorf("it is renewed: %v", err)
			}
		}
		if provider.Asked("/token") != asked {
			t.Error("the provider is asked for a session that was revoked")
		}
		if again := signedIn(t, l, provider); again.Session == "" {
			t.Error("who signs in again is not let in")
		}
		// A barred user is told so, and nothing else happens.
		if err := l.revocations.Revoke(t.Context(), "b", auth.Revocation{Username: "jane", Until: time.Now().Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		pending, answer := comeBack(t, l, provider)
		keys := provider.Asked("/keys")
		if _, err := l.Finish(t.Context(), pending, answer); !errors.Is(err, ErrDenied) || provider.Asked("/keys") != keys {
			t.Errorf("barred: %v", err)
		}
		// Once the revocation is forgotten, kept cookies are too old.
		time.Sleep(auth.RenewalTime + time.Hour)
		if _, err := l.Renew(t.Context(), in.Session, in.Renewal); !errors.Is(err, auth.ErrTokenExpired) {
			t.Error(err)
		}
	})
}
