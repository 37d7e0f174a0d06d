package signin

import (
	"net/http"
	"time"

	"github.com/kubecast/kubecast/internal/http/request"
)

// cookieName is the name of a cookie of the gateway's. Browsers accept one that begins with __Host- only over TLS, from
// this very host, and for all paths of it. Where the gateway stands below a path, the host is shared with programs that
// must not be sent the cookie. So it is for the gateway's paths only, which __Secure- permits.
func cookieName(r *http.Request, name string) string {
	if request.Base(r) == "" {
		return "__Host-" + name
	}
	return "__Secure-" + name
}

// cookiePath is the path of all that is the gateway's.
func cookiePath(r *http.Request) string { return request.Base(r) + "/" }

// sessionName follows the prefix in the name of the session's cookie.
const sessionName = "kubecast"

func setCookie(w http.ResponseWriter, r *http.Request, value string, expires time.Time) {
	set(w, &http.Cookie{Name: cookieName(r, sessionName), Value: value, Path: cookiePath(r), SameSite: http.SameSiteStrictMode}, time.Until(expires))
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
func sessionCookie(r *http.Request) string { return onlyCookie(r, cookieName(r, sessionName)) }

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
