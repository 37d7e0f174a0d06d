// Package oidc lets people sign in at an OpenID provider, with the authorization code flow and PKCE, renews their sessions, and ends them
// when they or the provider want that. Who an ID token is for, and what a logout token ends, is said by an auth.Client, which checks
// them as it does all tokens.
//
// It keeps nothing that another replica would need: what a login or a renewal takes is sealed, and in the browser's hands. Strangers
// can make it ask the provider only so much, and never in the place of those who have a session.
package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/oauth2"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/fetch"
	"github.com/kubecast/kubecast/internal/auth/session"
	"github.com/kubecast/kubecast/internal/budget"
)

// Errors of a Login, beside auth.ErrUnavailable and session.ErrTooLarge.
var (
	// ErrProviderAway: the provider does not answer, or not as it should. To try again helps.
	ErrProviderAway = errors.New("the identity provider does not answer as it should")
	// ErrRefused: what the browser came back with does not belong to a login that it began, or is not accepted.
	ErrRefused = errors.New("the sign-in is not valid")
	// ErrDenied: the provider did not let the user in, or they did not want to; or they are barred here.
	ErrDenied = errors.New("the provider did not sign the user in")
)

// loginError is one of these with its cause, which is for the log and never contains a code or a token.
type loginError struct{ kind, cause error }

func (e *loginError) Error() string { return e.kind.Error() + ": " + e.cause.Error() }
func (e *loginError) Unwrap() error { return e.kind }

func refused(format string, args ...any) error {
	return &loginError{ErrRefused, fmt.Errorf(format, args...)}
}

// Options configure a Login.
type Options struct {
	Issuer           string                // one of the Authenticator's, among whose audiences is ClientID
	ClientID         string                // of the gateway at the provider
	ClientSecretFile string                // read at each use, so that it can be replaced; empty: a public client
	RedirectURL      string                // where the provider sends browsers back to, exactly
	Scopes           []string              // empty: those of openid, profile, email, groups, offline_access that the provider has
	Registerer       prometheus.Registerer // may be nil
}

// Login lets people sign in at an OpenID provider (authorization code flow with PKCE), and renews their sessions. It keeps
// nothing: what a login needs until its end is in a sealed cookie, so that any replica can finish it, and renew the session.
// The ID token is checked as every other token, by the Authenticator. Safe for concurrent use.
type Login struct {
	opts     Options
	client   *auth.Client
	sealer   *session.Sealer
	provider *provider
	exchange *http.Client // carries codes, secrets and refresh tokens
	asking   *budget.Queue
	finished session.Once
	ended    session.Once // logout tokens
	renewals renewals
	logins   *prometheus.CounterVec // steps
	log      *slog.Logger
}

const (
	// exchanges is how many requests to the provider are under way at once. Strangers can cause some, by coming back from it
	// with a code that they made up: a network of theirs has an eighth of the turns, and some that wait. Those who have a
	// session have turns of their own.
	exchanges        = 32
	exchangesWaiting = 64
	// exchangeTurn is for how long a turn is waited for.
	exchangeTurn = 10 * time.Second
)

// New is for one of the authenticator's issuers. It asks the provider nothing.
func New(opts Options, authenticator *auth.Authenticator, sealer *session.Sealer, logger *slog.Logger) (*Login, error) {
	client, err := authenticator.Client(opts.Issuer, opts.ClientID)
	if err != nil {
		return nil, fmt.Errorf("oidc: Options.%w", err)
	}
	redirect, err := url.Parse(opts.RedirectURL)
	switch {
	case err != nil || !fetch.Safe(opts.RedirectURL) || redirect.RawQuery != "" || redirect.Fragment != "":
		return nil, fmt.Errorf("oidc: Options.RedirectURL: %q; allowed: an https URL, http on loopback", opts.RedirectURL)
	case !fetch.Safe(opts.Issuer):
		return nil, fmt.Errorf("oidc: Options.Issuer: %q; allowed: an https URL, http on loopback", opts.Issuer)
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	l := &Login{
		opts: opts, client: client, sealer: sealer, asking: budget.NewQueue(exchanges, exchanges/8, exchangesWaiting), log: logger,
		provider: &provider{issuer: opts.Issuer, client: fetch.Client(client.Transport())},
		exchange: &http.Client{Transport: client.Transport(), Timeout: fetch.Timeout, CheckRedirect: refuseRedirect},
		logins:   newLogins(opts.Registerer),
	}
	if _, err := l.secret(); err != nil {
		return nil, fmt.Errorf("oidc: Options.ClientSecretFile: %w", err)
	}
	return l, nil
}

func (l *Login) secret() (string, error) {
	if l.opts.ClientSecretFile == "" {
		return "", nil
	}
	data, err := os.ReadFile(l.opts.ClientSecretFile)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(data))
	if secret == "" {
		return "", fmt.Errorf("%s: is empty", l.opts.ClientSecretFile)
	}
	return secret, nil
}

// party is the gateway as the provider knows it.
func (l *Login) party(ctx context.Context) (*oauth2.Config, *providerMetadata, error) {
	secret, err := l.secret()
	if err != nil {
		return nil, nil, err
	}
	m, err := l.provider.metadata(ctx)
	if err != nil {
		return nil, nil, err
	}
	scopes := l.opts.Scopes
	if len(scopes) == 0 {
		scopes = m.scopes()
	}
	return &oauth2.Config{
		ClientID: l.opts.ClientID, ClientSecret: secret, RedirectURL: l.opts.RedirectURL, Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: m.Authorization, TokenURL: m.Token, AuthStyle: m.authStyle(secret)},
	}, m, nil
}

// LoginTime is how long somebody may take to sign in at the provider.
const LoginTime = 10 * time.Minute

// pendingLogin is what a browser keeps of a login until it comes back.
type pendingLogin struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	ReturnTo string `json:"r"`
	Expires  int64  `json:"x"` // seconds since 1970
}

// Started is a login that has begun.
type Started struct {
	Location string // of the provider, where the browser goes
	Name     string // tells this login from others of the same browser; see LoginName
	Pending  string // for the browser to keep, and nobody else
}

// Begin starts a login, after which the browser is to be sent to returnTo.
func (l *Login) Begin(ctx context.Context, returnTo string) (_ Started, err error) {
	defer func() { l.count("begun", err) }()
	if !IsReturnPath(returnTo) {
		return Started{}, refused("returnTo is no path of this gateway")
	}
	party, _, err := l.party(ctx)
	if err != nil {
		return Started{}, err
	}
	p := pendingLogin{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), ReturnTo: returnTo,
		Expires: time.Now().Add(LoginTime).Unix(),
	}
	sealed, err := l.sealer.Seal(session.PurposeLogin, p)
	if err != nil {
		return Started{}, err
	}
	location := party.AuthCodeURL(p.State, oauth2.S256ChallengeOption(p.Verifier), oauth2.SetAuthURLParam("nonce", p.Nonce))
	return Started{Location: location, Name: LoginName(p.State), Pending: sealed}, nil
}

// LoginName is what a login is called, given the state that a browser comes back with: "" if that is none.
func LoginName(state string) string {
	const size, name = 26, 10 // of rand.Text, and enough to tell a browser's logins apart
	if len(state) != size || strings.Trim(state, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return ""
	}
	return state[:name]
}

// maxReturnPath bounds what stands in a cookie.
const maxReturnPath = 1 << 10

// IsReturnPath reports whether a text is a path of this gateway and nothing else: what a browser reads as another host's
// (//host, /\host, or the same with tabs and line breaks in between, which browsers leave out) is none.
func IsReturnPath(text string) bool {
	if !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || len(text) > maxReturnPath {
		return false
	}
	for _, c := range text {
		if c <= ' ' || c == '\\' || c >= 0x7f {
			return false
		}
	}
	u, err := url.Parse(text)
	return err == nil && u.Host == "" && u.Scheme == "" && u.Opaque == "" && !strings.HasPrefix(u.Path, "//") && !strings.HasPrefix(u.Path, "/auth/")
}

// LoggedIn is what a browser keeps of a session that it has by a login.
type LoggedIn struct {
	Identity auth.Identity
	Session  string // sealed; empty: as it was
	Renewal  string // sealed, for Renew and End; empty: the session cannot be renewed
	ReturnTo string
}

// Finish ends a login, with what the browser kept of it and what the provider sent it back with. Each login ends once.
func (l *Login) Finish(ctx context.Context, pending string, answer url.Values) (_ LoggedIn, err error) {
	defer func() { l.count("finished", err) }()
	var p pendingLogin
	if err := l.sealer.Open(session.PurposeLogin, pending, &p); err != nil {
		return LoggedIn{}, refused("its cookie: %w", err)
	}
	now, expires := time.Now(), time.Unix(p.Expires, 0)
	switch {
	case !now.Before(expires):
		return LoggedIn{}, refused("begun too long ago, and ended at %v", expires)
	case subtle.ConstantTimeCompare([]byte(p.State), []byte(answer.Get("state"))) != 1:
		return LoggedIn{}, refused("state is another's")
	case !l.finished.Take(p.State, now, expires):
		return LoggedIn{}, refused("finished before")
	}
	party, metadata, err := l.party(ctx)
	if err != nil {
		return LoggedIn{}, err
	}
	// RFC 9207: an answer of another provider must not be taken for this one's.
	if answer.Has("iss") && answer.Get("iss") != l.opts.Issuer || metadata.NamesItself && !answer.Has("iss") {
		return LoggedIn{}, refused("the answer is of another provider")
	}
	if answer.Has("error") {
		return LoggedIn{}, answeredError(errorCode(answer.Get("error")))
	}
	if answer.Get("code") == "" {
		return LoggedIn{}, refused("no code")
	}
	token, err := l.ask(ctx, auth.Stranger(ctx), func(ctx context.Context) (*oauth2.Token, error) {
		return party.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(p.Verifier))
	})
	if err != nil {
		return LoggedIn{}, providerError("exchange of the code", err)
	}
	id, idToken, err := l.identify(ctx, token)
	if err != nil {
		return LoggedIn{}, err
	}
	nonce, _ := id.Claims["nonce"].(string)
	if subtle.ConstantTimeCompare([]byte(nonce), []byte(p.Nonce)) != 1 {
		return LoggedIn{}, refused("the ID token's nonce is another's")
	}
	if id.Begun.IsZero() { // a provider that leaves iat out; what was revoked before is not meant
		id.Begun = now
	}
	subject, _ := id.Claims["sub"].(string)
	begun, err := l.seal(id, renewal{Session: rand.Text(), Subject: subject, Refresh: token.RefreshToken, IDToken: idToken})
	begun.ReturnTo = p.ReturnTo
	return begun, err
}

// answeredError is what a provider's own error means.
func answeredError(code string) error {
	if code == "server_error" || code == "temporarily_unavailable" {
		return fmt.Errorf("%w: it answers %s", ErrProviderAway, code)
	}
	return &loginError{ErrDenied, errors.New(code)}
}

// ask sends one of the requests that the provider answers with tokens, when it is somebody's turn.
func (l *Login) ask(ctx context.Context, turn string, request func(context.Context) (*oauth2.Token, error)) (*oauth2.Token, error) {
	release, err := l.turn(ctx, turn)
	if err != nil {
		return nil, err
	}
	defer release()
	return request(context.WithValue(ctx, oauth2.HTTPClient, l.exchange))
}

// turn waits until the provider may be asked something for somebody.
func (l *Login) turn(ctx context.Context, of string) (release func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, exchangeTurn)
	defer cancel()
	release, err = l.asking.Take(waiting, of)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: too many are asked of it at once: %w", ErrProviderAway, err)
	}
	return release, err
}

// identify says who the ID token of an answer is for.
func (l *Login) identify(ctx context.Context, token *oauth2.Token) (auth.Identity, string, error) {
	idToken, _ := token.Extra("id_token").(string)
	if idToken == "" {
		return auth.Identity{}, "", refused("the provider sent no ID token")
	}
	id, err := l.client.IDToken(ctx, idToken)
	switch {
	case errors.Is(err, auth.ErrRevoked):
		return auth.Identity{}, "", &loginError{ErrDenied, err}
	case errors.Is(err, auth.ErrBadToken):
		return auth.Identity{}, "", refused("ID token: %w", err)
	case err != nil:
		return auth.Identity{}, "", err
	}
	return id, idToken, nil
}
