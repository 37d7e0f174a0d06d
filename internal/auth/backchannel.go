package auth

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// logoutEvent is the claim events' member by which a token is a logout token (OpenID Connect Back-Channel Logout 1.0,
	// section 2.4).
	logoutEvent = "http://schemas.openid.net/event/backchannel-logout"
	// logoutLasts is how old a logout token may be: a provider sends it at once, and perhaps again.
	logoutLasts = 10 * time.Minute
)

// isLogout reports whether claims are those of a logout token.
func isLogout(claims jwt.MapClaims) bool {
	events, _ := claims["events"].(map[string]any)
	_, ok := events[logoutEvent]
	return ok
}

// EndAt takes the provider's word that a session, or all of a user's, ended there (OpenID Connect Back-Channel Logout 1.0):
// it ends here, too, and on all replicas if they share what was revoked. An error is ErrLoginRefused; or ErrUnavailable if
// it can help to send the same again. Whose session it is that ended is returned whenever it ended here.
//
// What began after the token was issued goes on: the user may have signed in again. The issuer's clock says what that is.
func (l *Login) EndAt(ctx context.Context, logoutToken string) (ended Revocation, err error) {
	defer func() { l.authenticator.metrics.login("ended", err) }()
	claims, iss, _, err := l.authenticator.signed(ctx, logoutToken, "jwt", "logout+jwt")
	switch {
	case errors.Is(err, ErrUnavailable), ctx.Err() != nil:
		return Revocation{}, err
	case err != nil:
		return Revocation{}, loginRefused("logout token: %w", err)
	case iss.Issuer.Issuer != l.opts.Issuer:
		return Revocation{}, loginRefused("logout token: of an issuer that nobody signs in at here")
	}
	now := time.Now()
	entry, jti, err := l.logoutOf(claims, now)
	if err != nil {
		return Revocation{}, loginRefused("logout token: %w", err)
	}
	// The same token is the same entry, so that to send it again does no harm if it did not get through; one that did is
	// refused.
	if l.ended.taken(jti) {
		return Revocation{}, loginRefused("logout token: used before")
	}
	sum := sha256.Sum256([]byte(l.opts.Issuer + "\n" + jti))
	name := logoutPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
	if err := l.authenticator.revocations.Revoke(ctx, name, entry); err != nil {
		return entry, fmt.Errorf("%w: a logout is known to this replica only: %w", ErrUnavailable, err)
	}
	l.ended.take(jti, now, now.Add(2*logoutLasts))
	return entry, nil
}

// logoutOf checks the claims of a logout token (section 2.6 there) and says what it ends.
func (l *Login) logoutOf(claims jwt.MapClaims, now time.Time) (entry Revocation, jti string, err error) {
	entry = Revocation{Issuer: l.opts.Issuer, Subject: textOf(claims["sub"]), Session: textOf(claims["sid"]), Before: begunOf(claims)}
	jti = textOf(claims["jti"])
	_, hasNonce := claims["nonce"]
	event, isObject := any(nil), false
	if events, ok := claims["events"].(map[string]any); ok {
		event = events[logoutEvent]
		_, isObject = event.(map[string]any)
	}
	switch {
	case !isObject:
		return entry, jti, errors.New("claim events: no logout's")
	case hasNonce:
		return entry, jti, errors.New("claim nonce: it is an ID token's")
	case !slices.Contains(claimTexts(claims["aud"]), l.opts.ClientID):
		return entry, jti, errors.New("claim aud: for another client")
	case jti == "" || len(jti) > 512:
		return entry, jti, errors.New("claim jti: missing or too long")
	case entry.Before.IsZero():
		return entry, jti, errors.New("claim iat: missing, or in the future")
	case now.Sub(entry.Before) > logoutLasts:
		return entry, jti, errors.New("claim iat: too long ago")
	case entry.Subject == "" && entry.Session == "", len(entry.Subject) > 512, len(entry.Session) > 512:
		return entry, jti, errors.New("claims sub and sid: both missing, or too long")
	}
	// The specification asks for exp; some providers leave it out. One of what is no number is no exp.
	if exp, given := claims["exp"]; given {
		if end, ok := exp.(float64); !ok || end <= float64(now.Unix()) {
			return entry, jti, ErrTokenExpired
		}
	}
	return entry, jti, nil
}
