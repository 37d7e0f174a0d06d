// Package signin says who sends a request, and is where people and programs sign in and out: by a token with each request, by a session's
// cookie, by a ticket for one request, or at the identity provider.
//
// What it promises: a token is never taken from an address, and a cookie never from a page of another origin that was not named.
// Whatever is no good is refused in the same words, counted by the network that it comes from, and never logged.
//
// What it refuses: to say what a caller may see. That is the authorizer's.
package signin

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/oidc"
	"github.com/kubecast/kubecast/internal/auth/session"
	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/http/pace"
	"github.com/kubecast/kubecast/internal/http/request"
)

// Authenticator says who holds a token.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (auth.Identity, error)
	// Confirm says whether what somebody signed in with still counts, and who that is now.
	session.Confirmer
}

// Options configure a Handler.
type Options struct {
	Authenticator Authenticator
	Sessions      *session.Sessions      // of browsers, and tickets; nil: there are none
	Login         *oidc.Login            // of people with a browser; nil: there is none. Needs Sessions
	Origins       []string               // of pages elsewhere that may call; may be empty
	Posts         func(path string) bool // reports other paths that take nothing but a POST; may be nil
	Rates         *pace.Rates
	Log           *slog.Logger
}

// Handler says who is calling. Safe for concurrent use.
type Handler struct {
	opts     Options
	tickets  *session.Tickets
	failures failures
	log      *slog.Logger
}

// New builds a Handler.
func New(opts Options) *Handler {
	return &Handler{opts: opts, tickets: session.NewTickets(opts.Sessions), log: opts.Log}
}

func (h *Handler) logger(r *http.Request) *slog.Logger { return h.log.With("request", request.ID(r)) }

// Route adds the addresses at which somebody signs in or out. answer makes a handler of what may return an error.
func (h *Handler) Route(r chi.Router, answer func(func(http.ResponseWriter, *http.Request) error) http.HandlerFunc) {
	r.Get("/auth/session", answer(h.tellSession))
	r.Post("/auth/session", answer(h.beginSession))
	r.Get(loginPath, answer(h.forPeople(h.beginLogin)))
	r.Get(callbackPath, answer(h.forPeople(h.finishLogin)))
	r.Post("/auth/ticket", answer(h.issueTicket))
	r.Post("/auth/logout", answer(h.logout))
	r.Post(backchannelPath, answer(h.endedAtProvider))
}

// The addresses of logins, which browsers are sent to.
const (
	loginPath    = "/auth/login"
	callbackPath = config.CallbackPath
)

// changes are the paths at which somebody signs in or out with a POST, which are the only ones that take it; and whether they take
// GET, too.
var changes = map[string]bool{"/auth/session": true, "/auth/ticket": false, "/auth/logout": false, backchannelPath: false}

// Concludes reports whether a request is one that signs somebody in or out, or would have.
func Concludes(method, path string) bool {
	_, ok := changes[path]
	return ok && method == http.MethodPost || path == callbackPath
}

// isSignIn reports whether a path is one at which somebody signs in or out.
func isSignIn(path string) bool {
	_, ok := changes[path]
	return ok || path == loginPath || path == callbackPath
}
