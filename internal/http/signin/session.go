package signin

import (
	"net/http"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/reply"
)

// sessionAnswer is the answer to GET and POST /auth/session.
type sessionAnswer struct {
	Login     bool       `json:"login"`               // one can sign in at /auth/login
	Username  string     `json:"username,omitempty"`  // of the session, if there is a valid one
	ExpiresAt *time.Time `json:"expiresAt,omitempty"` // likewise
	Renewable bool       `json:"renewable"`           // POST without a token may renew the session, even if it has ended
}

// tellSession answers GET /auth/session. A page asks this first, so that it need not try other requests and be refused.
// The answer says whether the gateway has a login, and tells a browser about its own session.
func (h *Handler) tellSession(w http.ResponseWriter, r *http.Request) error {
	if err := h.refuseForeign(r); err != nil {
		return err
	}
	answer := sessionAnswer{Login: h.opts.Login != nil}
	if cookie := sessionCookie(r); cookie != "" && h.opts.Sessions != nil {
		if id, err := h.opts.Sessions.Open(from(r), cookie); err == nil {
			expires := id.ExpiresAt.UTC()
			answer.Username, answer.ExpiresAt = id.Username, &expires
		}
		answer.Renewable = answer.Login && h.opts.Login.Renewable(cookie, onlyCookie(r, renewalCookieName))
	}
	return reply.JSON(w, answer)
}

// beginSession answers POST /auth/session. A client that sends a bearer token gets a cookie that ends with the token.
// The token must be in the header, so that no form can begin a session. Without a token, a session that began with a
// login is renewed.
func (h *Handler) beginSession(w http.ResponseWriter, r *http.Request) error {
	if err := h.refuseForeign(r); err != nil {
		return err
	}
	if r.Header.Get("Authorization") == "" {
		return h.renewSession(w, r)
	}
	id, err := h.Caller(r)
	if err != nil {
		return err
	}
	if h.opts.Sessions == nil {
		return reply.NotFoundFor(reply.ReasonNotEnabled, "this gateway has no sessions")
	}
	sealed, err := h.opts.Sessions.Seal(id)
	if err != nil {
		return err
	}
	setCookie(w, r, sealed, id.ExpiresAt)
	return h.answerSession(w, id, false)
}

func (h *Handler) answerSession(w http.ResponseWriter, id auth.Identity, renewable bool) error {
	expires := id.ExpiresAt.UTC()
	return reply.JSON(w, sessionAnswer{Login: h.opts.Login != nil, Username: id.Username, ExpiresAt: &expires, Renewable: renewable})
}

// logout answers POST /auth/logout: it makes the browser forget its cookies, whether these are valid or not. If the
// session began with a login, and the provider has a session of its own, the answer says where the browser can end
// that, too.
func (h *Handler) logout(w http.ResponseWriter, r *http.Request) error {
	if err := h.refuseForeign(r); err != nil {
		return err
	}
	if trace := auditrecord.Of(r.Context()); trace != nil && h.opts.Sessions != nil {
		if id, err := h.opts.Sessions.Open(from(r), sessionCookie(r)); err == nil {
			trace.Is(id, auditrecord.BySession)
		}
	}
	setCookie(w, r, "", time.Unix(0, 0))
	if h.opts.Login != nil {
		setRenewal(w, r, "")
		if kept := onlyCookie(r, renewalCookieName); kept != "" {
			if location := h.opts.Login.End(r.Context(), kept); location != "" {
				return reply.JSON(w, struct {
					Location string `json:"location"`
				}{location})
			}
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return nil
}
