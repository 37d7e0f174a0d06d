package request

import (
	"net/http"
	"net/url"
	"regexp"
)

// jsonWebToken is the compact form (RFC 7515, 3.1) of what begins with {" as each header does.
var jsonWebToken = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`)

// HoldsToken reports whether a token, or what looks like one, stands in an address.
func HoldsToken(address *url.URL) bool {
	if !MayName(address.RawQuery, "token") {
		return jsonWebToken.MatchString(address.Path) || jsonWebToken.MatchString(address.RawQuery)
	}
	query := address.Query()
	for _, name := range []string{"access_token", "token", "id_token"} {
		if query.Has(name) {
			return true
		}
	}
	return jsonWebToken.MatchString(address.Path) || jsonWebToken.MatchString(address.RawQuery)
}

// Redact takes out of a text what looks like a token.
func Redact(text string) string { return jsonWebToken.ReplaceAllString(text, "[token]") }

// maxLoggedPath is more than the path of any object takes.
const maxLoggedPath = 1 << 10

// PathForLog is a request's path as it may be logged. A query never may: it holds what people search for, and tickets.
func PathForLog(r *http.Request) string {
	path := Redact(r.URL.Path)
	if len(path) > maxLoggedPath {
		path = path[:maxLoggedPath] + "…"
	}
	return path
}
