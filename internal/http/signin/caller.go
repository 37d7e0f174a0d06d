package signin

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/http/trail"
)

// from is a request's context for questions about who sends it, which are shared fairly between those who cause them.
func from(r *http.Request) context.Context {
	return auth.From(r.Context(), network(r))
}

// network is where a request comes from, by which those are told apart who did not sign in.
func network(r *http.Request) string { return request.Network(request.Address(r)) }

// Caller is who sent a request, once it is time for another one of theirs. An address from which too much comes that is nobody's is told
// 429; whoever comes from there with a good token is let in, since what they send is looked at all the same. Event streams are told
// 401 nonetheless: that ends an EventSource for good, which is what is wanted, and so would 429.
func (h *Handler) Caller(r *http.Request) (auth.Identity, error) {
	id, err := h.identity(r)
	if err != nil {
		return id, h.refused(r, err)
	}
	if id.Anonymous {
		id.From = network(r)
	}
	trail.Of(r.Context()).Is(id, "")
	return id, h.opts.Rates.Next(r.Context(), id)
}

// identity is who sent a request: the holder of its token, else of its session, else of its ticket.
func (h *Handler) identity(r *http.Request) (auth.Identity, error) {
	if request.HoldsToken(r.URL) {
		return auth.Identity{}, reply.BadRequest("a token in the address would end up in logs: send it as Authorization: Bearer")
	}
	var token string
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, value, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(value) == "" {
			return auth.Identity{}, auth.ErrBadToken
		}
		token = strings.TrimSpace(value)
	}
	trace := trail.Of(r.Context())
	switch cookie, ticket := sessionCookie(r), ticketOf(r); {
	case token != "":
		trace.By(trail.ByToken)
	case cookie != "" && h.opts.Sessions != nil:
		trace.By(trail.BySession)
		if err := h.refuseForeign(r); err != nil {
			return auth.Identity{}, err
		}
		id, err := h.opts.Sessions.Open(from(r), cookie)
		if errors.Is(err, auth.ErrTokenExpired) && ticket != nil { // browsers keep a session that can be renewed beyond its end
			trace.By(trail.ByTicket)
			return h.tickets.Redeem(from(r), ticket.text, ticket.request)
		}
		return id, err
	case ticket != nil && h.opts.Sessions != nil:
		trace.By(trail.ByTicket)
		return h.tickets.Redeem(from(r), ticket.text, ticket.request)
	}
	return h.opts.Authenticator.Authenticate(from(r), token)
}

// Confirm asks whether what a caller signed in with still counts, for what goes on in their name. The gateway is told when somebody is revoked, but not when a
// ServiceAccount is deleted.
func (h *Handler) Confirm(ctx context.Context, id auth.Identity) error {
	now, err := h.opts.Authenticator.Confirm(ctx, id)
	if err == nil && (now.Username != id.Username || now.Cluster != id.Cluster) {
		return auth.ErrBadToken
	}
	return err
}
