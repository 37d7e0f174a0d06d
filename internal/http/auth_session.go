package http

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
)

// cookieName has a prefix by which browsers take it over TLS and from this very host only.
const cookieName = "__Host-kubecast"

// authChanges are the paths at which somebody signs in or out, which are the only ones that take POST.
var authChanges = map[string]bool{"/auth/session": true, "/auth/ticket": true, "/auth/logout": true}

// beginSession answers POST /auth/session: whoever sends a bearer token is given a cookie for it, which ends with it.
// The token must come in the header: a session is not made longer by itself, and no form can make one.
func (s *Server) beginSession(w http.ResponseWriter, r *http.Request) error {
	if err := s.refuseForeign(r); err != nil {
		return err
	}
	if r.Header.Get("Authorization") == "" {
		return auth.ErrNoCredentials
	}
	id, err := s.caller(r)
	if err != nil {
		return err
	}
	if s.opts.Sealer == nil {
		return notFound("this gateway has no sessions")
	}
	sealed, err := s.opts.Sealer.Session(id)
	switch {
	case errors.Is(err, auth.ErrTooLarge):
		return &reply{
			code: http.StatusRequestHeaderFieldsTooLarge, reason: metav1.StatusReasonRequestEntityTooLarge, cause: err,
			message: "the token has too many groups or claims for a cookie: send it with each request",
		}
	case err != nil:
		return err
	}
	setCookie(w, sealed, id.ExpiresAt)
	return answerJSON(w, struct {
		Username  string    `json:"username"`
		ExpiresAt time.Time `json:"expiresAt"`
	}{id.Username, id.ExpiresAt.UTC()})
}

// logout answers POST /auth/logout: the browser forgets the cookie. It needs no good one.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) error {
	if err := s.refuseForeign(r); err != nil {
		return err
	}
	setCookie(w, "", time.Unix(0, 0))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func setCookie(w http.ResponseWriter, value string, expires time.Time) {
	cookie := &http.Cookie{
		Name: cookieName, Value: value, Path: "/", Expires: expires, MaxAge: int(time.Until(expires).Seconds()),
		Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
	if value == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}

// sessionCookie is the cookie's value, or "". Two of them are as good as none that can be read: one is a stranger's.
func sessionCookie(r *http.Request) string {
	switch cookies := r.CookiesNamed(cookieName); len(cookies) {
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
	return &reply{
		code: http.StatusForbidden, reason: metav1.StatusReasonForbidden,
		message: "a page of another origin may not use the session of this one; cors.origins names those that may",
	}
}

// isOriginOf reports whether an origin is that of the host that a request was sent to. What is before a proxy is https,
// behind it http, so the scheme is not compared.
func isOriginOf(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") && strings.EqualFold(u.Host, host)
}

func answerJSON(w http.ResponseWriter, body any) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(body) // a client that has gone is no error
	return nil
}
