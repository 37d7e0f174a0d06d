package http

import (
	"net/http"
	"strings"

	"github.com/kubecast/kubecast/internal/http/reply"
)

// impersonation is how the headers begin by which a request asks the API server to be taken for somebody else's.
const impersonation = "Impersonate-"

// refuseImpersonation refuses requests that are to be answered as somebody else. The gateway answers as to who they come
// from, and if it passed the wish over, a backend that impersonates its users would show each of them what itself may see.
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
