package signin

import (
	"errors"
	"mime"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth/oidc"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
)

// backchannelPath is where the provider tells the gateway that a session has ended there.
const backchannelPath = "/auth/backchannel-logout"

// endedAtProvider answers POST /auth/backchannel-logout (OpenID Connect Back-Channel Logout 1.0, section 2.5). The
// request comes from the provider, not from a browser, and has no caller. Only the token in its body counts.
func (h *Handler) endedAtProvider(w http.ResponseWriter, r *http.Request) error {
	if h.opts.Login == nil {
		return reply.NotFoundFor(reply.ReasonNotEnabled, "this gateway has no login of its own")
	}
	if request.HoldsToken(r.URL) {
		return reply.BadRequest("a token in the address would end up in logs: send it in the body")
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/x-www-form-urlencoded" {
		return &reply.Error{
			Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: "the body must be application/x-www-form-urlencoded",
		}
	}
	if err := r.ParseForm(); err != nil {
		return reply.Unreadable(err)
	}
	tokens := r.PostForm["logout_token"]
	if len(tokens) != 1 {
		return reply.BadRequest("the body must have one logout_token")
	}
	ended, err := h.opts.Login.EndAt(from(r), tokens[0])
	auditrecord.Of(r.Context()).Ends(ended)
	switch {
	case errors.Is(err, oidc.ErrRefused):
		return h.refusedAt(r, &reply.Error{
			Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: "this is no logout token that counts here", Cause: err,
		})
	case err != nil:
		return err
	}
	h.logger(r).Info("a session was ended by the provider")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return nil
}
