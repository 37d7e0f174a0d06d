package auth

import "errors"

// Challenge is the value of WWW-Authenticate for an error of Authenticate (RFC 6750, section 3). It says whether the
// client should fetch a new token, but not what exactly was wrong with a forged one.
func Challenge(err error) string {
	const realm = `Bearer realm="kubecast"`
	switch {
	case errors.Is(err, ErrTokenExpired):
		return realm + `, error="invalid_token", error_description="The access token expired"`
	case errors.Is(err, ErrBadToken):
		return realm + `, error="invalid_token", error_description="The access token is invalid"`
	default:
		return realm
	}
}

// PublicText is all that a caller may be told about an error of Authenticate or Authorize.
func PublicText(err error) string {
	switch {
	case errors.Is(err, ErrNoCredentials):
		return "credentials required"
	case errors.Is(err, ErrTokenExpired):
		return "token expired"
	case errors.Is(err, ErrBadToken):
		return "invalid token"
	case errors.Is(err, ErrUnavailable):
		return "tokens cannot be checked at the moment"
	case errors.Is(err, ErrUndecided):
		return "permissions cannot be checked at the moment"
	default:
		return "internal error"
	}
}
