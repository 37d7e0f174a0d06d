package signin

import (
	"net/http"
	"time"
)

// cookieName is the session's cookie. Browsers accept a cookie with this prefix only over TLS, and only from this very
// host.
const cookieName = "__Host-kubecast"

func setCookie(w http.ResponseWriter, value string, expires time.Time) {
	set(w, &http.Cookie{Name: cookieName, Value: value, Path: "/", SameSite: http.SameSiteStrictMode}, time.Until(expires))
}

// set sets a cookie. An empty value makes the browser forget it. All cookies are out of the reach of scripts, and are
// sent only over TLS, or on loopback, which browsers trust.
func set(w http.ResponseWriter, cookie *http.Cookie, lasts time.Duration) {
	cookie.Secure, cookie.HttpOnly = true, true
	cookie.Expires, cookie.MaxAge = time.Now().Add(lasts), int(lasts.Seconds())
	if cookie.Value == "" {
		cookie.Expires, cookie.MaxAge = time.Unix(0, 0), -1
	}
	http.SetCookie(w, cookie)
}

// sessionCookie returns the value of the session's cookie, or "".
func sessionCookie(r *http.Request) string { return onlyCookie(r, cookieName) }

// onlyCookie returns a cookie's value, or "" if there is none. If there are two of that name, a stranger has set one of
// them. So the result is then a text that is no valid value.
func onlyCookie(r *http.Request, name string) string {
	switch cookies := r.CookiesNamed(name); len(cookies) {
	case 0:
		return ""
	case 1:
		return cookies[0].Value
	}
	return "ambiguous"
}
