package http

import (
	"maps"
	"net"
	"net/http"

	"github.com/kubecast/kubecast/internal/http/reply"
)

const (
	// portalPolicy lets the portal load and call the gateway, and nothing else. Code and styles come from files only, and
	// no text becomes code or markup on the way (trusted types). Signing in at a provider is going there by a link, which
	// a policy does not concern; forms are never sent, so that a token that was typed in ends up in no address.
	portalPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

	// noFeatures are what the portal's page needs nothing of.
	noFeatures = "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), microphone=(), " +
		"midi=(), payment=(), publickey-credentials-get=(), serial=(), usb=()"

	// oneYear is for how long a browser comes by TLS only once it did.
	oneYear = "max-age=31536000"
)

// ofEveryAnswer is shared by all answers: who wants another value sets it, and does not change this one.
var ofEveryAnswer = http.Header{
	"X-Content-Type-Options":       {"nosniff"},
	"Referrer-Policy":              {"no-referrer"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
	"Content-Security-Policy":      {reply.AnswerPolicy},
}

// securityHeaders are those of every answer. Pages of configured origins read answers by CORS, which the resource policy
// leaves alone; it is what others embed without asking that it keeps from them.
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

// pageHeaders are those of the portal's files, beyond those of every answer.
func pageHeaders(h http.Header) {
	h.Set("Content-Security-Policy", portalPolicy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", noFeatures)
	h.Set("X-Frame-Options", "DENY") // for what does not know frame-ancestors
}

// isLocal reports whether a host is the machine's own, where everything else that is developed shares its name.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost"
}
