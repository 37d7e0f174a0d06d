package http

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
)

const forwardedPrefix = "X-Forwarded-Prefix"

// below makes every request's path the gateway's own, and remembers what stood before it (request.Base): the configured
// base path, or else what a trusted proxy says it took off. With a base path nothing is served elsewhere.
func (s *Server) below(next http.Handler) http.Handler {
	base := s.opts.BasePath
	elsewhere := s.identify(securityHeaders(s.answer("unknown", func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.Path != base {
			return reply.NotFound("this gateway stands below " + base + "/; a proxy that takes that off the path says so with " + forwardedPrefix)
		}
		home := url.URL{Path: base + "/", RawQuery: r.URL.RawQuery}
		w.Header().Set("Location", home.String())
		w.WriteHeader(http.StatusTemporaryRedirect)
		return nil
	})))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		taken := s.proxies.takenOff(r)
		switch inside, ok := within(base, r); {
		case base == "" && taken == "":
			next.ServeHTTP(w, r)
		case base == "":
			next.ServeHTTP(w, request.WithBase(r, taken))
		case ok:
			next.ServeHTTP(w, request.WithBase(inside, base))
		case taken == base:
			next.ServeHTTP(w, request.WithBase(r, base))
		default:
			elsewhere.ServeHTTP(w, r)
		}
	})
}

// within takes the base path off a request's path, if it is there. The request is a copy.
func within(base string, r *http.Request) (*http.Request, bool) {
	path, ok := strings.CutPrefix(r.URL.Path, base+"/")
	raw, rawOK := strings.CutPrefix(r.URL.RawPath, base+"/")
	if base == "" || !ok || r.URL.RawPath != "" && !rawOK { // the base path has no character that needs to be encoded
		return nil, false
	}
	address := *r.URL
	address.Path = "/" + path
	if address.RawPath != "" {
		address.RawPath = "/" + raw
	}
	inside := *r
	inside.URL = &address
	return &inside, true
}

// takenOff is the part of the path that trusted proxies took off, the outermost first; "" if they took nothing off, or
// what they say is no base path.
func (p *proxies) takenOff(r *http.Request) string {
	headers := r.Header.Values(forwardedPrefix)
	if len(headers) == 0 {
		return ""
	}
	if !p.isPeer(r) {
		return ""
	}
	all := ""
	for prefix := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		prefix = strings.TrimSuffix(strings.Trim(prefix, " \t"), "/")
		if prefix != "" && !config.IsBasePath(prefix) {
			p.tellUnreadable(senderOf(r), forwardedPrefix, "cookies and links of clients behind it are those of a gateway at the root", prefix)
			return ""
		}
		all += prefix
	}
	if all != "" && !config.IsBasePath(all) { // too long
		return ""
	}
	return all
}
