// Package signin determines who sent a request, and owns the addresses at which people and programs sign in and out. A
// caller signs in by a token with each request, by a session's cookie, by a ticket for one request, or at the identity
// provider.
//
// What it promises: a token is never taken from an address. A cookie is never taken from a page of another origin,
// unless the configuration names that origin. Bad credentials are all refused in the same words, counted by the network
// that they come from, and never logged.
//
// What it refuses: to say what a caller may see. That is left to the authorizer.
package signin

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/go-chi/chi/v5"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/oidc"
	"github.com/kubecast/kubecast/internal/auth/session"
	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/http/ratelimit"
	"github.com/kubecast/kubecast/internal/http/request"
)

// Authenticator verifies tokens.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (auth.Identity, error)
	// Confirm checks whether a caller's credentials still count, and returns whom they identify now.
	session.Confirmer
}

// Options configure a Handler.
type Options struct {
	Authenticator Authenticator
	Sessions      *session.Sessions        // seals sessions of browsers, and tickets; nil: there are none
	Login         *oidc.Login              // at the identity provider; nil: there is none. It needs Sessions
	Origins       []string                 // other origins whose pages may call; may be empty
	Allows        func(path string) string // the methods of a path of another package that takes more than GET, as in the header Allow; else ""; may be nil
	Rates         *ratelimit.Rates
	Log           *slog.Logger
}

// Handler determines who is calling, and answers below /auth. It is safe for concurrent use.
type Handler struct {
	opts     Options
	tickets  *session.Tickets
	failures failures
	gateways atomic.Pointer[[]string]
	log      *slog.Logger
}

// New returns a Handler.
func New(opts Options) *Handler {
	h := &Handler{opts: opts, tickets: session.NewTickets(opts.Sessions), log: opts.Log}
	h.SetGateways(nil)
	return h
}

func (h *Handler) logger(r *http.Request) *slog.Logger { return h.log.With("request", request.ID(r)) }

// Route adds the addresses at which callers sign in or out. Answer turns a function that may return an error into a
// handler.
func (h *Handler) Route(r chi.Router, answer func(func(http.ResponseWriter, *http.Request) error) http.HandlerFunc) {
	r.Get("/auth/session", answer(h.tellSession))
	r.Post("/auth/session", answer(h.beginSession))
	r.Get(loginPath, answer(h.forPeople(h.beginLogin)))
	r.Get(callbackPath, answer(h.forPeople(h.finishLogin)))
	r.Post("/auth/ticket", answer(h.issueTicket))
	r.Post("/auth/logout", answer(h.logout))
	r.Post(backchannelPath, answer(h.endedAtProvider))
}

// The addresses of a login, to which browsers navigate.
const (
	loginPath    = "/auth/login"
	callbackPath = config.CallbackPath
)

// changes are the paths at which callers sign in or out with a POST. The value says whether the path takes GET, too. No
// other path takes more than GET, except those of Options.Allows.
var changes = map[string]bool{"/auth/session": true, "/auth/ticket": false, "/auth/logout": false, backchannelPath: false}

// Concludes reports whether a request signs a caller in or out, or would do so if it succeeded.
func Concludes(method, path string) bool {
	_, ok := changes[path]
	return ok && method == http.MethodPost || path == callbackPath
}

// isSignIn reports whether callers sign in or out at a path.
func isSignIn(path string) bool {
	_, ok := changes[path]
	return ok || path == loginPath || path == callbackPath
}
