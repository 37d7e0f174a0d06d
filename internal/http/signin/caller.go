package signin

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
)

// from returns the context for questions about who sent a request. It names the network of the client, so that these
// questions are shared fairly between networks.
func from(r *http.Request) context.Context {
	return auth.From(r.Context(), func() string { return network(r) })
}

// network returns the network that a request comes from. Callers who did not sign in are distinguished by it.
func network(r *http.Request) string { return request.Network(request.Address(r)) }

// SetGateways says by which names other gateways sign in (see auth.Identity.Gateway).
func (h *Handler) SetGateways(usernames []string) { h.gateways.Store(&usernames) }

// Caller returns who sent a request. It waits until the caller may send another one (see ratelimit.Rates).
//
// An address from which too many bad credentials came gets 429 instead of 401. The credentials are checked
// nevertheless, so a caller with a good token is let in from there. An event stream gets 401 in any case. Both statuses
// end an EventSource for good, which is intended.
func (h *Handler) Caller(r *http.Request) (auth.Identity, error) {
	id, err := h.identity(r)
	if err != nil {
		return id, h.refused(r, err)
	}
	if id.Anonymous {
		id.From = network(r)
	} else {
		id.Gateway = slices.Contains(*h.gateways.Load(), id.Username)
	}
	auditrecord.Of(r.Context()).Is(id, "")
	return id, h.opts.Rates.Next(r.Context(), id)
}

// identity returns who sent a request: the holder of its token, or else of its session, or else of its ticket.
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
	trace := auditrecord.Of(r.Context())
	switch cookie, ticket := sessionCookie(r), ticketOf(r); {
	case token != "":
		trace.By(auditrecord.ByToken)
	case cookie != "" && h.opts.Sessions != nil:
		trace.By(auditrecord.BySession)
		if err := h.refuseForeign(r); err != nil {
			return auth.Identity{}, err
		}
		id, err := h.opts.Sessions.Open(from(r), cookie)
		// A browser keeps a session that can be renewed beyond its end, so an expired one may come with a good ticket.
		if errors.Is(err, auth.ErrTokenExpired) && ticket != nil {
			trace.By(auditrecord.ByTicket)
			return h.tickets.Redeem(from(r), ticket.text, ticket.request)
		}
		return id, err
	case ticket != nil && h.opts.Sessions != nil:
		trace.By(auditrecord.ByTicket)
		return h.tickets.Redeem(from(r), ticket.text, ticket.request)
	}
	return h.opts.Authenticator.Authenticate(from(r), token)
}

// Confirm asks whether a caller's credentials still count. It is for what runs longer than a request, such as a stream.
// The gateway is told when a caller is revoked, but not when a ServiceAccount is deleted.
func (h *Handler) Confirm(ctx context.Context, id auth.Identity) error {
	now, err := h.opts.Authenticator.Confirm(ctx, id)
	if err == nil && (now.Username != id.Username || now.Cluster != id.Cluster) {
		return auth.ErrBadToken
	}
	return err
}
