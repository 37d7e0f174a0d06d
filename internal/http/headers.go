package http

import (
	"maps"
	"net"
	"net/http"

	"github.com/kubecast/kubecast/internal/http/reply"
)

const (
	// portalPolicy lets the portal load and call the gateway, and nothing else. Code and styles
	// come from files only, and no text can become code or markup (trusted types). Signing in at a
	// provider means to follow a link, which a policy does not restrict. Forms are never sent, so a
	// token that was typed in cannot end up in an address.
	portalPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

	// noFeatures are features of browsers that the portal's page does not need.
	noFeatures = "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), microphone=(), " +
		"midi=(), payment=(), publickey-credentials-get=(), serial=(), usb=()"

	// oneYear is how long a browser that came by TLS must come by TLS only.
	oneYear = "max-age=31536000"
)

// ofEveryAnswer is shared by all answers. A handler that needs another value must set it in its answer, and must not
// change a value of this map.
var ofEveryAnswer = http.Header{
	"X-Content-Type-Options":       {"nosniff"},
	"Referrer-Policy":              {"no-referrer"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
	"Content-Security-Policy":      {reply.AnswerPolicy},
}

// securityHeaders sets the headers of every answer. The resource policy does not concern pages of configured origins,
// which read answers by CORS. It keeps other pages from embedding answers.
func securityHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		maps.Copy(h, ofEveryAnswer)
		if r.TLS != nil && !isLocal(r.Host) {
			h.Set("Strict-Transport-Security", oneYear)
		}
		next.ServeHTTP(w, r)
	})
}

// pageHeaders sets the headers of the portal's files, beyond those of every answer.
func pageHeaders(h http.Header) {
	h.Set("Content-Security-Policy", portalPolicy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", noFeatures)
	h.Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
}

// isLocal reports whether a host is localhost. Everything that is developed on a machine shares that name, so browsers
// must not be told to come to it by TLS only.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost"
}
