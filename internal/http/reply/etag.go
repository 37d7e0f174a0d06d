package reply

import (
	"net/http"
	"strings"
)

// NotModified sets an answer's ETag. If the client already has that content, it answers 304 and returns true (RFC
// 9110, 13.1.2). The comparison is the weak one, as If-None-Match requires. The etag "" means that there is none.
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
		for candidate := range strings.SplitSeq(field, ",") { // the gateway's own ETags have no comma
			candidate = strings.TrimSpace(candidate)
			if candidate == "*" || strings.TrimPrefix(candidate, "W/") == etag {
				return true
			}
		}
	}
	return false
}
