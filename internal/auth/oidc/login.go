// Package oidc lets users sign in at an OpenID provider, by the authorization code flow with PKCE. It renews their
// sessions, and ends them when the user or the provider wants that. An auth.Client checks ID tokens and logout tokens
// like all other tokens.
//
// It keeps nothing that another replica would need: the state of a login or a renewal is sealed, and the browser
// keeps it. Strangers can cause only a bounded number of requests to the provider, and never delay users who have a
// session.
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
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/oauth2"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/fetch"
	"github.com/kubecast/kubecast/internal/auth/session"
	"github.com/kubecast/kubecast/internal/budget"
)

// The errors of a Login, besides auth.ErrUnavailable and session.ErrTooLarge.
var (
	// ErrProviderAway means that the provider does not answer, or not as it should. Trying again may help.
	ErrProviderAway = errors.New("the identity provider does not answer as it should")
	// ErrRefused means that what the browser came back with does not belong to a login that it began, or is not
	// accepted.
	ErrRefused = errors.New("the sign-in is not valid")
	// ErrDenied means that the provider did not sign the user in, that the user did not want that, or that the user
	// is barred here.
	ErrDenied = errors.New("the provider did not sign the user in")
)

// loginError is one of these errors with its cause. The cause is for the log, and never contains a code or a token.
type loginError struct{ kind, cause error }

func (e *loginError) Error() string { return e.kind.Error() + ": " + e.cause.Error() }
func (e *loginError) Unwrap() error { return e.kind }

func refused(format string, args ...any) error {
	return &loginError{ErrRefused, fmt.Errorf(format, args...)}
}

// Options configure a Login.
type Options struct {
	Issuer           string                // one of the Authenticator's, among whose audiences is ClientID
	ClientID         string                // the gateway's id at the provider
	ClientSecretFile string                // read at each use, so that it can be replaced; empty: a public client
	RedirectURL      string                // where the provider sends browsers back to, exactly
	Scopes           []string              // empty: openid, and profile, email, groups, offline_access if the provider has them
	Registerer       prometheus.Registerer // may be nil
}

// Login lets users sign in at an OpenID provider, and renews their sessions. The state of a login is in a sealed
// cookie, so that any replica can finish the login, and renew the session. The Authenticator checks the ID token like
// every other token. Its methods may be called concurrently.
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
	logins   *prometheus.CounterVec // steps of logins, by result
	log      *slog.Logger
}

const (
	// exchanges is how many requests to the provider may be under way at once. Strangers can cause some, by coming
	// back with an invented code: one network of strangers gets an eighth of the turns, and a bounded number may
	// wait. Each user with a session has turns of their own.
	exchanges        = 32
	exchangesWaiting = 64
	// exchangeTurn is how long a request waits for its turn.
	exchangeTurn = 10 * time.Second
)

// New returns a Login for one of the authenticator's issuers. It does not ask the provider anything.
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
		provider: &provider{issuer: opts.Issuer, client: fetch.Client(client)},
		exchange: &http.Client{Transport: client, Timeout: fetch.Timeout, CheckRedirect: refuseRedirect},
		logins:   newLogins(opts.Registerer),
	}
	if _, err := l.secret(); err != nil {
		return nil, fmt.Errorf("oidc: Options.ClientSecretFile: %w", err)
	}
	return l, nil
}

func (l *Login) secret() (string, error) { return ReadSecret(l.opts.ClientSecretFile) }

// ReadSecret reads a client's secret; "" has none.
func ReadSecret(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(data))
	if secret == "" {
		return "", fmt.Errorf("%s: is empty", file)
	}
	return secret, nil
}

// party returns the gateway's configuration as a client of the provider, and the provider's metadata.
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

// LoginTime is how long a user may take to sign in at the provider.
const LoginTime = 10 * time.Minute

// pendingLogin is the state of a login, which the browser keeps until it comes back.
type pendingLogin struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	ReturnTo string `json:"r"`
	Expires  int64  `json:"x"` // seconds since 1970
}

// Started is a login that has begun.
type Started struct {
	Location string // the provider's address to which the browser goes
	Name     string // distinguishes the logins of one browser; see LoginName
	Pending  string // sealed state that only the browser keeps
}

// Begin starts a login. After it, the browser is to be sent to returnTo.
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

// LoginName returns the name of a login, from the state with which a browser comes back; "" if that is malformed.
func LoginName(state string) string {
	const size, name = 26, 10 // the size of rand.Text, and enough to distinguish a browser's logins
	if len(state) != size || strings.Trim(state, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return ""
	}
	return state[:name]
}

// maxReturnPath bounds a path, in bytes, since it must fit into a cookie.
const maxReturnPath = 1 << 10

// IsReturnPath reports whether a browser takes a text for a path of this gateway, and for nothing else. It refuses
// what a browser may take for an address of another host: //host, /\host, and the same with tabs or line breaks in
// between, which browsers drop. It also refuses . and .., which browsers resolve.
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
	return err == nil && u.Host == "" && u.Scheme == "" && u.Opaque == "" && !strings.HasPrefix(u.Path, "//") && !strings.HasPrefix(u.Path, "/auth/") &&
		!slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool { return part == "." || part == ".." })
}

// LoggedIn is what a browser keeps after a login.
type LoggedIn struct {
	Identity auth.Identity
	Session  string // sealed; empty: unchanged
	Renewal  string // sealed, for Renew and End; empty: the session cannot be renewed
	ReturnTo string
}

// Finish completes a login, with the state that the browser kept and the provider's answer. Each login can be
// completed once.
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
	// An answer of another provider must not be taken for this one's (RFC 9207).
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
	if id.Begun.IsZero() { // the provider leaves iat out; earlier revocations do not concern this login
		id.Begun = now
	}
	subject, _ := id.Claims["sub"].(string)
	begun, err := l.seal(id, renewal{Session: rand.Text(), Subject: subject, Refresh: token.RefreshToken, IDToken: idToken})
	begun.ReturnTo = p.ReturnTo
	return begun, err
}

// answeredError returns the error for a provider's error code.
func answeredError(code string) error {
	if code == "server_error" || code == "temporarily_unavailable" {
		return fmt.Errorf("%w: it answers %s", ErrProviderAway, code)
	}
	return &loginError{ErrDenied, errors.New(code)}
}

// ask sends a request that the provider answers with tokens, when it is the turn of the given user or network.
func (l *Login) ask(ctx context.Context, turn string, request func(context.Context) (*oauth2.Token, error)) (*oauth2.Token, error) {
	release, err := l.turn(ctx, turn)
	if err != nil {
		return nil, err
	}
	defer release()
	return request(context.WithValue(ctx, oauth2.HTTPClient, l.exchange))
}

// turn waits until the provider may be asked for a user or network.
func (l *Login) turn(ctx context.Context, of string) (release func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, exchangeTurn)
	defer cancel()
	release, err = l.asking.Take(waiting, of)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: too many are asked of it at once: %w", ErrProviderAway, err)
	}
	return release, err
}

// identify returns the identity in an answer's ID token, and that token.
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
