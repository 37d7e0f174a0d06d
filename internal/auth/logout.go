package auth

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// logoutEvent is the member of the claim events that makes a token a logout token (OpenID Connect Back-Channel
	// Logout 1.0, section 2.4).
	logoutEvent = "http://schemas.openid.net/event/backchannel-logout"
	// LogoutLasts is how old a logout token may be. A provider sends it at once, and perhaps a second time.
	LogoutLasts = 10 * time.Minute
)

// isLogout reports whether claims are those of a logout token.
func isLogout(claims jwt.MapClaims) bool {
	events, _ := claims["events"].(map[string]any)
	_, ok := events[logoutEvent]
	return ok
}

// LogoutToken returns what a logout token of the provider ends, and the token's id, the claim jti (OpenID Connect
// Back-Channel Logout 1.0, section 2.6). Sessions that began after the token was issued, by the issuer's clock, go
// on: the user may have signed in again. An error wraps ErrUnavailable, is the context's, or says why it is not a
// logout token.
func (c *Client) LogoutToken(ctx context.Context, token string) (entry Revocation, jti string, err error) {
	claims, iss, _, err := c.authenticator.signed(ctx, token, "jwt", "logout+jwt")
	switch {
	case err != nil:
		return Revocation{}, "", err
	case iss.Issuer.Issuer != c.issuer:
		return Revocation{}, "", errors.New("of an issuer that nobody signs in at here")
	}
	return c.logoutOf(claims, time.Now())
}

// logoutOf checks the claims of a logout token.
func (c *Client) logoutOf(claims jwt.MapClaims, now time.Time) (entry Revocation, jti string, err error) {
	entry = Revocation{Issuer: c.issuer, Subject: textOf(claims["sub"]), Session: textOf(claims["sid"]), Before: begunOf(claims)}
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
	case !slices.Contains(claimTexts(claims["aud"]), c.id):
		return entry, jti, errors.New("claim aud: for another client")
	case jti == "" || len(jti) > 512:
		return entry, jti, errors.New("claim jti: missing or too long")
	case entry.Before.IsZero():
		return entry, jti, errors.New("claim iat: missing, or in the future")
	case now.Sub(entry.Before) > LogoutLasts:
		return entry, jti, errors.New("claim iat: too long ago")
	case entry.Subject == "" && entry.Session == "", len(entry.Subject) > 512, len(entry.Session) > 512:
		return entry, jti, errors.New("claims sub and sid: both missing, or too long")
	}
	// The specification requires exp, but some providers leave it out. An exp that is not a number is refused.
	if exp, given := claims["exp"]; given {
		if end, ok := exp.(float64); !ok || end <= float64(now.Unix()) {
			return entry, jti, ErrTokenExpired
		}
	}
	return entry, jti, nil
}
