package signin

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/oidc"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
)

const (
	// renewalCookieName is the cookie that renews a session. It is sent only to /auth, where it is
	// needed: it would bring the headers of other requests near to the size that proxies accept. A
	// cookie for one path cannot be tied to the host. So its value names the session to which it
	// belongs.
	renewalCookieName = "__Secure-kubecast-renewal"
	renewalPath       = "/auth"
	// renewalKept is how long a browser keeps the cookie that renews its session.
	renewalKept = auth.RenewalTime

	// loginPrefix is followed by the login's name, since users may begin logins in several tabs (cookieName).
	loginPrefix     = "kubecast-login-"
	maxLoginCookies = 5
)

// beginLogin answers GET /auth/login: it sends the browser to the provider. A cookie keeps what the gateway needs when
// the browser comes back. It is SameSite=Lax, since the browser must send it although another site, the provider, sends
// the browser back.
func (h *Handler) beginLogin(w http.ResponseWriter, r *http.Request) error {
	query, err := h.loginQuery(r)
	if err != nil {
		return err
	}
	for name, values := range query {
		if name != "returnTo" || len(values) > 1 {
			return reply.BadRequest("unknown parameter, or given twice: %.50q; known: returnTo", name)
		}
	}
	returnTo := cookiePath(r)
	if query.Has("returnTo") {
		returnTo = query.Get("returnTo")
	}
	if rest, ours := strings.CutPrefix(returnTo, cookiePath(r)); !oidc.IsReturnPath(returnTo) || ours && !oidc.IsReturnPath("/"+rest) {
		return reply.BadRequest("returnTo is a path of this host, such as %s#jobs", cookiePath(r))
	}
	begun, err := h.opts.Login.Begin(from(r), returnTo)
	if err != nil {
		return err
	}
	h.forgetLogins(w, r, maxLoginCookies-1)
	setLogin(w, r, begun.Name, begun.Pending)
	return redirect(w, begun.Location)
}

// finishLogin answers GET /auth/callback, to which the provider sends the browser back. Whether it succeeds or not, the
// login is over: a browser that comes a second time with the same address has no cookie for it any more.
func (h *Handler) finishLogin(w http.ResponseWriter, r *http.Request) error {
	query, err := h.loginQuery(r)
	if err != nil {
		return err
	}
	for _, name := range []string{"state", "code", "error", "iss"} {
		if len(query[name]) > 1 {
			return reply.BadRequest("%s: given more than once", name)
		}
	}
	name := oidc.LoginName(query.Get("state"))
	pending := ""
	if name != "" {
		pending = onlyCookie(r, cookieName(r, loginPrefix+name))
	}
	if pending == "" {
		// A page of another site may have sent the browser here, with the answer to a login that an attacker began.
		return h.refusedAt(r, &reply.Error{
			Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Cause: errors.New("no cookie of a login with this state"),
			Message: "this sign-in did not begin in this browser, took too long, or is over: begin it anew",
		})
	}
	setLogin(w, r, name, "")
	begun, err := h.opts.Login.Finish(from(r), pending, query)
	if err != nil {
		return h.refused(r, err)
	}
	auditrecord.Of(r.Context()).Is(begun.Identity, auditrecord.ByLogin)
	h.setSession(w, r, begun)
	return redirect(w, begun.ReturnTo)
}

// renewSession renews a session that began with a login. A browser without such a session is told that it needs
// credentials.
func (h *Handler) renewSession(w http.ResponseWriter, r *http.Request) error {
	session, kept := sessionCookie(r), onlyCookie(r, renewalCookieName)
	if h.opts.Login == nil || session == "" || kept == "" {
		return h.refused(r, auth.ErrNoCredentials)
	}
	renewed, err := h.opts.Login.Renew(from(r), session, kept)
	if err != nil {
		return h.refused(r, err)
	}
	auditrecord.Of(r.Context()).Is(renewed.Identity, auditrecord.BySession)
	if renewed.Session != "" { // else another page of this browser was faster
		h.setSession(w, r, renewed)
	}
	return h.answerSession(w, renewed.Identity, renewed.Renewal != "")
}

// setSession sets the cookies of a session. If the session can be renewed, its cookie is kept beyond its end, since it
// identifies the session to be renewed.
func (h *Handler) setSession(w http.ResponseWriter, r *http.Request, begun oidc.LoggedIn) {
	kept := begun.Identity.ExpiresAt
	if begun.Renewal != "" {
		kept = time.Now().Add(renewalKept)
	}
	setCookie(w, r, begun.Session, kept)
	setRenewal(w, r, begun.Renewal)
}

func setRenewal(w http.ResponseWriter, r *http.Request, value string) {
	set(w, &http.Cookie{Name: renewalCookieName, Value: value, Path: request.Base(r) + renewalPath, SameSite: http.SameSiteStrictMode}, renewalKept)
}

func setLogin(w http.ResponseWriter, r *http.Request, name, value string) {
	set(w, &http.Cookie{Name: cookieName(r, loginPrefix+name), Value: value, Path: cookiePath(r), SameSite: http.SameSiteLaxMode}, oidc.LoginTime)
}

// forgetLogins makes a browser forget all logins under way if there are more than most. The cookies of logins that were
// never finished would fill the headers of its requests.
func (h *Handler) forgetLogins(w http.ResponseWriter, r *http.Request, most int) {
	var names []string
	for _, cookie := range r.Cookies() {
		if name, ok := strings.CutPrefix(cookie.Name, cookieName(r, loginPrefix)); ok {
			names = append(names, name)
		}
	}
	if len(names) > most {
		for _, name := range names {
			setLogin(w, r, name, "")
		}
	}
}

// loginQuery returns the query of a request of a login. It fails if the gateway has no login, or if the user would not
// see it.
func (h *Handler) loginQuery(r *http.Request) (url.Values, error) {
	if h.opts.Login == nil {
		return nil, reply.NotFoundFor(reply.ReasonNotEnabled, "this gateway has no login of its own")
	}
	if err := refuseEmbedded(r); err != nil {
		return nil, err
	}
	return request.Query(r)
}

// refuseEmbedded refuses a login that the user would not see: in a frame, as an image, or fetched by a script or ahead
// of time.
func refuseEmbedded(r *http.Request) error {
	mode, dest := r.Header.Get("Sec-Fetch-Mode"), r.Header.Get("Sec-Fetch-Dest")
	if (mode == "" || mode == "navigate") && (dest == "" || dest == "document") && r.Header.Get("Sec-Purpose") == "" && !request.IsHead(r) {
		return nil
	}
	return &reply.Error{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "one signs in by going to this address, and in no other way"}
}

// redirect sends a browser to another address. The address is only in the header and not in a body, since it may
// contain the state of a login.
func redirect(w http.ResponseWriter, location string) error {
	w.Header().Set("Location", location)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// loginPage tells a user who was on the way to the portal why the sign-in failed. It stands one level below the portal,
// wherever that is.
var loginPage = template.Must(template.New("login").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Sign-in failed · Kubecast</title>
<h1>Sign-in failed</h1>
<p role="alert">{{.Message}}.</p>
<p><a href="../">To the portal</a></p>
<p><small>Request {{.Request}}</small></p>
</html>
`))

// forPeople answers an error with a page if the client accepts HTML.
func (h *Handler) forPeople(handle func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		err := handle(w, r)
		if err == nil || !strings.Contains(r.Header.Get("Accept"), "text/html") {
			return err
		}
		failed := reply.To(err)
		h.logger(r).Log(r.Context(), reply.Level(r, failed), "sign-in failed", "status", failed.Code, "error", failed.Why(err))
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", reply.AnswerPolicy)
		header.Set("X-Frame-Options", "DENY")
		failed.Head(w)
		_ = loginPage.Execute(w, struct{ Message, Request string }{failed.Message, request.ID(r)}) // a client that has gone is no error
		return nil
	}
}
