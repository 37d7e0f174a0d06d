package auth

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/auth/fetch"
)

// Options configure an Authenticator.
type Options struct {
	// Anonymous accepts requests without a token, as system:anonymous.
	Anonymous bool
	// Issuers are the issuers whose tokens are accepted.
	Issuers []Issuer
	// Transport fetches discovery documents and key sets of issuers without a CAFile; nil: a new transport with the
	// environment's proxy.
	Transport http.RoundTripper
	// ServiceAccounts, if not nil, accepts the tokens of a cluster's service accounts.
	ServiceAccounts *ServiceAccounts
	// Revocations says what was ended before its time; nil: this replica keeps its own list.
	Revocations *Revocations
	// Registerer takes the metrics; may be nil.
	Registerer prometheus.Registerer
}

// Issuer is one issuer of tokens. Its keys come from JWKSURL, PublicKeyFile or HMACKeyFile, or else from OIDC
// discovery at the issuer's own address.
type Issuer struct {
	Issuer        string   // compared exactly with the claim iss
	Audiences     []string // one of them must be in the claim aud
	JWKSURL       string
	PublicKeyFile string // PEM: public keys or certificates; read again when it changes
	HMACKeyFile   string // a shared secret of 32 bytes or more; read again when it changes
	CAFile        string // PEM: CAs trusted for fetching keys; empty: the system's
	Claims        Claims
}

// Claims names the claims that identify the holder, and the prefixes for their values.
type Claims struct {
	Username       string // required; its value must be a non-empty string
	Groups         string // its value may be a string or a list of strings; empty: no groups
	UsernamePrefix string
	GroupsPrefix   string
}

// Authenticator turns bearer tokens into identities. Its methods may be called concurrently.
type Authenticator struct {
	accepted        atomic.Pointer[accepted]
	serviceAccounts *ServiceAccounts // nil: their tokens are not accepted
	revocations     *Revocations
	transport       http.RoundTripper // to issuers without a CAFile
	metrics         *metrics
	verified        verified
	log             *slog.Logger

	keeping sync.WaitGroup // what keeps the issuers' keys fresh
	mu      sync.Mutex
	running context.Context // nil before Run, and when it has ended
}

// accepted is whom an Authenticator lets in.
type accepted struct {
	anonymous bool
	issuers   map[string]*issuer // by the claim iss
}

// New returns an Authenticator. It fetches nothing, so an issuer that does not answer is no error; an unreadable
// PublicKeyFile is one. Errors name the field.
func New(opts Options, logger *slog.Logger) (*Authenticator, error) {
	a := &Authenticator{
		verified:        newVerified(),
		serviceAccounts: opts.ServiceAccounts,
		revocations:     opts.Revocations,
		transport:       opts.Transport,
		metrics:         newMetrics(opts.Registerer),
		log:             logger,
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.revocations == nil {
		a.revocations = NewRevocations(RevocationOptions{Keep: 2 * RenewalTime, Log: a.log})
	}
	if a.transport == nil {
		a.transport = newTransport()
	}
	a.accepted.Store(&accepted{})
	use, err := a.Replace(opts.Anonymous, opts.Issuers)
	if err == nil {
		use()
	}
	return a, err
}

func newTransport() *http.Transport { return http.DefaultTransport.(*http.Transport).Clone() }

// Replace makes ready to accept other issuers, for use to put them to use. An issuer that stays the same keeps its
// keys. Tokens of one that is not among them are refused then; who was let in with one stays until it ends. Errors are
// those of New. Only one Replace may be under way.
func (a *Authenticator) Replace(anonymous bool, issuers []Issuer) (use func(), err error) {
	before, next := a.accepted.Load(), &accepted{anonymous, map[string]*issuer{}}
	var errs []error
	for i, o := range issuers {
		iss, err := a.newIssuer(o)
		if err == nil && next.issuers[o.Issuer] != nil {
			err = errors.New("field Issuer: given twice")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("auth: Issuers[%d] (%s): %w", i, o.Issuer, err))
			continue
		}
		if old := before.issuers[o.Issuer]; old != nil && reflect.DeepEqual(old.Issuer, o) && bytes.Equal(old.roots, iss.roots) {
			iss = old
		}
		next.issuers[o.Issuer] = iss
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return func() { a.use(before, next) }, nil
}

// use accepts others than before.
func (a *Authenticator) use(before, next *accepted) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.accepted.Store(next)
	for name, iss := range before.issuers {
		if next.issuers[name] != iss && iss.stop != nil {
			iss.stop()
		}
		if next.issuers[name] == nil {
			a.metrics.forget(name)
		}
	}
	for name, iss := range next.issuers {
		if before.issuers[name] != iss && a.running != nil {
			a.keep(iss)
		}
	}
}

// keep keeps an issuer's keys fresh. The lock is held.
func (a *Authenticator) keep(iss *issuer) {
	ctx, stop := context.WithCancel(a.running)
	iss.stop = stop
	a.keeping.Go(func() {
		defer stop()
		iss.keys.run(ctx)
		<-ctx.Done()
		if own, ok := iss.transport.(*http.Transport); ok && iss.roots != nil {
			own.CloseIdleConnections()
		}
	})
}

// issuer returns the issuer of a name; nil: there is none.
func (a *Authenticator) issuer(name string) *issuer { return a.accepted.Load().issuers[name] }

func (a *Authenticator) newIssuer(o Issuer) (*issuer, error) {
	sources := 0
	for _, source := range []string{o.JWKSURL, o.PublicKeyFile, o.HMACKeyFile} {
		if source != "" {
			sources++
		}
	}
	switch {
	case o.Issuer == "":
		return nil, errors.New("field Issuer: required")
	case len(o.Audiences) == 0:
		return nil, errors.New("field Audiences: one is required, else tokens meant for others would be accepted")
	case o.Claims.Username == "":
		return nil, errors.New("field Claims.Username: required")
	case sources > 1:
		return nil, errors.New("fields JWKSURL, PublicKeyFile and HMACKeyFile: one of them")
	case o.CAFile != "" && o.PublicKeyFile+o.HMACKeyFile != "":
		return nil, errors.New("field CAFile: nothing is fetched from this issuer")
	}
	for _, aud := range o.Audiences {
		// With an empty audience, the library would accept a token that names none.
		if aud == "" {
			return nil, errors.New("field Audiences: must not be empty")
		}
	}
	logger := a.log.With("issuer", o.Issuer)

	switch {
	case o.PublicKeyFile != "":
		keys, err := newFileKeys(o.PublicKeyFile, parsePEM, logger)
		if err != nil {
			return nil, fmt.Errorf("field PublicKeyFile: %w", err)
		}
		return &issuer{Issuer: o, keys: keys, transport: a.transport}, nil
	case o.HMACKeyFile != "":
		keys, err := newFileKeys(o.HMACKeyFile, parseSecret, logger)
		if err != nil {
			return nil, fmt.Errorf("field HMACKeyFile: %w", err)
		}
		return &issuer{Issuer: o, keys: keys, transport: a.transport}, nil
	}
	where := o.JWKSURL
	if where == "" {
		where = o.Issuer
	}
	if !fetch.Safe(where) {
		return nil, fmt.Errorf("keys are fetched over https (http on loopback only), not from %q", where)
	}
	made := &issuer{Issuer: o, transport: a.transport}
	if o.CAFile != "" {
		roots, pool, err := readCertificates(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("field CAFile: %w", err)
		}
		own := newTransport()
		own.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		made.transport, made.roots = own, roots
	}
	keys := newRemoteKeys(o.Issuer, o.JWKSURL, fetch.Client(made.transport), logger)
	keys.fetched = a.metrics.fetched(o.Issuer)
	made.keys = keys
	return made, nil
}

func readCertificates(path string) (text []byte, pool *x509.CertPool, err error) {
	text, err = os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	pool = x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, nil, fmt.Errorf("%s: no certificate; allowed: PEM", path)
	}
	return text, pool, nil
}

// Run keeps the keys fresh until ctx ends, and then returns nil. Until it runs, no keys are fetched.
func (a *Authenticator) Run(ctx context.Context) error {
	a.mu.Lock()
	a.running = ctx
	for _, iss := range a.accepted.Load().issuers {
		a.keep(iss)
	}
	a.mu.Unlock()
	<-ctx.Done()
	a.mu.Lock()
	a.running = nil
	a.mu.Unlock()
	a.keeping.Wait()
	if own, ok := a.transport.(*http.Transport); ok {
		own.CloseIdleConnections()
	}
	return nil
}

// Authenticate returns the identity of a token. Without a token it is the anonymous identity, if that is allowed; a
// bad token never counts as none. It waits for keys only if none fits and a fetch may help, for some seconds at most.
//
// An error wraps ErrNoCredentials, ErrBadToken (also ErrTokenExpired) or ErrUnavailable, or is ctx's. Its text is for
// the log; see PublicText and Challenge.
func (a *Authenticator) Authenticate(ctx context.Context, token string) (Identity, error) {
	id, err := a.authenticate(ctx, token)
	a.metrics.authenticated(id, err)
	return id, err
}

func (a *Authenticator) authenticate(ctx context.Context, token string) (Identity, error) {
	if token == "" {
		if !a.accepted.Load().anonymous {
			return Identity{}, ErrNoCredentials
		}
		return Identity{Username: anonymousUser, Groups: []string{unauthenticatedGroup}, Anonymous: true}, nil
	}
	id, err := a.verify(ctx, token)
	if errors.Is(err, errForeignIssuer) && a.serviceAccounts != nil {
		id, err = a.serviceAccounts.review(ctx, token)
	}
	if err == nil {
		err = a.revocations.Check(id)
	}
	return answered(ctx, id, err)
}

// Confirm checks that the credentials of an earlier identity still count: they were not revoked, and a
// ServiceAccount's token is still known to its cluster. It returns the identity as it is now. Its errors are those of
// Authenticate.
func (a *Authenticator) Confirm(ctx context.Context, id Identity) (Identity, error) {
	if id.Anonymous {
		if !a.accepted.Load().anonymous {
			return Identity{}, Refused(errors.New("nobody is let in any more without credentials"))
		}
		return id, nil
	}
	var err error
	switch {
	case id.Token == "" && strings.HasPrefix(id.Username, serviceAccountPrefix):
		// An earlier version sealed this session, and kept what the cluster had said once.
		return Identity{}, Refused(errors.New("a ServiceAccount's without its token"))
	case id.Token != "":
		if a.serviceAccounts == nil {
			return Identity{}, Refused(errors.New("a ServiceAccount's, which are not let in any more"))
		}
		id, err = a.serviceAccounts.review(ctx, string(id.Token))
	}
	if err == nil {
		err = a.revocations.Check(id)
	}
	return answered(ctx, id, err)
}

// answered turns the outcome of a check into what Authenticate and Confirm return.
func answered(ctx context.Context, id Identity, err error) (Identity, error) {
	switch {
	case err == nil:
		return id, nil
	case ctx.Err() != nil:
		return Identity{}, fmt.Errorf("check token: %w", ctx.Err())
	case errors.Is(err, ErrUnavailable):
		return Identity{}, err
	default:
		return Identity{}, Refused(err)
	}
}

// tokenError is a refusal with its cause.
type tokenError struct {
	kinds []error // the sentinels that it is
	cause error
}

// Refused makes an ErrBadToken from a cause, for packages that accept something in place of a token. It is also an
// ErrTokenExpired or ErrRevoked if its cause is.
func Refused(cause error) error {
	e := &tokenError{kinds: []error{ErrBadToken}, cause: cause}
	for _, kind := range []error{ErrTokenExpired, ErrRevoked} {
		if errors.Is(cause, kind) {
			e.kinds = append(e.kinds, kind)
		}
	}
	return e
}

// Error is for the log. Causes may quote a name from the token, but never the token. They are truncated, since a
// stranger may have chosen that name.
func (e *tokenError) Error() string {
	const most = 200
	cause := strings.ToValidUTF8(e.cause.Error(), "?")
	if len(cause) > most {
		cause = strings.ToValidUTF8(cause[:most], "") + "…"
	}
	return ErrBadToken.Error() + ": " + cause
}

func (e *tokenError) Unwrap() []error { return e.kinds }
