package oidc

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/fetch"
	"github.com/kubecast/kubecast/internal/auth/session"
)

// renewal is what a browser keeps beside its session, so that the gateway can renew and end it. It names its session.
// So an attacker who puts their own renewal into another user's browser, as a neighbouring host can, does not bring
// that user into the attacker's session.
type renewal struct {
	Session string `json:"s"`
	Subject string `json:"u"`
	Refresh string `json:"r,omitempty"`
	IDToken string `json:"h,omitempty"` // the last one: a hint for the provider whose session to end
}

// seal makes the cookies of a session. The refresh token must fit into one cookie, since all headers of a request
// must fit into the 8 KiB that proxies accept. If the hint does not fit, too, it is left out.
func (l *Login) seal(id auth.Identity, r renewal) (LoggedIn, error) {
	sealed, err := l.sealer.SealSession(session.Sealed{Identity: id, ID: r.Session, At: time.Now()})
	if err != nil {
		return LoggedIn{}, err
	}
	kept, err := l.sealer.Seal(session.PurposeRenewal, r)
	if err == nil && len(kept) > session.MaxCookie {
		r.IDToken = ""
		kept, err = l.sealer.Seal(session.PurposeRenewal, r)
	}
	if err == nil && len(kept) > session.MaxCookie {
		l.log.Warn("the provider's refresh tokens do not fit into a cookie: sessions end with their ID tokens", "bytes", len(r.Refresh))
		kept = ""
	}
	return LoggedIn{Identity: id, Session: sealed, Renewal: kept}, err
}

// Renewable reports whether Renew may succeed with these cookies: they belong together, and have a refresh token.
func (l *Login) Renewable(session, kept string) bool {
	_, r, err := l.openBoth(session, kept)
	return err == nil && r.Refresh != ""
}

// openBoth opens a session, which may have ended, and its renewal.
func (l *Login) openBoth(sealed, kept string) (read session.Sealed, r renewal, err error) {
	if read, err = l.sealer.OpenSession(sealed); err != nil {
		return read, r, err
	}
	if err := l.sealer.Open(session.PurposeRenewal, kept, &r); err != nil {
		return read, r, auth.Refused(fmt.Errorf("renewal: %w", err))
	}
	if read.ID == "" || subtle.ConstantTimeCompare([]byte(read.ID), []byte(r.Session)) != 1 {
		return read, r, auth.Refused(errors.New("renewal: of another session"))
	}
	return read, r, nil
}

// Renew continues a session with a new ID token, even if the session has ended. A session that was renewed just now
// stays as it is, since several pages of one browser ask at the same time. The error is auth.ErrBadToken if the user
// must sign in anew, or ErrProviderAway if trying again may help.
func (l *Login) Renew(ctx context.Context, sealed, kept string) (LoggedIn, error) {
	read, r, err := l.openBoth(sealed, kept)
	if err != nil {
		return LoggedIn{}, err
	}
	id, now, begun := read.Identity, time.Now(), read.At
	// Browsers drop the renewal by then, and the list of what was revoked may have forgotten the session.
	if now.Sub(begun) > auth.RenewalTime {
		return LoggedIn{}, auth.Refused(fmt.Errorf("renewal: %w: the session was last renewed at %v", auth.ErrTokenExpired, begun))
	}
	if _, err := l.client.Confirm(ctx, id); err != nil {
		return LoggedIn{}, err
	}
	if now.Before(id.ExpiresAt) && now.Sub(begun) < min(id.ExpiresAt.Sub(begun)/4, justNow) {
		return LoggedIn{Identity: id, Renewal: kept}, nil
	}
	if r.Refresh == "" {
		return LoggedIn{}, auth.Refused(errors.New("renewal: the provider gave no refresh token"))
	}
	renewed, err := l.renewals.share(ctx, r.Refresh, func(ctx context.Context) (_ LoggedIn, replaced bool, err error) {
		defer func() { l.count("renewed", err) }()
		return l.renew(ctx, r, id)
	})
	if err == nil && renewed.Renewal != "" && !time.Now().Before(renewed.Identity.ExpiresAt) {
		// This is an earlier answer, which the browser did not get. That session, too, has ended since.
		return l.Renew(ctx, renewed.Session, renewed.Renewal)
	}
	return renewed, err
}

// justNow is how long at most a session counts as just renewed.
const justNow = 10 * time.Second

// renew renews a session, and reports whether the refresh token was replaced. The new session keeps the time at which
// the first one began. Otherwise a session that is revoked while a replica that does not know that yet renews it
// would live on.
func (l *Login) renew(ctx context.Context, r renewal, before auth.Identity) (_ LoggedIn, replaced bool, _ error) {
	party, _, err := l.party(ctx)
	if err != nil {
		return LoggedIn{}, false, err
	}
	token, err := l.ask(ctx, turnOf(r), func(ctx context.Context) (*oauth2.Token, error) {
		return party.TokenSource(ctx, &oauth2.Token{RefreshToken: r.Refresh}).Token()
	})
	if err != nil {
		err = providerError("renewal", err)
	}
	var id auth.Identity
	if err == nil {
		id, r.IDToken, err = l.identify(ctx, token)
	}
	switch {
	case errors.Is(err, ErrRefused):
		return LoggedIn{}, false, auth.Refused(err)
	case err != nil:
		return LoggedIn{}, false, err
	}
	// OpenID Connect Core, section 12.2, requires the same subject.
	if id.Claims["sub"] != r.Subject {
		return LoggedIn{}, false, auth.Refused(errors.New("renewal: the new ID token is another user's"))
	}
	id.Begun = before.Begun
	if id.Session == "" {
		id.Session = before.Session
	}
	replaced = token.RefreshToken != r.Refresh // the library keeps the old one if the answer has none
	r.Refresh = token.RefreshToken
	renewed, err := l.seal(id, r)
	return renewed, replaced, err
}

// turnOf is the name under which a user with a session takes turns.
func turnOf(r renewal) string { return "user " + r.Subject }

// End makes the provider revoke the refresh token, and returns the address at which the browser ends its session at
// the provider, too; "" if that is not possible. The gateway itself has nothing to end.
func (l *Login) End(ctx context.Context, kept string) (location string) {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	var r renewal
	if err := l.sealer.Open(session.PurposeRenewal, kept, &r); err != nil {
		return "" // the session did not begin with a login, so there is nothing to end
	}
	party, metadata, err := l.party(ctx)
	if err != nil {
		l.log.Warn("a session cannot be ended at the provider", "error", err)
		return ""
	}
	if metadata.Revocation != "" && r.Refresh != "" {
		if err := l.revoke(ctx, party, metadata.Revocation, r); err != nil {
			l.log.Warn("the provider did not take a refresh token back", "error", err)
		}
	}
	if metadata.EndSession == "" {
		return ""
	}
	// By OpenID Connect RP-Initiated Logout 1.0, the browser comes back, to the portal: it is one level above /auth/callback.
	address, err := url.Parse(metadata.EndSession)
	callback, callbackErr := url.Parse(l.opts.RedirectURL)
	if err != nil || callbackErr != nil {
		return ""
	}
	home := callback.ResolveReference(&url.URL{Path: "../"}).String()
	query := address.Query()
	query.Set("client_id", l.opts.ClientID)
	query.Set("post_logout_redirect_uri", home)
	if r.IDToken != "" {
		query.Set("id_token_hint", r.IDToken)
	}
	address.RawQuery = query.Encode()
	return address.String()
}

// endTimeout is how long a user who signs out waits for the provider.
const endTimeout = 3 * time.Second

// revoke revokes the refresh token (RFC 7009).
func (l *Login) revoke(ctx context.Context, party *oauth2.Config, where string, r renewal) error {
	release, err := l.turn(ctx, turnOf(r))
	if err != nil {
		return err
	}
	defer release()
	form := url.Values{"token": {r.Refresh}, "token_type_hint": {"refresh_token"}}
	if party.Endpoint.AuthStyle == oauth2.AuthStyleInParams {
		form.Set("client_id", party.ClientID)
		if party.ClientSecret != "" {
			form.Set("client_secret", party.ClientSecret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, where, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if party.Endpoint.AuthStyle == oauth2.AuthStyleInHeader {
		req.SetBasicAuth(url.QueryEscape(party.ClientID), url.QueryEscape(party.ClientSecret))
	}
	resp, err := l.exchange.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s: %s", where, resp.Status)
	}
	return nil
}

// renewals are the renewals that are under way, and those that were answered recently. A refresh token may be valid
// only once. So two pages of one browser that renew at the same time share one request, and a browser that did not
// get the answer can ask again.
type renewals struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*renewing
	sweep time.Time
}

type renewing struct {
	done  chan struct{} // closed when the result and err are set
	until time.Time     // how long the answer is kept; zero while it is under way
	LoggedIn
	err error
}

// renewedFor is how long an answer is repeated for requests with the refresh token that it has replaced.
const renewedFor = time.Minute

// renewWithin bounds one renewal, including a fetch of the provider's new keys if they are needed.
const renewWithin = fetch.Timeout + 5*time.Second

// share runs renew once for all requests with the same refresh token. It goes on even if the browser that came first
// leaves, since the provider may already have replaced the token.
func (r *renewals) share(ctx context.Context, refresh string, renew func(context.Context) (LoggedIn, bool, error)) (LoggedIn, error) {
	key := sha256.Sum256([]byte(refresh))
	known, first := r.join(key, time.Now())
	if !first {
		select {
		case <-known.done:
			return known.LoggedIn, known.err
		case <-ctx.Done():
			return LoggedIn{}, ctx.Err()
		}
	}
	defer close(known.done)
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewWithin)
	defer cancel()
	result, replaced, err := renew(asking)
	r.mu.Lock()
	defer r.mu.Unlock()
	known.LoggedIn, known.err = result, err
	switch {
	case err != nil, result.Renewal == "":
		delete(r.known, key)
	case replaced:
		known.until = time.Now().Add(renewedFor)
	default: // the next renewal has the same token
		known.until = time.Now().Add(min(time.Until(result.Identity.ExpiresAt)/4, justNow))
	}
	return result, err
}

// join returns the renewal that is under way or was answered for a refresh token, or begins one.
func (r *renewals) join(key [sha256.Size]byte, now time.Time) (known *renewing, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.After(r.sweep) {
		for old, known := range r.known {
			if !known.until.IsZero() && now.After(known.until) {
				delete(r.known, old)
			}
		}
		r.sweep = now.Add(renewedFor / 2)
	}
	if known = r.known[key]; known != nil && (known.until.IsZero() || now.Before(known.until)) {
		return known, false
	}
	if r.known == nil {
		r.known = map[[sha256.Size]byte]*renewing{}
	}
	known = &renewing{done: make(chan struct{}), err: ErrProviderAway}
	r.known[key] = known
	return known, true
}
