package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/kubecast/kubecast/internal/auth/authtest"
)

func TestEveryPinnedAlgorithmIsAccepted(t *testing.T) {
	a := fromFile(t, usual, rsaKey, ecKey, ec384Key, ec521Key, edKey)
	keys := map[string]any{"EdDSA": edKey, "ES256": ecKey, "ES384": ec384Key, "ES512": ec521Key}
	for _, alg := range algorithms {
		key, ok := keys[alg]
		if !ok {
			key = rsaKey
		}
		// Any kid will do if the source of the keys names none.
		token := sign(t, jwt.GetSigningMethod(alg), key, goodClaims(), map[string]any{"kid": "whatever"})
		id, err := a.Authenticate(t.Context(), token)
		if err != nil || id.Username != "jane" {
			t.Errorf("%s: %v, %v", alg, id, err)
		}
	}
}

func TestIdentityIsWhatKubernetesWouldKnow(t *testing.T) {
	exp := time.Now().Add(time.Hour).Truncate(time.Second)
	cases := map[string]struct {
		claims  Claims
		changes map[string]any
		user    string
		groups  []string
	}{
		"plain":             {usual, nil, "jane", []string{"team-a", "team-b", "system:authenticated"}},
		"prefixes":          {Claims{"sub", "groups", "oidc:", "org/"}, nil, "oidc:jane", []string{"org/team-a", "org/team-b", "system:authenticated"}},
		"prefixed reserved": {Claims{"sub", "groups", "oidc:", "org/"}, map[string]any{"sub": "system:admin", "groups": "system:masters"}, "oidc:system:admin", []string{"org/system:masters", "system:authenticated"}},
		"one group":         {usual, map[string]any{"groups": "team-a"}, "jane", []string{"team-a", "system:authenticated"}},
		"no groups":         {usual, map[string]any{"groups": nil}, "jane", []string{"system:authenticated"}},
		"empty groups":      {usual, map[string]any{"groups": []string{"", ""}}, "jane", []string{"system:authenticated"}},
		"groups twice":      {usual, map[string]any{"groups": []string{"b", "a", "b"}}, "jane", []string{"a", "b", "system:authenticated"}},
		"groups not mapped": {Claims{Username: "sub"}, nil, "jane", []string{"system:authenticated"}},
		"other claims":      {Claims{Username: "https://example.org/login", Groups: "roles"}, map[string]any{"https://example.org/login": "j.doe", "roles": []string{"x"}}, "j.doe", []string{"x", "system:authenticated"}},
		"verified address":  {Claims{Username: "email"}, map[string]any{"email": "j@example.org", "email_verified": true}, "j@example.org", []string{"system:authenticated"}},
		"address":           {Claims{Username: "email"}, map[string]any{"email": "j@example.org"}, "j@example.org", []string{"system:authenticated"}},
		"other audience":    {usual, map[string]any{"aud": []string{"x", "portal"}}, "jane", []string{"team-a", "team-b", "system:authenticated"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := fromFile(t, c.claims, ecKey)
			id, err := a.Authenticate(t.Context(), sign(t, jwt.SigningMethodES256, ecKey, goodClaims(c.changes, map[string]any{"exp": exp.Unix()}), nil))
			if err != nil {
				t.Fatal(err)
			}
			if id.Claims["iss"] != testIssuer || id.Anonymous {
				t.Errorf("claims %v, anonymous %v", id.Claims, id.Anonymous)
			}
			id.Claims = nil
			if diff := cmp.Diff(Identity{Username: c.user, Groups: c.groups, ExpiresAt: exp}, id); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutTokenNobodyUnlessAnonymous(t *testing.T) {
	closed, err := New(Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := closed.Authenticate(t.Context(), ""); !errors.Is(err, ErrNoCredentials) {
		t.Errorf("%v, %v", id, err)
	}
	open, err := New(Options{Anonymous: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Identity{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}, Anonymous: true}
	if id, err := open.Authenticate(t.Context(), ""); err != nil || !cmp.Equal(id, want) {
		t.Errorf("%v, %v", id, err)
	}
	if id, err := open.Authenticate(t.Context(), "bad"); !errors.Is(err, ErrBadToken) {
		t.Errorf("a bad token is taken for none: %v, %v", id, err)
	}
}

// badTokens are tokens that fromFile(t, usual, rsaKey, ecKey) must refuse.
func badTokens(t testing.TB) map[string]string {
	es256 := jwt.SigningMethodES256
	changed := func(name string, value any) string {
		return sign(t, es256, ecKey, goodClaims(map[string]any{name: value}), nil)
	}
	withHeader := func(name string, value any) string {
		return sign(t, es256, ecKey, goodClaims(), map[string]any{name: value})
	}
	good := sign(t, es256, ecKey, goodClaims(), nil)
	parts := strings.Split(good, ".")
	text := func(header, claims string) string {
		b64 := base64.RawURLEncoding
		signing := b64.EncodeToString([]byte(header)) + "." + b64.EncodeToString([]byte(claims))
		sig, err := es256.Sign(signing, ecKey)
		if err != nil {
			t.Fatal(err)
		}
		return signing + "." + b64.EncodeToString(sig)
	}
	claims := string(must(json.Marshal(goodClaims())))
	spki := authtest.PublicPEM(t, rsaKey)
	p384 := fakeES256{}.sign(t)
	embedded := jwk(t, "", otherKey, nil)

	return map[string]string{
		"alg none":                     sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, goodClaims(), nil),
		"alg none, with a signature":   text(`{"alg":"none"}`, claims),
		"alg None":                     text(`{"alg":"None"}`, claims),
		"alg missing":                  text(`{}`, claims),
		"alg of another type":          text(`{"alg":["ES256"]}`, claims),
		"header null":                  text(`null`, claims),
		"header no object":             text(`[]`, claims),
		"HMAC with the public PEM":     sign(t, jwt.SigningMethodHS256, spki, goodClaims(), nil),
		"HMAC with the public DER":     sign(t, jwt.SigningMethodHS512, must(jwt.ParseRSAPublicKeyFromPEM(spki)).N.Bytes(), goodClaims(), nil),
		"HMAC with the published JWK":  sign(t, jwt.SigningMethodHS256, must(json.Marshal(jwk(t, "", ecKey, nil))), goodClaims(), nil),
		"HMAC with nothing":            sign(t, jwt.SigningMethodHS256, []byte{}, goodClaims(), nil),
		"another's key":                sign(t, es256, otherKey, goodClaims(), nil),
		"another's key in the header":  sign(t, es256, otherKey, goodClaims(), map[string]any{"jwk": embedded}),
		"another's key by address":     sign(t, es256, otherKey, goodClaims(), map[string]any{"jku": "https://evil.example/keys"}),
		"ES256 on another curve":       p384,
		"RSA's alg with an EC key":     strings.Join([]string{base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256"}`)), parts[1], parts[2]}, "."),
		"signature missing":            parts[0] + "." + parts[1] + ".",
		"signature of another token":   strings.Join([]string{parts[0], strings.Split(changed("sub", "joe"), ".")[1], parts[2]}, "."),
		"signature with a bit changed": good[:len(good)-1] + string(good[len(good)-1]^1),
		"iss missing":                  changed("iss", nil),
		"iss unknown":                  changed("iss", "https://evil.example"),
		"iss with a slash more":        changed("iss", testIssuer+"/"),
		"iss in other case":            changed("iss", strings.ToUpper(testIssuer)),
		"iss a list":                   changed("iss", []string{testIssuer}),
		"ISS":                          sign(t, es256, ecKey, goodClaims(map[string]any{"iss": nil, "ISS": testIssuer}), nil),
		"aud missing":                  changed("aud", nil),
		"aud another's":                changed("aud", "other"),
		"aud empty":                    changed("aud", ""),
		"aud empty list":               changed("aud", []string{}),
		"aud alike":                    changed("aud", "kubecast2"),
		"aud a number":                 changed("aud", 7),
		"exp missing":                  changed("exp", nil),
		"exp zero":                     changed("exp", 0),
		"exp past":                     changed("exp", time.Now().Add(-time.Minute).Unix()),
		"exp this second":              changed("exp", time.Now().Unix()),
		"exp negative":                 changed("exp", -1),
		"exp a string":                 changed("exp", "9999999999"),
		"exp beyond what a clock has":  changed("exp", 1e300),
		"exp beyond int64":             changed("exp", float64(math.MaxInt64)),
		"nbf in the future":            changed("nbf", time.Now().Add(time.Minute).Unix()),
		"nbf beyond what a clock has":  changed("nbf", 1e300),
		"nbf a string":                 changed("nbf", "1"),
		"sub missing":                  changed("sub", nil),
		"sub empty":                    changed("sub", ""),
		"sub a number":                 changed("sub", 7),
		"sub a list":                   changed("sub", []string{"jane"}),
		"sub anonymous":                changed("sub", "system:anonymous"),
		"sub a controller's":           changed("sub", "system:kube-controller-manager"),
		"sub a service account's":      changed("sub", "system:serviceaccount:kube-system:default"),
		"groups a number":              changed("groups", 7),
		"groups an object":             changed("groups", map[string]any{"system:masters": true}),
		"groups with a number":         changed("groups", []any{"a", 7}),
		"groups nested":                changed("groups", []any{[]any{"system:masters"}}),
		"groups with masters":          changed("groups", []string{"a", "system:masters"}),
		"groups masters":               changed("groups", "system:masters"),
		"groups with nodes":            changed("groups", []string{"system:nodes"}),
		"crit":                         withHeader("crit", []string{"exp"}),
		"crit empty":                   withHeader("crit", []string{}),
		"b64 false":                    sign(t, es256, ecKey, goodClaims(), map[string]any{"crit": []string{"b64"}, "b64": false}),
		"cty of a nested token":        withHeader("cty", "JWT"),
		"typ of a logout token":        withHeader("typ", "logout+jwt"),
		"typ of a proof":               withHeader("typ", "dpop+jwt"),
		"typ a number":                 withHeader("typ", 7),
		"kid of no key":                sign(t, es256, otherKey, goodClaims(), map[string]any{"kid": "unknown"}),
		"kid a path":                   sign(t, es256, otherKey, goodClaims(), map[string]any{"kid": "../../../../dev/null"}),
		"kid a query":                  sign(t, es256, otherKey, goodClaims(), map[string]any{"kid": "' UNION SELECT 'key"}),
		"kid an address":               sign(t, es256, otherKey, goodClaims(), map[string]any{"kid": "https://evil.example/key"}),
		"kid enormous":                 sign(t, es256, otherKey, goodClaims(), map[string]any{"kid": strings.Repeat("k", 8000)}),
		"kid null with none":           sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, goodClaims(), map[string]any{"kid": nil}),
		"kid a list":                   withHeader("kid", []string{"a"}),
		"nested: a token as claims":    text(`{"alg":"ES256","typ":"JWT"}`, `"`+good+`"`),
		"nested: a token as a token":   base64.RawURLEncoding.EncodeToString([]byte(good)),
		"claims null":                  text(`{"alg":"ES256"}`, `null`),
		"claims a list":                text(`{"alg":"ES256"}`, `[`+claims+`]`),
		"claims with more behind":      text(`{"alg":"ES256"}`, claims+claims),
		"claims not JSON":              text(`{"alg":"ES256"}`, `jane`),
		"five parts":                   good + "." + parts[0] + "." + parts[1],
		"two parts":                    parts[0] + "." + parts[1],
		"dots":                         "...",
		"only dots":                    strings.Repeat(".", maxToken),
		"padded":                       parts[0] + "=." + parts[1] + "." + parts[2],
		"standard base64":              strings.NewReplacer("-", "+", "_", "/").Replace(good) + "+/",
		"with Bearer":                  "Bearer " + good,
		"with a space":                 " " + good,
		"with a line break":            good + "\n",
		"with NUL":                     good + "\x00",
		"garbage":                      "\xff\xfe\x00garbage",
		"oversized":                    changed("pad", strings.Repeat("x", maxToken)),
		"oversized beyond good":        good + strings.Repeat("A", maxToken),
	}
}

// fakeES256 says ES256 in its header and signs with a key on P-384, cut to P-256's length.
type fakeES256 struct{}

func (fakeES256) sign(t testing.TB) string {
	token := sign(t, jwt.SigningMethodES384, ec384Key, goodClaims(), map[string]any{"alg": "ES256"})
	i := strings.LastIndexByte(token, '.')
	sig := must(base64.RawURLEncoding.DecodeString(token[i+1:]))
	return token[:i+1] + base64.RawURLEncoding.EncodeToString(sig[:64])
}

func TestBadTokensAreRefusedAndTheCallerLearnsNothing(t *testing.T) {
	a := fromFile(t, usual, rsaKey, ecKey)
	expired := map[string]bool{"exp past": true, "exp this second": true, "exp negative": true}
	for name, token := range badTokens(t) {
		t.Run(name, func(t *testing.T) {
			id, err := a.Authenticate(t.Context(), token)
			if !errors.Is(err, ErrBadToken) {
				t.Fatalf("identity %v, error %v", id, err)
			}
			if errors.Is(err, ErrTokenExpired) != expired[name] {
				t.Errorf("expired or not: %v", err)
			}
			if !cmp.Equal(id, Identity{}) {
				t.Errorf("an identity beside the error: %v", id)
			}
			challenge, public := Challenge(err), PublicText(err)
			wantChallenge, wantPublic := `Bearer realm="kubecast", error="invalid_token", error_description="The access token is invalid"`, "invalid token"
			if expired[name] {
				wantChallenge, wantPublic = `Bearer realm="kubecast", error="invalid_token", error_description="The access token expired"`, "token expired"
			}
			if challenge != wantChallenge || public != wantPublic {
				t.Errorf("told: %s / %s", challenge, public)
			}
			if len(err.Error()) > 250 {
				t.Errorf("%d bytes for the log", len(err.Error()))
			}
			// A reader of the log must not be able to use a token from it.
			if i := strings.LastIndexByte(token, '.'); i > 0 && len(token)-i > 20 && strings.Contains(err.Error(), token[i+1:]) {
				t.Errorf("the signature is in the log: %v", err)
			}
		})
	}
}

func TestGoodHeadersAreNotRefused(t *testing.T) {
	a := fromFile(t, usual, rsaKey, ecKey)
	for _, header := range []map[string]any{
		{"typ": nil}, {"typ": "jwt"}, {"typ": "at+jwt"}, {"typ": "application/at+JWT"}, {"kid": ""}, {"x5t": "abc"}, {"jku": "https://evil.example"},
	} {
		if _, err := a.Authenticate(t.Context(), sign(t, jwt.SigningMethodES256, ecKey, goodClaims(), header)); err != nil {
			t.Errorf("%v: %v", header, err)
		}
	}
}

func TestKeyOfAnotherIssuerIsNotTheIssuersKey(t *testing.T) {
	a, err := New(Options{Issuers: []Issuer{
		{Issuer: "a", Audiences: []string{"kubecast"}, PublicKeyFile: authtest.PublicFile(t, ecKey), Claims: usual},
		{Issuer: "b", Audiences: []string{"kubecast"}, PublicKeyFile: authtest.PublicFile(t, otherKey), Claims: Claims{Username: "sub", UsernamePrefix: "b:"}},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		iss  string
		key  any
		user string
	}{{"a", ecKey, "jane"}, {"b", otherKey, "b:jane"}, {"a", otherKey, ""}, {"b", ecKey, ""}} {
		id, err := a.Authenticate(t.Context(), sign(t, jwt.SigningMethodES256, c.key, goodClaims(map[string]any{"iss": c.iss}), nil))
		if id.Username != c.user || (err == nil) != (c.user != "") {
			t.Errorf("issuer %s: %q, %v", c.iss, id.Username, err)
		}
	}
}

func TestUnconfirmedAddressIsNoUsername(t *testing.T) {
	a := fromFile(t, Claims{Username: "email"}, ecKey)
	for _, verified := range []any{false, "true", 1} {
		token := sign(t, jwt.SigningMethodES256, ecKey, goodClaims(map[string]any{"email": "j@example.org", "email_verified": verified}), nil)
		if id, err := a.Authenticate(t.Context(), token); !errors.Is(err, ErrBadToken) {
			t.Errorf("email_verified %v: %v, %v", verified, id, err)
		}
	}
}

func TestTokenEndsAtExpToTheSecond(t *testing.T) {
	a := fromFile(t, usual, ecKey)
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		token := sign(t, jwt.SigningMethodES256, ecKey, goodClaims(map[string]any{
			"exp": now.Add(time.Hour).Unix(), "nbf": now.Add(leeway).Unix(), "iat": now.Add(time.Minute).Unix(),
		}), nil)
		if _, err := a.Authenticate(t.Context(), token); err != nil {
			t.Fatalf("the issuer's clock is ahead by the leeway: %v", err)
		}
		time.Sleep(time.Hour - time.Nanosecond)
		if _, err := a.Authenticate(t.Context(), token); err != nil {
			t.Fatalf("before the end: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if _, err := a.Authenticate(t.Context(), token); !errors.Is(err, ErrTokenExpired) {
			t.Fatalf("at the end: %v", err)
		}
	})
}

func TestMisconfiguredIssuersAreNamed(t *testing.T) {
	file := authtest.PublicFile(t, ecKey)
	good := Issuer{Issuer: testIssuer, Audiences: []string{"kubecast"}, PublicKeyFile: file, Claims: usual}
	for want, change := range map[string]func(*Issuer){
		"Issuer: required":          func(i *Issuer) { i.Issuer = "" },
		"Audiences: one":            func(i *Issuer) { i.Audiences = nil },
		"Audiences: must not":       func(i *Issuer) { i.Audiences = []string{"a", ""} },
		"Claims.Username: required": func(i *Issuer) { i.Claims = Claims{} },
		"one of them":               func(i *Issuer) { i.JWKSURL = "https://x/" },
		"PublicKeyFile: open":       func(i *Issuer) { i.PublicKeyFile = file + ".not" },
		"PublicKeyFile: /":          func(i *Issuer) { i.PublicKeyFile = authtest.PublicFile(t) },
		`not from "http://id`:       func(i *Issuer) { i.PublicKeyFile, i.JWKSURL = "", "http://id.example.org/keys" },
		`not from "dev"`:            func(i *Issuer) { i.PublicKeyFile, i.Issuer = "", "dev" },
	} {
		bad := good
		change(&bad)
		_, err := New(Options{Issuers: []Issuer{bad}}, nil)
		if err == nil || !strings.Contains(err.Error(), "Issuers[0]") || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	if _, err := New(Options{Issuers: []Issuer{good, good}}, nil); err == nil || !strings.Contains(err.Error(), "Issuers[1]") {
		t.Errorf("twice: %v", err)
	}
}

func TestChallengeOfWhatIsNoBadToken(t *testing.T) {
	for _, err := range []error{nil, ErrNoCredentials, context.Canceled, ErrUnavailable} {
		if got := Challenge(err); got != `Bearer realm="kubecast"` {
			t.Errorf("%v: %s", err, got)
		}
	}
	for err, want := range map[error]string{
		ErrNoCredentials: "credentials required", ErrTokenExpired: "token expired", ErrUnavailable: "tokens cannot be checked at the moment",
		ErrUndecided: "permissions cannot be checked at the moment", errors.New("secret"): "internal error",
	} {
		if got := PublicText(err); got != want {
			t.Errorf("%v: %s", err, got)
		}
	}
}

func FuzzAuthenticate(f *testing.F) {
	a := fromFile(f, usual, rsaKey, ecKey)
	good := sign(f, jwt.SigningMethodES256, ecKey, goodClaims(map[string]any{"exp": time.Now().Add(24 * time.Hour).Unix()}), nil)
	f.Add(good)
	for _, token := range badTokens(f) {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		id, err := a.Authenticate(t.Context(), token)
		switch {
		case token == good:
			if err != nil {
				t.Errorf("the good one: %v", err)
			}
		case token == "":
			if !errors.Is(err, ErrNoCredentials) {
				t.Errorf("%v, %v", id, err)
			}
		case !errors.Is(err, ErrBadToken):
			t.Errorf("a token nobody signed: %v, %v", id, err)
		}
	})
}

func BenchmarkAuthenticate(b *testing.B) {
	a := fromFile(b, usual, rsaKey, ecKey, edKey)
	for alg, key := range map[string]any{"RS256": rsaKey, "ES256": ecKey, "EdDSA": edKey} {
		token := sign(b, jwt.GetSigningMethod(alg), key, goodClaims(), nil)
		b.Run(alg, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Authenticate(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
