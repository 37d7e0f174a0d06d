package signin

import (
	"net/http"
	"time"
)

// cookieName has a prefix by which browsers take it over TLS and from this very host only.
const cookieName = "__Host-kubecast"

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
