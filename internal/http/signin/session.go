package signin

import (
	"net/http"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/trail"
)

// sessionAnswer is what GET and POST /auth/session tell.
type sessionAnswer struct {
	Login     bool       `json:"login"`               // one can sign in at /auth/login
	Username  string     `json:"username,omitempty"`  // of the session, if there is a good one
	ExpiresAt *time.Time `json:"expiresAt,omitempty"` // likewise
	Renewable bool       `json:"renewable"`           // POST without a token may renew it, also if it has ended
}

// tellSession answers GET /auth/session: what a page begins with, which must not find out by being refused. It tells
// everybody whether there is a login, and a browser about its own session.
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

// beginSession answers POST /auth/session. Whoever sends a bearer token is given a cookie for it, which ends with it; the
// token must come in the header, so that no form can make a session. Without one, a session that began with a login is
// renewed.
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
		return reply.NotFound("this gateway has no sessions")
	}
	sealed, err := h.opts.Sessions.Seal(id)
	if err != nil {
		return err
	}
	setCookie(w, sealed, id.ExpiresAt)
	return h.answerSession(w, id, false)
}

func (h *Handler) answerSession(w http.ResponseWriter, id auth.Identity, renewable bool) error {
	expires := id.ExpiresAt.UTC()
	return reply.JSON(w, sessionAnswer{Login: h.opts.Login != nil, Username: id.Username, ExpiresAt: &expires, Renewable: renewable})
}

// logout answers POST /auth/logout: the browser forgets its cookies. It needs no good ones. If the session began with a
// login, and the provider has a session of its own, the answer says where the browser goes to end that, too.
func (h *Handler) logout(w http.ResponseWriter, r *http.Request) error {
	if err := h.refuseForeign(r); err != nil {
		return err
	}
	if trace := trail.Of(r.Context()); trace != nil && h.opts.Sessions != nil {
		if id, err := h.opts.Sessions.Open(from(r), sessionCookie(r)); err == nil {
			trace.Is(id, trail.BySession)
		}
	}
	setCookie(w, "", time.Unix(0, 0))
	if h.opts.Login != nil {
		setRenewal(w, "")
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
