package http

import (
	"net/http"
	"strings"

	"github.com/kubecast/kubecast/internal/http/reply"
)

// impersonation is the prefix of the headers by which a request asks the API server to be handled as another user's.
const impersonation = "Impersonate-"

// refuseImpersonation refuses requests that ask to be handled as another user's. The gateway always answers for the
// user who sends the request. If it ignored the headers, a backend that impersonates its users would show each of
// them what the backend itself may see.
func refuseImpersonation(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if len(name) >= len(impersonation) && strings.EqualFold(name[:len(impersonation)], impersonation) {
				reply.To(reply.BadRequest("the gateway impersonates nobody: send %s to the Kubernetes API server itself, or the user's own token here", impersonation+"…")).Write(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
