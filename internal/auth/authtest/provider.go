// Package authtest has fakes for tests without a network, among them an OpenID provider. Unlike a real one, that can
// make the mistakes of faulty providers. The tests of the portal use a real provider.
package authtest

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// The names of a Provider and its only client.
const (
	Issuer      = "https://id.example.org"
	ClientID    = "kubecast-portal"
	RedirectURL = "https://kubecast.example.org/auth/callback"
)

// Provider signs every user in as jane. It is an http.RoundTripper that answers requests to Issuer. Its fields may be
// changed by Set.
type Provider struct {
	mu     sync.Mutex
	key    *ecdsa.PrivateKey
	kid    string
	codes  map[string]grant // by code
	tokens map[string]grant // by refresh token
	used   map[string]bool  // refresh tokens

	Lasts    time.Duration         // of ID tokens
	Away     bool                  // no request is answered
	Fails    string                // the token endpoint answers 400 with this error; 5xx: with that status
	Claims   func(map[string]any)  // changes the claims of ID tokens; may be nil
	Answer   func(map[string]any)  // changes the token endpoint's answers; may be nil
	Metadata func(map[string]any)  // changes the discovery document; may be nil
	Rotates  bool                  // each refresh token is valid only once
	Secret   string                // the client's; empty: the client is public
	Requests []string              // paths of the requests so far
	See      func(*http.Request)   // sees each request; may be nil
	Hold     <-chan struct{}       // the token endpoint answers once it is closed; may be nil
	Forms    map[string]url.Values // the last form that a path was sent
	Redirect string                // where the client's users come back to; empty: RedirectURL
}

type grant struct{ challenge, nonce, redirect string }

// New returns a provider with one key.
func New() *Provider {
	p := &Provider{
		codes: map[string]grant{}, tokens: map[string]grant{}, used: map[string]bool{}, Forms: map[string]url.Values{},
		Lasts: time.Hour, Rotates: true,
	}
	p.RotateKey()
	return p
}

// Set changes the provider.
func (p *Provider) Set(change func(*Provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// Asked returns how often a path was asked for.
func (p *Provider) Asked(path string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, asked := range p.Requests {
		if asked == path {
			n++
		}
	}
	return n
}

// RotateKey makes the provider sign with a new key, and forget the old one.
func (p *Provider) RotateKey() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.kid = key, rand.Text()[:8]
}

// SignIn plays the browser that a login sends to the provider, and returns the address to which it is sent back.
func (p *Provider) SignIn(location string) (callback string, err error) {
	u, err := url.Parse(location)
	if err != nil {
		return "", err
	}
	q, redirect := u.Query(), cmp.Or(p.Redirect, RedirectURL)
	for name, want := range map[string]string{
		"response_type": "code", "client_id": ClientID, "redirect_uri": redirect, "code_challenge_method": "S256",
	} {
		if q.Get(name) != want {
			return "", fmt.Errorf("%s is %q, not %q", name, q.Get(name), want)
		}
	}
	if u.Scheme+"://"+u.Host+u.Path != Issuer+"/authorize" || q.Get("state") == "" || q.Get("nonce") == "" || q.Get("code_challenge") == "" {
		return "", fmt.Errorf("not a request to sign in: %s", location)
	}
	code := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codes[code] = grant{q.Get("code_challenge"), q.Get("nonce"), q.Get("redirect_uri")}
	return redirect + "?" + url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), nil
}

// IDToken signs a token of jane's for the client.
func (p *Provider) IDToken(nonce string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idToken(nonce)
}

func (p *Provider) idToken(nonce string) string {
	claims := jwt.MapClaims{
		"iss": Issuer, "aud": ClientID, "sub": "jane", "groups": []string{"platform"},
		"iat": time.Now().Unix(), "exp": time.Now().Add(p.Lasts).Unix(),
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if p.Claims != nil {
		p.Claims(claims)
	}
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	token.Header["kid"] = p.kid
	signed, err := token.SignedString(p.key)
	if err != nil {
		panic(err)
	}
	return signed
}

// LogoutToken signs a logout token that ends all of jane's sessions (OpenID Connect Back-Channel Logout 1.0). Change
// may change its header and claims; a nil claim is left out.
func (p *Provider) LogoutToken(change func(header, claims map[string]any)) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	claims := jwt.MapClaims{
		"iss": Issuer, "aud": ClientID, "sub": "jane", "jti": rand.Text(), "iat": time.Now().Unix(), "exp": time.Now().Add(2 * time.Minute).Unix(),
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	}
	token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	token.Header["kid"], token.Header["typ"] = p.kid, "logout+jwt"
	if change != nil {
		change(token.Header, claims)
	}
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	signed, err := token.SignedString(p.key)
	if err != nil {
		panic(err)
	}
	return signed
}

func (p *Provider) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme+"://"+r.URL.Host != Issuer {
		return nil, fmt.Errorf("a request to %s", r.URL.Host)
	}
	p.mu.Lock()
	p.Requests = append(p.Requests, r.URL.Path)
	away, see, hold := p.Away, p.See, p.Hold
	p.mu.Unlock()
	if see != nil {
		see(r)
	}
	if away {
		return nil, errors.New("connection refused")
	}
	if hold != nil && r.URL.Path == "/token" {
		select {
		case <-hold:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	recorder := httptest.NewRecorder()
	p.serve(recorder, r)
	response := recorder.Result()
	response.Request = r
	return response, nil
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		document := map[string]any{
			"issuer": Issuer, "authorization_endpoint": Issuer + "/authorize", "token_endpoint": Issuer + "/token", "jwks_uri": Issuer + "/keys",
			"end_session_endpoint": Issuer + "/logout", "revocation_endpoint": Issuer + "/revoke",
			"scopes_supported": []string{"openid", "email", "groups", "offline_access"},
		}
		if p.Metadata != nil {
			p.Metadata(document)
		}
		_ = json.NewEncoder(w).Encode(document)
	case "/keys":
		public, _ := p.key.PublicKey.Bytes() // of P-256: 4, x, y
		text := base64.RawURLEncoding.EncodeToString
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []map[string]string{
			{"kty": "EC", "crv": "P-256", "kid": p.kid, "use": "sig", "alg": "ES256", "x": text(public[1:33]), "y": text(public[33:])},
		}})
	case "/token":
		p.token(w, r)
	case "/revoke":
		if p.form(r) {
			p.used[r.Form.Get("token")] = true
		}
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// form reads the form that was sent, and reports whether the client's credentials are right.
func (p *Provider) form(r *http.Request) bool {
	if r.ParseForm() != nil {
		return false
	}
	p.Forms[r.URL.Path] = r.PostForm
	id, secret, basic := r.BasicAuth()
	if basic { // RFC 6749, section 2.3.1
		var errs [2]error
		id, errs[0] = url.QueryUnescape(id)
		secret, errs[1] = url.QueryUnescape(secret)
		return errs == [2]error{} && id == ClientID && secret == p.Secret
	}
	return r.Form.Get("client_id") == ClientID && r.Form.Get("client_secret") == p.Secret
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	fail := func(status int, code string) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": code, "error_description": "says the provider, of " + r.Form.Get("code")})
	}
	if !p.form(r) {
		fail(http.StatusUnauthorized, "invalid_client")
		return
	}
	if p.Fails != "" {
		status := http.StatusBadRequest
		if p.Fails[0] == '5' {
			status = http.StatusServiceUnavailable
		}
		fail(status, p.Fails)
		return
	}
	var granted grant
	answer := map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": int(p.Lasts.Seconds())}
	switch r.Form.Get("grant_type") {
	case "authorization_code":
		code := r.Form.Get("code")
		var known bool
		granted, known = p.codes[code]
		delete(p.codes, code)
		proof := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if !known || base64.RawURLEncoding.EncodeToString(proof[:]) != granted.challenge || r.Form.Get("redirect_uri") != granted.redirect {
			fail(http.StatusBadRequest, "invalid_grant")
			return
		}
		answer["refresh_token"] = p.refreshToken(granted)
		answer["id_token"] = p.idToken(granted.nonce)
	case "refresh_token":
		token := r.Form.Get("refresh_token")
		var known bool
		if granted, known = p.tokens[token]; !known || p.used[token] {
			fail(http.StatusBadRequest, "invalid_grant")
			return
		}
		if p.Rotates {
			p.used[token] = true
			answer["refresh_token"] = p.refreshToken(granted)
		}
		answer["id_token"] = p.idToken("")
	default:
		fail(http.StatusBadRequest, "unsupported_grant_type")
		return
	}
	if p.Answer != nil {
		p.Answer(answer)
	}
	maps.DeleteFunc(answer, func(_ string, v any) bool { return v == nil })
	_ = json.NewEncoder(w).Encode(answer)
}

func (p *Provider) refreshToken(g grant) string {
	token := rand.Text()
	p.tokens[token] = g
	return token
}
