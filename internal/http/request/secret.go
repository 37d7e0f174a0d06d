package request

import (
	"net/http"
	"net/url"
	"regexp"
)

// jsonWebToken matches the compact form of a token (RFC 7515, 3.1). Each begins with eyJ, since each header begins
// with {".
var jsonWebToken = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`)

// HoldsToken reports whether a URL contains a token, or something that looks like one.
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

// Redact replaces everything in a text that looks like a token.
func Redact(text string) string { return jsonWebToken.ReplaceAllString(text, "[token]") }

// maxLoggedPath bounds a logged path, in bytes; no object's path is that long.
const maxLoggedPath = 1 << 10

// PathForLog is a request's path in the form that may be logged. The query is never logged: it has tickets, and the
// words for which users search.
func PathForLog(r *http.Request) string {
	path := Redact(r.URL.Path)
	if len(path) > maxLoggedPath {
		path = path[:maxLoggedPath] + "…"
	}
	return path
}
