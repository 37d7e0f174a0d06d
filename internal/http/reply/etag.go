package reply

import (
	"net/http"
	"strings"
)

// NotModified sets an answer's ETag and reports whether the client has it already, in which case the answer is 304
// (RFC 9110, 13.1.2). The comparison is the weak one, as it is for If-None-Match. "" is no ETag.
func NotModified(w http.ResponseWriter, r *http.Request, etag string) bool {
	if etag == "" {
		return false
	}
	w.Header().Set("ETag", etag)
	if !matches(r.Header.Values("If-None-Match"), etag) {
		return false
	}
	w.Header().Del("Content-Type")
	w.WriteHeader(http.StatusNotModified)
	return true
}

func matches(fields []string, etag string) bool {
	etag = strings.TrimPrefix(etag, "W/")
	for _, field := range fields {
		for candidate := range strings.SplitSeq(field, ",") { // the gateway's own have no comma
			candidate = strings.TrimSpace(candidate)
			if candidate == "*" || strings.TrimPrefix(candidate, "W/") == etag {
				return true
			}
		}
	}
	return false
}
