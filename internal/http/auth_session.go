package http

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/trail"
)

// cookieName has a prefix by which browsers take it over TLS and from this very host only.
const cookieName = "__Host-kubecast"

// authChanges are the paths at which somebody signs in or out, which are the only ones that take POST; and whether they
// take GET, too.
var authChanges = map[string]bool{"/auth/session": true, "/auth/ticket": false, "/auth/logout": false, backchannelPath: false}

// isSignIn reports whether a path is one at which somebody signs in or out.
func isSignIn(path string) bool {
	_, changes := authChanges[path]
	return changes || path == "/auth/login" || path == "/auth/callback"
}

// sessionAnswer is what GET and POST /auth/session tell.
type sessionAnswer struct {
	Login     bool       `json:"login"`               // one can sign in at /auth/login
	Username  string     `json:"username,omitempty"`  // of the session, if there is a good one
	ExpiresAt *time.Time `json:"expiresAt,omitempty"` // likewise
	Renewable bool       `json:"renewable"`           // POST without a token may renew it, also if it has ended
}

// tellSession answers GET /auth/session: what a page begins with, which must not find out by being refused. It tells
// everybody whether there is a login, and a browser about its own session.
func (s *Server) tellSession(w http.ResponseWriter, r *http.Request) error {
	if err := s.refuseForeign(r); err != nil {
		return err
	}
	answer := sessionAnswer{Login: s.opts.Login != nil}
	if cookie := sessionCookie(r); cookie != "" && s.opts.Sessions != nil {
		if id, err := s.opts.Sessions.Open(from(r), cookie); err == nil {
			expires := id.ExpiresAt.UTC()
			answer.Username, answer.ExpiresAt = id.Username, &expires
		}
		answer.Renewable = answer.Login && s.opts.Login.Renewable(cookie, onlyCookie(r, renewalCookieName))
	}
	return reply.JSON(w, answer)
}

// beginSession answers POST /auth/session. Whoever sends a bearer token is given a cookie for it, which ends with it; the
// token must come in the header, so that no form can make a session. Without one, a session that began with a login is
// renewed.
func (s *Server) beginSession(w http.ResponseWriter, r *http.Request) error {
	if err := s.refuseForeign(r); err != nil {
		return err
	}
	if r.Header.Get("Authorization") == "" {
		return s.renewSession(w, r)
	}
	id, err := s.caller(r)
	if err != nil {
		return err
	}
	if s.opts.Sessions == nil {
		return reply.NotFound("this gateway has no sessions")
	}
	sealed, err := s.opts.Sessions.Seal(id)
	if err != nil {
		return err
	}
	setCookie(w, sealed, id.ExpiresAt)
	return s.answerSession(w, id, false)
}

func (s *Server) answerSession(w http.ResponseWriter, id auth.Identity, renewable bool) error {
	expires := id.ExpiresAt.UTC()
	return reply.JSON(w, sessionAnswer{Login: s.opts.Login != nil, Username: id.Username, ExpiresAt: &expires, Renewable: renewable})
}

// logout answers POST /auth/logout: the browser forgets its cookies. It needs no good ones. If the session began with a
// login, and the provider has a session of its own, the answer says where the browser goes to end that, too.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) error {
	if err := s.refuseForeign(r); err != nil {
		return err
	}
	if trace := trail.Of(r.Context()); trace != nil && s.opts.Sessions != nil {
		if id, err := s.opts.Sessions.Open(from(r), sessionCookie(r)); err == nil {
			trace.Is(id, trail.BySession)
		}
	}
	setCookie(w, "", time.Unix(0, 0))
	if s.opts.Login != nil {
		setRenewal(w, "")
		if kept := onlyCookie(r, renewalCookieName); kept != "" {
			if location := s.opts.Login.End(r.Context(), kept); location != "" {
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

func setCookie(w http.ResponseWriter, value string, expires time.Time) {
	set(w, &http.Cookie{Name: cookieName, Value: value, Path: "/", SameSite: http.SameSiteStrictMode}, time.Until(expires))
}

// set is how all cookies are set: out of the reach of scripts, and over TLS only (or on loopback, which browsers trust).
func set(w http.ResponseWriter, cookie *http.Cookie, lasts time.Duration) {
	cookie.Secure, cookie.HttpOnly = true, true
	cookie.Expires, cookie.MaxAge = time.Now().Add(lasts), int(lasts.Seconds())
	if cookie.Value == "" {
		cookie.Expires, cookie.MaxAge = time.Unix(0, 0), -1
	}
	http.SetCookie(w, cookie)
}

// sessionCookie is the cookie's value, or "".
func sessionCookie(r *http.Request) string { return onlyCookie(r, cookieName) }

// onlyCookie is a cookie's value, or "". Two of one name are as good as none that can be read: one is a stranger's.
func onlyCookie(r *http.Request, name string) string {
	switch cookies := r.CookiesNamed(name); len(cookies) {
	case 0:
		return ""
	case 1:
		return cookies[0].Value
	}
	return "ambiguous"
}

// refuseForeign refuses what a page of another origin lets a browser send, with the user's cookie: only this gateway's own
// pages and those of the configured origins may. Sec-Fetch-Site, which no page can write, counts before the comparison of
// Origin with Host: it is right behind a proxy that does not pass the Host on, and knows a plain page of the same host for
// another site's.
func (s *Server) refuseForeign(r *http.Request) error {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	ours := false
	switch {
	case origin != "" && slices.Contains(s.opts.Origins, origin):
		ours = true
	case site == "same-origin", site == "none": // none: the user himself, by the address bar or a bookmark
		ours = true
	case site != "": // somebody follows a link; pages' images and scripts are no navigation
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

// isOriginOf reports whether an origin is that of the host that a request was sent to. What is before a proxy is https,
// behind it http, so the scheme is not compared.
func isOriginOf(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") && strings.EqualFold(u.Host, host)
}
