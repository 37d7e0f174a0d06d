package oidc

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/authtest"
	"github.com/kubecast/kubecast/internal/auth/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var usual = auth.Claims{Username: "sub", Groups: "groups"}

func mustSealer(t testing.TB) *session.Sealer {
	t.Helper()
	s, err := session.NewSealer(bytes.Repeat([]byte{1}, session.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// believing is a Confirmer that confirms every identity.
type believing struct{}

func (believing) Confirm(_ context.Context, id auth.Identity) (auth.Identity, error) { return id, nil }

// party is a Login with what it needs.
type party struct {
	*Login
	authenticator *auth.Authenticator
	revocations   *auth.Revocations
}

// loginAt runs a Login at a provider in a synctest bubble, with changed options.
func loginAt(t *testing.T, provider *authtest.Provider, change ...func(*Options)) party {
	t.Helper()
	revocations := auth.NewRevocations(auth.RevocationOptions{Keep: 48 * time.Hour})
	a, err := auth.New(auth.Options{
		Issuers:     []auth.Issuer{{Issuer: authtest.Issuer, Audiences: []string{"kubecast", authtest.ClientID}, Claims: usual}},
		Transport:   provider,
		Revocations: revocations,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	authtest.Run(t, a.Run)
	opts := Options{Issuer: authtest.Issuer, ClientID: authtest.ClientID, RedirectURL: authtest.RedirectURL}
	for _, c := range change {
		c(&opts)
	}
	l, err := New(opts, a, mustSealer(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	// A request for metadata serves later callers, too, and so outlives those who began it. It ends by itself, but time
	// in a bubble stands still once its test has returned.
	t.Cleanup(func() { <-l.provider.flight.DoChan("", func() (any, error) { return nil, nil }) })
	return party{l, a, revocations}
}

// comeBack begins a login and signs in. It returns what the browser kept, and the answer with which it comes back.
func comeBack(t *testing.T, l party, provider *authtest.Provider) (pending string, answer url.Values) {
	t.Helper()
	begun, err := l.Begin(t.Context(), "/#jobs")
	if err != nil {
		t.Fatal(err)
	}
	callback, err := provider.SignIn(begun.Location)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(callback)
	if err != nil {
		t.Fatal(err)
	}
	if begun.Name == "" || begun.Name != LoginName(u.Query().Get("state")) {
		t.Errorf("the login is called %q, and comes back as %q", begun.Name, LoginName(u.Query().Get("state")))
	}
	return begun.Pending, u.Query()
}

func signedIn(t *testing.T, l party, provider *authtest.Provider) LoggedIn {
	t.Helper()
	pending, answer := comeBack(t, l, provider)
	in, err := l.Finish(t.Context(), pending, answer)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestLoginIsTheUserOfTheIDToken(t *testing.T) {
	for name, secret := range map[string]string{"a public client": "", "with a secret": "s+cr/et %"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				provider := authtest.New()
				l := loginAt(t, provider, func(o *Options) {
					if secret != "" {
						o.ClientSecretFile = file
					}
				})
				provider.Set(func(p *authtest.Provider) { p.Secret = secret })
				begun, err := l.Begin(t.Context(), "/")
				if err != nil {
					t.Fatal(err)
				}
				if u, _ := url.Parse(begun.Location); u.Query().Get("scope") != "openid email groups offline_access" {
					t.Errorf("asks for %q", u.Query().Get("scope"))
				}
				pending, answer := comeBack(t, l, provider)
				in, err := l.Finish(t.Context(), pending, answer)
				if err != nil {
					t.Fatal(err)
				}
				id, err := sessionsOf(l).Open(t.Context(), in.Session)
				if err != nil || id.Username != "jane" || id.Groups[0] != "platform" || !id.ExpiresAt.Equal(in.Identity.ExpiresAt) || in.ReturnTo != "/#jobs" {
					t.Errorf("%+v %+v %v", id, in, err)
				}
				if !l.Renewable(in.Session, in.Renewal) {
					t.Error("cannot be renewed")
				}
				if n := testutil.ToFloat64(l.logins.WithLabelValues("finished", "ok")); n != 1 {
					t.Errorf("%v logins are counted", n)
				}
				if secret != "" && provider.Forms["/token"].Has("client_secret") {
					t.Error("the secret is sent in the form, though the provider did not ask for that")
				}
			})
		})
	}
}

// A browser that comes back with anything but the end of its own login is refused.
func TestLoginsThatAreNoneAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		provider func(*authtest.Provider)
		change   func(pending *string, answer url.Values)
		later    time.Duration
		want     error
	}{
		"good":                       {},
		"another state":              {change: func(_ *string, a url.Values) { a.Set("state", strings.Repeat("A", 26)) }, want: ErrRefused},
		"no state":                   {change: func(_ *string, a url.Values) { a.Del("state") }, want: ErrRefused},
		"no cookie":                  {change: func(p *string, _ url.Values) { *p = "" }, want: ErrRefused},
		"a changed cookie":           {change: func(p *string, _ url.Values) { *p = (*p)[:len(*p)-2] + "AA" }, want: ErrRefused},
		"too late":                   {later: LoginTime + time.Second, want: ErrRefused},
		"just in time":               {later: LoginTime - time.Second},
		"no code":                    {change: func(_ *string, a url.Values) { a.Del("code") }, want: ErrRefused},
		"another's code":             {change: func(_ *string, a url.Values) { a.Set("code", "stolen") }, want: ErrRefused},
		"of another provider":        {change: func(_ *string, a url.Values) { a.Set("iss", "https://evil.example") }, want: ErrRefused},
		"names the provider":         {change: func(_ *string, a url.Values) { a.Set("iss", authtest.Issuer) }},
		"does not name the provider": {provider: metadata("authorization_response_iss_parameter_supported", true), want: ErrRefused},
		"denied":                     {change: func(_ *string, a url.Values) { a.Del("code"); a.Set("error", "access_denied") }, want: ErrDenied},
		"provider in trouble":        {change: func(_ *string, a url.Values) { a.Set("error", "server_error") }, want: ErrProviderAway},
		"another nonce":              {provider: claim("nonce", "another"), want: ErrRefused},
		"no nonce":                   {provider: claim("nonce", nil), want: ErrRefused},
		"a nonce that is no text":    {provider: claim("nonce", 7), want: ErrRefused},
		"for another client":         {provider: claim("aud", "another"), want: ErrRefused},
		"for another of ours":        {provider: claim("aud", "kubecast"), want: ErrRefused},
		"for us and others":          {provider: func(p *authtest.Provider) { both(p, authtest.ClientID) }},
		"for others by way of us":    {provider: func(p *authtest.Provider) { both(p, "another") }, want: ErrRefused},
		"of another issuer":          {provider: claim("iss", "https://evil.example"), want: ErrRefused},
		"without an end":             {provider: claim("exp", nil), want: ErrRefused},
		"ended":                      {provider: claim("exp", 1000), want: ErrRefused},
		"without a user":             {provider: claim("sub", nil), want: ErrRefused},
		"of a reserved group":        {provider: claim("groups", []string{"system:masters"}), want: ErrRefused},
		"no ID token":                {provider: answer("id_token", nil), want: ErrRefused},
		"an ID token that is none":   {provider: answer("id_token", "eyJ.x.y"), want: ErrRefused},
		"a signature of others":      {provider: answer("id_token", authtest.New().IDToken("")), want: ErrRefused},
		"token endpoint refuses":     {provider: func(p *authtest.Provider) { p.Fails = "invalid_grant" }, want: ErrRefused},
		"token endpoint in trouble":  {provider: func(p *authtest.Provider) { p.Fails = "503" }, want: ErrProviderAway},
		"client is not known":        {provider: func(p *authtest.Provider) { p.Secret = "changed" }, want: ErrProviderAway},
		"endpoint over plain http":   {provider: metadata("token_endpoint", "http://id.example.org/token"), want: ErrProviderAway},
		"metadata of another":        {provider: metadata("issuer", "https://evil.example"), want: ErrProviderAway},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				provider := authtest.New()
				l := loginAt(t, provider)
				if c.provider != nil {
					provider.Set(c.provider)
				}
				begun, err := l.Begin(t.Context(), "/#jobs")
				if err != nil {
					if !errors.Is(err, c.want) || c.want == nil {
						t.Errorf("Begin: %v, not %v", err, c.want)
					}
					return
				}
				callback, err := provider.SignIn(begun.Location)
				if err != nil {
					t.Fatal(err)
				}
				u, _ := url.Parse(callback)
				pending, values := begun.Pending, u.Query()
				code := values.Get("code")
				if c.change != nil {
					c.change(&pending, values)
				}
				time.Sleep(c.later)
				in, err := l.Finish(t.Context(), pending, values)
				switch {
				case c.want == nil && (err != nil || in.Session == ""):
					t.Errorf("%v", err)
				case c.want != nil && (!errors.Is(err, c.want) || in.Session+in.Renewal != ""):
					t.Errorf("%v, not %v; %+v", err, c.want, in)
				case err != nil && strings.Contains(err.Error(), code):
					t.Errorf("the log would have the code: %v", err)
				}
			})
		})
	}
}

// Keys belong to their issuer: another trusted issuer cannot sign in the users of this one.
func TestIDTokenOfAnotherTrustedIssuerIsRefused(t *testing.T) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	file := authtest.PublicFile(t, key)
	const another = authtest.Issuer + "/other"
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		a, err := auth.New(auth.Options{
			Issuers: []auth.Issuer{
				{Issuer: authtest.Issuer, Audiences: []string{authtest.ClientID}, Claims: usual},
				{Issuer: another, Audiences: []string{authtest.ClientID}, PublicKeyFile: file, Claims: usual},
			},
			Transport: provider,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		authtest.Run(t, a.Run)
		l, err := New(Options{Issuer: authtest.Issuer, ClientID: authtest.ClientID, RedirectURL: authtest.RedirectURL}, a, mustSealer(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		begun, err := l.Begin(t.Context(), "/")
		if err != nil {
			t.Fatal(err)
		}
		callback, err := provider.SignIn(begun.Location)
		if err != nil {
			t.Fatal(err)
		}
		location, _ := url.Parse(begun.Location)
		other := must(jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
			"iss": another, "aud": authtest.ClientID, "sub": "jane", "exp": time.Now().Add(time.Hour).Unix(), "nonce": location.Query().Get("nonce"),
		}).SignedString(key))
		if _, err := a.Authenticate(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		provider.Set(answer("id_token", other))
		u, _ := url.Parse(callback)
		if _, err := l.Finish(t.Context(), begun.Pending, u.Query()); !errors.Is(err, ErrRefused) {
			t.Errorf("%v", err)
		}
	})
}

func claim(name string, value any) func(*authtest.Provider) {
	return func(p *authtest.Provider) { p.Claims = func(c map[string]any) { c[name] = value } }
}

func answer(name string, value any) func(*authtest.Provider) {
	return func(p *authtest.Provider) { p.Answer = func(a map[string]any) { a[name] = value } }
}

func metadata(name string, value any) func(*authtest.Provider) {
	return func(p *authtest.Provider) { p.Metadata = func(m map[string]any) { m[name] = value } }
}

func both(p *authtest.Provider, party string) {
	p.Claims = func(c map[string]any) { c["aud"], c["azp"] = []string{authtest.ClientID, "another"}, party }
}

func TestLoginEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		l := loginAt(t, provider)
		pending, answer := comeBack(t, l, provider)
		if _, err := l.Finish(t.Context(), pending, answer); err != nil {
			t.Fatal(err)
		}
		asked := provider.Asked("/token")
		if _, err := l.Finish(t.Context(), pending, answer); !errors.Is(err, ErrRefused) {
			t.Errorf("again: %v", err)
		}
		if provider.Asked("/token") != asked {
			t.Error("the provider is asked again")
		}
		// Another replica does not know that the login has ended. There the provider refuses the code.
		if _, err := loginAt(t, provider).Finish(t.Context(), pending, answer); !errors.Is(err, ErrRefused) {
			t.Errorf("at another replica: %v", err)
		}
	})
}

func TestAnyReplicaFinishesAndRenewsALogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		first, second := loginAt(t, provider), loginAt(t, provider)
		pending, answer := comeBack(t, first, provider)
		in, err := second.Finish(t.Context(), pending, answer)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(provider.Lasts - time.Minute)
		renewed, err := first.Renew(t.Context(), in.Session, in.Renewal)
		if err != nil || !renewed.Identity.ExpiresAt.After(in.Identity.ExpiresAt) {
			t.Errorf("%v %v", renewed.Identity.ExpiresAt, err)
		}
	})
}

func TestProviderThatWasAwayIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		provider.Away = true
		l := loginAt(t, provider)
		for range 5 {
			if _, err := l.Begin(t.Context(), "/"); !errors.Is(err, ErrProviderAway) {
				t.Fatal(err)
			}
		}
		provider.Set(func(p *authtest.Provider) { p.Away = false })
		time.Sleep(2 * time.Second)
		pending, answer := comeBack(t, l, provider)
		time.Sleep(10 * time.Second) // for the keys, which are fetched independently
		if _, err := l.Finish(t.Context(), pending, answer); err != nil {
			t.Error(err)
		}
		provider.Set(func(p *authtest.Provider) { p.Away = true })
		time.Sleep(2 * metadataFor)
		if _, err := l.Begin(t.Context(), "/"); err != nil {
			t.Errorf("what was known is forgotten: %v", err)
		}
	})
}

// Strangers' tokens cause a fetch of the keys only now and then. The provider's own tokens cause it at once, or a
// rotation would lock users out.
func TestNewKeyOfTheProviderIsKnownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		provider.Lasts = 20 * time.Second
		l := loginAt(t, provider)
		in := signedIn(t, l, provider)
		for range 5 {
			time.Sleep(6 * time.Second)
			provider.RotateKey()
			renewed, err := l.Renew(t.Context(), in.Session, in.Renewal)
			if err != nil {
				t.Fatal(err)
			}
			in = renewed
		}
	})
}

// Codes and secrets go to the provider's own endpoint and nowhere else.
func TestRedirectedExchangeIsNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		l := loginAt(t, provider)
		pending, answer := comeBack(t, l, provider)
		l.exchange.Transport = redirecting{provider}
		if _, err := l.Finish(t.Context(), pending, answer); !errors.Is(err, ErrProviderAway) {
			t.Error(err)
		}
		if provider.Asked("/elsewhere") != 0 {
			t.Error("the code went elsewhere")
		}
	})
}

type redirecting struct{ next http.RoundTripper }

func (r redirecting) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(req)
	if err == nil && req.URL.Path == "/token" {
		response.StatusCode = http.StatusTemporaryRedirect
		response.Header.Set("Location", authtest.Issuer+"/elsewhere")
	}
	return response, err
}

func TestReturnPathLeadsNowhereElse(t *testing.T) {
	for text, want := range map[string]bool{
		"/": true, "/#jobs?ns=team-a&q=a%20b": true, "/api/v1/pods?limit=5": true, "/a//b": true,
		"": false, "jobs": false, "https://evil.example/": false, "//evil.example": false, "///evil.example": false, `/\evil.example`: false,
		"/\t/evil.example": false, "/\n/evil.example": false, "/%zz": false, "javascript:alert(1)": false, "/ä": false, "/a b": false,
		"/auth/logout": false, "/auth/login": false, "/x\x00": false, "/" + strings.Repeat("x", maxReturnPath): false, "\\/evil.example": false,
	} {
		if got := IsReturnPath(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzIsReturnPath(f *testing.F) {
	for _, seed := range []string{"/", "//x", "/\\x", "/#a", "/%2f%2fx", "/./ /x", "/..//x", "/x?y=//z"} {
		f.Add(seed)
	}
	home, err := url.Parse("https://kubecast.example.org/auth/callback")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !IsReturnPath(text) {
			return
		}
		// Browsers read a backslash as a slash.
		u, err := home.Parse(strings.ReplaceAll(text, `\`, "/"))
		if err != nil || u.Host != home.Host || u.Scheme != home.Scheme || strings.HasPrefix(u.EscapedPath(), "//") && u.Host == "" {
			t.Errorf("%q leads to %v", text, u)
		}
	})
}

// Whatever invented answer a browser comes back with, it is refused, with an error that does not repeat it.
func FuzzFinish(f *testing.F) {
	provider := authtest.New()
	a, err := auth.New(auth.Options{Issuers: []auth.Issuer{{Issuer: authtest.Issuer, Audiences: []string{authtest.ClientID}, Claims: usual}}, Transport: provider}, nil)
	if err != nil {
		f.Fatal(err)
	}
	sealer := mustSealer(f)
	l, err := New(Options{Issuer: authtest.Issuer, ClientID: authtest.ClientID, RedirectURL: authtest.RedirectURL}, a, sealer, nil)
	if err != nil {
		f.Fatal(err)
	}
	begun, err := l.Begin(f.Context(), "/")
	if err != nil {
		f.Fatal(err)
	}
	u, _ := url.Parse(begun.Location)
	state := u.Query().Get("state")
	session, err := session.NewSessions(sealer, believing{}).Seal(auth.Identity{Username: "jane", ExpiresAt: time.Now().Add(time.Hour)})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][4]string{
		{begun.Pending, "x", "", ""}, {begun.Pending, state + "A", "code", ""}, {session, state, "code", ""}, {"", state, "code", "access_denied"},
		{begun.Pending[:20], "", "", "server_error"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, pending, state2, code, failure string) {
		if pending == begun.Pending && state2 == state {
			return
		}
		values := url.Values{"state": {state2}, "code": {code}}
		if failure != "" {
			values.Set("error", failure)
		}
		in, err := l.Finish(context.Background(), pending, values)
		if !errors.Is(err, ErrRefused) || in.Session+in.Renewal+in.Identity.Username != "" {
			t.Errorf("%+v %v", in, err)
		}
		if len(code) > 20 && strings.Contains(err.Error(), code) {
			t.Errorf("%v", err)
		}
		if name := LoginName(state2); !strings.HasPrefix(state2, name) {
			t.Errorf("%q is called %q", state2, name)
		}
		if _, err := l.Renew(context.Background(), pending, code); !errors.Is(err, auth.ErrBadToken) {
			t.Errorf("renewed: %v", err)
		}
		if location := l.End(context.Background(), pending); location != "" {
			t.Errorf("ended at %s", location)
		}
	})
}

func TestRenewedSessionGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		provider.Lasts = 5 * time.Minute
		l := loginAt(t, provider)
		in := signedIn(t, l, provider)
		for range 5 {
			time.Sleep(4 * time.Minute)
			provider.RotateKey()
			renewed, err := l.Renew(t.Context(), in.Session, in.Renewal)
			if err != nil || renewed.Session == "" || !renewed.Identity.ExpiresAt.After(in.Identity.ExpiresAt) {
				t.Fatalf("%+v %v", renewed, err)
			}
			in = renewed
		}
		time.Sleep(time.Hour) // the machine slept
		if _, err := sessionsOf(l).Open(t.Context(), in.Session); !errors.Is(err, auth.ErrTokenExpired) {
			t.Errorf("%v", err)
		}
		if !l.Renewable(in.Session, in.Renewal) {
			t.Error("what has ended cannot be renewed")
		}
		if renewed, err := l.Renew(t.Context(), in.Session, in.Renewal); err != nil || !time.Now().Before(renewed.Identity.ExpiresAt) {
			t.Errorf("%v", err)
		}
	})
}

// Several tabs renew at the same time, each with the cookies that it had when it began, and answers get lost. A
// provider that takes a token that is used twice for stolen must never see one twice.
func TestRenewalsAtOnceAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		l := loginAt(t, provider)
		in := signedIn(t, l, provider)
		time.Sleep(provider.Lasts - time.Minute)
		hold := make(chan struct{})
		provider.Set(func(p *authtest.Provider) { p.Hold = hold })
		asked := provider.Asked("/token")
		results := make([]LoggedIn, 8)
		var renewing sync.WaitGroup
		for i := range results {
			renewing.Go(func() {
				ctx := t.Context()
				if i == 0 { // a browser that leaves must not end the renewal for the others
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Second)
					defer cancel()
				}
				results[i], _ = l.Renew(ctx, in.Session, in.Renewal)
			})
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		close(hold)
		renewing.Wait()
		for i, r := range results[1:] {
			if r.Session == "" || r.Session != results[1].Session {
				t.Errorf("%d: %+v", i, r)
			}
		}
		time.Sleep(30 * time.Second)
		late, err := l.Renew(t.Context(), in.Session, in.Renewal)
		if err != nil || late.Session != results[1].Session {
			t.Errorf("whose answer was lost: %v", err)
		}
		if n := provider.Asked("/token") - asked; n != 1 {
			t.Errorf("the provider was asked %d times", n)
		}
		// A session that already has the new cookies is left as it is.
		fresh := signedIn(t, l, provider)
		asked = provider.Asked("/token")
		if again, err := l.Renew(t.Context(), fresh.Session, fresh.Renewal); err != nil || again.Session != "" || provider.Asked("/token") != asked {
			t.Errorf("%+v %v", again, err)
		}
	})
}

// A session that was renewed a minute ago may have ended since, if tokens are that short-lived.
func TestRenewalWhoseAnswerHasEndedGoesFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		provider.Lasts = 20 * time.Second
		l := loginAt(t, provider)
		in := signedIn(t, l, provider)
		time.Sleep(15 * time.Second)
		if _, err := l.Renew(t.Context(), in.Session, in.Renewal); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		late, err := l.Renew(t.Context(), in.Session, in.Renewal)
		if err != nil || !time.Now().Before(late.Identity.ExpiresAt) {
			t.Errorf("%v %v", late.Identity.ExpiresAt, err)
		}
	})
}

func TestProviderThatKeepsRefreshTokensIsAskedEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		provider.Lasts, provider.Rotates = 40*time.Second, false
		l := loginAt(t, provider)
		in := signedIn(t, l, provider)
		for range 4 {
			time.Sleep(30 * time.Second)
			renewed, err := l.Renew(t.Context(), in.Session, in.Renewal)
			if err != nil || !renewed.Identity.ExpiresAt.After(in.Identity.ExpiresAt) {
				t.Fatalf("%v %v", renewed.Identity.ExpiresAt, err)
			}
			in = renewed
		}
	})
}

func TestRenewalsThatAreNoneAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		provider func(*authtest.Provider)
		change   func(in *LoggedIn, other LoggedIn)
		want     error
	}{
		"good":                 {},
		"renewal of another":   {change: func(in *LoggedIn, other LoggedIn) { in.Renewal = other.Renewal }, want: auth.ErrBadToken},
		"session of another":   {change: func(in *LoggedIn, other LoggedIn) { in.Session = other.Session }, want: auth.ErrBadToken},
		"no session":           {change: func(in *LoggedIn, _ LoggedIn) { in.Session = "" }, want: auth.ErrBadToken},
		"no renewal":           {change: func(in *LoggedIn, _ LoggedIn) { in.Renewal = "" }, want: auth.ErrBadToken},
		"the one as the other": {change: func(in *LoggedIn, _ LoggedIn) { in.Session = in.Renewal }, want: auth.ErrBadToken},
		"session of a token": {change: func(in *LoggedIn, _ LoggedIn) {
			in.Session = must(session.NewSessions(mustSealer(t), believing{}).Seal(in.Identity))
		}, want: auth.ErrBadToken},
		"revoked":                  {provider: func(p *authtest.Provider) { p.Fails = "invalid_grant" }, want: auth.ErrBadToken},
		"provider in trouble":      {provider: func(p *authtest.Provider) { p.Fails = "503" }, want: ErrProviderAway},
		"provider away":            {provider: func(p *authtest.Provider) { p.Away = true }, want: ErrProviderAway},
		"another user":             {provider: claim("sub", "mallory"), want: auth.ErrBadToken},
		"another client":           {provider: claim("aud", "kubecast"), want: auth.ErrBadToken},
		"no ID token":              {provider: answer("id_token", nil), want: auth.ErrBadToken},
		"a token that is past":     {provider: claim("exp", 1000), want: auth.ErrBadToken},
		"groups that are reserved": {provider: claim("groups", "system:masters"), want: auth.ErrBadToken},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				provider := authtest.New()
				l := loginAt(t, provider)
				in, other := signedIn(t, l, provider), signedIn(t, l, provider)
				time.Sleep(provider.Lasts - 30*time.Second)
				if c.provider != nil {
					provider.Set(c.provider)
				}
				if c.change != nil {
					c.change(&in, other)
				}
				renewed, err := l.Renew(t.Context(), in.Session, in.Renewal)
				if !errors.Is(err, c.want) || (err == nil) != (renewed.Session != "") {
					t.Errorf("%+v %v, not %v", renewed, err, c.want)
				}
			})
		})
	}
}

// noise is a text that cannot be compressed.
func noise(n int) (text string) {
	for len(text) < n {
		text += rand.Text()
	}
	return text[:n]
}

// What does not fit into a cookie is an error, or is left out; it is never truncated.
func TestSessionsFitIntoCookies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		l := loginAt(t, provider)
		provider.Set(answer("refresh_token", noise(2000)))
		in := signedIn(t, l, provider)
		if in.Renewal == "" || len(in.Renewal) > session.MaxCookie || len(in.Session) > session.MaxCookie {
			t.Errorf("%d and %d bytes", len(in.Session), len(in.Renewal))
		}
		provider.Set(claim("groups", []string{noise(6000)}))
		pending, answered := comeBack(t, l, provider)
		if _, err := l.Finish(t.Context(), pending, answered); !errors.Is(err, session.ErrTooLarge) {
			t.Errorf("%v", err)
		}
		provider.Set(func(p *authtest.Provider) {
			p.Claims = nil
			p.Answer = func(a map[string]any) { a["refresh_token"] = noise(6000) }
		})
		in = signedIn(t, l, provider)
		if in.Renewal != "" || in.Session == "" || l.Renewable(in.Session, in.Renewal) {
			t.Errorf("%d bytes", len(in.Renewal))
		}
	})
}

func TestLogoutEndsTheSessionAtTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := authtest.New()
		l := loginAt(t, provider)
		in := signedIn(t, l, provider)
		location, err := url.Parse(l.End(t.Context(), in.Renewal))
		q := location.Query()
		if err != nil || location.Scheme+"://"+location.Host+location.Path != authtest.Issuer+"/logout" || q.Get("client_id") != authtest.ClientID ||
			q.Get("post_logout_redirect_uri") != "https://kubecast.example.org/" || strings.Count(q.Get("id_token_hint"), ".") != 2 {
			t.Errorf("%v %v", location, err)
		}
		time.Sleep(time.Minute)
		if _, err := l.Renew(t.Context(), in.Session, in.Renewal); !errors.Is(err, auth.ErrBadToken) {
			t.Errorf("the refresh token was not taken back: %v", err)
		}
		in = signedIn(t, l, provider)
		provider.Set(func(p *authtest.Provider) { p.Away = true })
		if l.End(t.Context(), in.Renewal) == "" {
			t.Error("where a session ends is forgotten")
		}
		if l.End(t.Context(), "nonsense") != "" || l.End(t.Context(), "") != "" {
			t.Error("who is nobody is sent to the provider")
		}
		provider.Set(func(p *authtest.Provider) { p.Away = false; metadata("end_session_endpoint", nil)(p) })
		other := loginAt(t, provider)
		if location := other.End(t.Context(), in.Renewal); location != "" {
			t.Errorf("%s", location)
		}
	})
}

func TestLoginNeedsItsIssuerAndClient(t *testing.T) {
	a, err := auth.New(auth.Options{Issuers: []auth.Issuer{{Issuer: authtest.Issuer, Audiences: []string{"kubecast"}, Claims: usual}}, Transport: authtest.New()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	good := Options{Issuer: authtest.Issuer, ClientID: "kubecast", RedirectURL: authtest.RedirectURL}
	for field, change := range map[string]func(*Options){
		"":                 func(*Options) {},
		"Issuer":           func(o *Options) { o.Issuer = "https://other.example" },
		"ClientID":         func(o *Options) { o.ClientID = "portal" },
		"RedirectURL":      func(o *Options) { o.RedirectURL = "http://kubecast.example.org/auth/callback" },
		"ClientSecretFile": func(o *Options) { o.ClientSecretFile = "/does/not/exist" },
	} {
		opts := good
		change(&opts)
		_, err := New(opts, a, mustSealer(t), nil)
		if (err == nil) != (field == "") || err != nil && !strings.Contains(err.Error(), "Options."+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// sessionsOf returns the Sessions for what a Login makes.
func sessionsOf(l party) *session.Sessions { return session.NewSessions(l.sealer, l.client) }
