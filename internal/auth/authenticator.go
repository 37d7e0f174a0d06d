package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
)

// Options configure an Authenticator.
type Options struct {
	// Anonymous lets requests without a token in as system:anonymous.
	Anonymous bool
	// Issuers whose tokens are accepted; with none, no token is.
	Issuers []Issuer
	// Transport fetches discovery documents and key sets; nil: one of our own, with the proxy of
	// the environment.
	Transport http.RoundTripper
}

// Issuer is one issuer of tokens. Its keys come from JWKSURL or PublicKeyFile, else from OIDC
// discovery at the issuer's own address.
type Issuer struct {
	Issuer        string   // compared exactly with the claim iss
	Audiences     []string // one of them must be in the claim aud
	JWKSURL       string
	PublicKeyFile string // PEM: public keys or certificates; read again when it changes
	Claims        Claims
}

// Claims names the claims that say who the holder is, and what is put before their values.
type Claims struct {
	Username       string // required; its value must be a non-empty string
	Groups         string // its value may be a string or a list of strings; empty: no groups
	UsernamePrefix string
	GroupsPrefix   string
}

// Authenticator turns bearer tokens into identities. Safe for concurrent use.
type Authenticator struct {
	anonymous bool
	issuers   map[string]*issuer // by the claim iss
	closeIdle func()
}

// New builds an Authenticator; it fetches nothing. An unreadable PublicKeyFile is an error, an
// issuer that does not answer is not. Errors name the field.
func New(opts Options, logger *slog.Logger) (*Authenticator, error) {
	a := &Authenticator{
		anonymous: opts.Anonymous,
		issuers:   map[string]*issuer{},
		closeIdle: func() {},
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	transport := opts.Transport
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		transport, a.closeIdle = own, own.CloseIdleConnections
	}
	client := &http.Client{Transport: transport, Timeout: fetchTimeout, CheckRedirect: refuseUnsafeRedirect}

	var errs []error
	for i, o := range opts.Issuers {
		iss, err := newIssuer(o, client, logger)
		if err == nil && a.issuers[o.Issuer] != nil {
			err = errors.New("field Issuer: given twice")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("auth: Issuers[%d] (%s): %w", i, o.Issuer, err))
			continue
		}
		a.issuers[o.Issuer] = iss
	}
	return a, errors.Join(errs...)
}

func newIssuer(o Issuer, client *http.Client, logger *slog.Logger) (*issuer, error) {
	switch {
	case o.Issuer == "":
		return nil, errors.New("field Issuer: required")
	case len(o.Audiences) == 0:
		return nil, errors.New("field Audiences: one is required, else tokens meant for others would be accepted")
	case o.Claims.Username == "":
		return nil, errors.New("field Claims.Username: required")
	case o.JWKSURL != "" && o.PublicKeyFile != "":
		return nil, errors.New("fields JWKSURL and PublicKeyFile: one of them")
	}
	for _, aud := range o.Audiences {
		// An empty one would let the library accept a token that names none.
		if aud == "" {
			return nil, errors.New("field Audiences: must not be empty")
		}
	}
	logger = logger.With("issuer", o.Issuer)

	if o.PublicKeyFile != "" {
		keys, err := newFileKeys(o.PublicKeyFile, logger)
		if err != nil {
			return nil, fmt.Errorf("field PublicKeyFile: %w", err)
		}
		return &issuer{Issuer: o, keys: keys}, nil
	}
	where := o.JWKSURL
	if where == "" {
		where = o.Issuer
	}
	if !isKeyURL(where) {
		return nil, fmt.Errorf("keys are fetched over https (http on loopback only), not from %q", where)
	}
	return &issuer{Issuer: o, keys: newRemoteKeys(o.Issuer, o.JWKSURL, client, logger)}, nil
}

// Run keeps the keys fresh until ctx ends, and then returns nil. Until it runs, no keys are fetched.
func (a *Authenticator) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, iss := range a.issuers {
		wg.Go(func() { iss.keys.run(ctx) })
	}
	wg.Wait()
	<-ctx.Done()
	a.closeIdle()
	return nil
}

// Authenticate says whose token this is. Without a token it is the anonymous identity, where allowed;
// a bad token is never taken for none. It waits for keys only where none fit and a fetch may help, for
// some seconds at most.
//
// Errors: ErrNoCredentials, ErrBadToken (ErrTokenExpired), ErrUnavailable, or ctx's. Their text is for
// the log; see PublicText and Challenge.
func (a *Authenticator) Authenticate(ctx context.Context, token string) (Identity, error) {
	if token == "" {
		if !a.anonymous {
			return Identity{}, ErrNoCredentials
		}
		return Identity{Username: anonymousUser, Groups: []string{unauthenticatedGroup}, Anonymous: true}, nil
	}
	id, err := a.verify(ctx, token)
	switch {
	case err == nil:
		return id, nil
	case ctx.Err() != nil:
		return Identity{}, fmt.Errorf("check token: %w", ctx.Err())
	case errors.Is(err, ErrUnavailable):
		return Identity{}, err
	default:
		return Identity{}, refused(err)
	}
}

// tokenError is a refusal with its cause.
type tokenError struct {
	kinds []error // the sentinels that it is
	cause error
}

func refused(cause error) error {
	e := &tokenError{kinds: []error{ErrBadToken}, cause: cause}
	if errors.Is(cause, ErrTokenExpired) {
		e.kinds = append(e.kinds, ErrTokenExpired)
	}
	return e
}

// Error is for the log. Causes may quote a name from the token, never the token; and they are cut,
// since the name is a stranger's.
func (e *tokenError) Error() string {
	const most = 200
	cause := strings.ToValidUTF8(e.cause.Error(), "?")
	if len(cause) > most {
		cause = strings.ToValidUTF8(cause[:most], "") + "…"
	}
	return ErrBadToken.Error() + ": " + cause
}

func (e *tokenError) Unwrap() []error { return e.kinds }
