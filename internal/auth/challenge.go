package auth

// Challenge is the value of WWW-Authenticate for an error of Authenticate (RFC 6750, section 3).
func Challenge(err error) string { return `Bearer realm="kubecast"` }

// PublicText is all that a caller may be told about an error of Authenticate or Authorize.
func PublicText(err error) string { return "" }
