package signin

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/http/reply"
)

// The headers that pages of other origins may send and read, beside those that every page may (Fetch, section 3.2).
const (
	corsRequestHeaders  = "Authorization, Content-Type, If-None-Match, Last-Event-ID"
	corsResponseHeaders = "ETag, Retry-After, WWW-Authenticate, X-Request-Id"
	corsMaxAge          = "7200" // seconds; browsers do not remember a preflight for longer
)

// CORS lets pages of the configured origins call, and answers OPTIONS. Browsers send a session's cookie only if the
// answer names the origin, so the configuration names origins one by one, and does not accept `*`.
func (h *Handler) CORS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		origin := r.Header.Get("Origin")
		preflight := r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
		if len(h.opts.Origins) > 0 {
			header.Add("Vary", "Origin")
			if preflight {
				header.Add("Vary", "Access-Control-Request-Method")
				header.Add("Vary", "Access-Control-Request-Headers")
			}
		}
		if origin != "" && slices.Contains(h.opts.Origins, origin) {
			header.Set("Access-Control-Allow-Origin", origin)
			if h.opts.Sessions != nil {
				header.Set("Access-Control-Allow-Credentials", "true") // a session's cookie, from another origin of the same site
			}
			if preflight {
				header.Set("Access-Control-Allow-Methods", h.AllowedMethods(r.URL.Path))
				header.Set("Access-Control-Allow-Headers", corsRequestHeaders)
				header.Set("Access-Control-Max-Age", corsMaxAge)
			} else {
				header.Set("Access-Control-Expose-Headers", corsResponseHeaders)
			}
		}
		if r.Method == http.MethodOptions {
			header.Set("Allow", h.AllowedMethods(r.URL.Path))
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// AllowedMethods returns the methods that a path takes, as the value of the header Allow.
func (h *Handler) AllowedMethods(path string) string {
	reads, ok := changes[path]
	switch {
	case ok && reads:
		return "GET, HEAD, POST, OPTIONS"
	case ok:
		return "POST, OPTIONS"
	case h.opts.Allows != nil:
		if methods := h.opts.Allows(path); methods != "" {
			return methods
		}
	}
	return "GET, HEAD, OPTIONS"
}

// refuseForeign refuses a request that a page of another origin makes the browser send with the user's cookie. Only the
// gateway's own pages, and those of the configured origins, may use the cookie.
//
// Sec-Fetch-Site, which no page can write, is used before Origin is compared with Host. It is also right behind a proxy
// that does not pass on the Host, and where a page of the same host came without TLS, which is another site.
func (h *Handler) refuseForeign(r *http.Request) error {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	ours := false
	switch {
	case origin != "" && slices.Contains(h.opts.Origins, origin):
		ours = true
	case site == "same-origin", site == "none": // none: the user, by the address bar or a bookmark
		ours = true
	case site != "": // only following a link is permitted; images and scripts of pages are no navigation
		ours = origin == "" && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate"
	case origin != "":
		ours = isOriginOf(origin, r.Host)
	default: // no browser, or one so old that SameSite alone protects its user
		ours = true
	}
	if ours {
		return nil
	}
	return &reply.Error{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: "a page of another origin may not use the session of this one; cors.origins names those that may",
	}
}

// isOriginOf reports whether an origin is that of the host to which a request was sent. The scheme is not compared,
// since it is https in front of a proxy and may be http behind it.
func isOriginOf(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") && strings.EqualFold(u.Host, host)
}
