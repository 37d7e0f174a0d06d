package signin

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
)

// maxTicketPath bounds the path and query of a ticket's request, in bytes, so that a request line
// has room for the ticket.
const maxTicketPath = 8 << 10

// presented is the ticket in a request: its text, and the request in the form to which tickets are bound (see boundTo).
type presented struct{ text, request string }

type ticketKey struct{}

// TakeTicket removes a ticket from the address. So the handlers behind it cannot log it, and do not refuse it as an
// unknown parameter.
func TakeTicket(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.RawQuery, request.TicketParameter) {
			query, err := url.ParseQuery(r.URL.RawQuery)
			// A value that is a path is no ticket, but a watch of that name. It is refused where the watches are read.
			if tickets := query[request.TicketParameter]; err == nil && len(tickets) > 0 && !strings.HasPrefix(tickets[0], "/") {
				text := tickets[0]
				if len(tickets) > 1 {
					text = "ambiguous"
				}
				query.Del(request.TicketParameter)
				r = r.WithContext(context.WithValue(r.Context(), ticketKey{}, &presented{text, boundTo(r.URL.Path, query)}))
				address := *r.URL
				address.RawQuery = query.Encode()
				r.URL, r.RequestURI = &address, address.RequestURI()
			}
		}
		next.ServeHTTP(w, r)
	})
}

func ticketOf(r *http.Request) *presented {
	p, _ := r.Context().Value(ticketKey{}).(*presented)
	return p
}

// boundTo returns the form of a request to which tickets are bound: the path, and the query without the position, which
// changes from one connection to the next.
func boundTo(path string, query url.Values) string {
	bound := url.Values{}
	for name, values := range query {
		if name != "lastEventId" && name != "last_event_id" && name != request.TicketParameter {
			bound[name] = values
		}
	}
	return path + "?" + bound.Encode()
}

// issueTicket answers POST /auth/ticket with a ticket for one GET of the path in the body. It is for clients that can
// send neither a header nor a cookie, such as an EventSource in a page of another site.
func (h *Handler) issueTicket(w http.ResponseWriter, r *http.Request) error {
	if ticketOf(r) != nil {
		return reply.BadRequest("a ticket is of no use for another ticket")
	}
	id, err := h.Caller(r)
	if err != nil {
		return err
	}
	if h.opts.Sessions == nil {
		return reply.NotFoundFor(reply.ReasonNotEnabled, "this gateway has no tickets")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return reply.Unreadable(err)
	}
	var asked struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return reply.BadRequest(`the body must be {"path":"/path?query"}`)
	}
	address, err := url.ParseRequestURI(asked.Path)
	if err != nil || address.Host != "" || address.Scheme != "" || !strings.HasPrefix(asked.Path, "/") || strings.HasPrefix(asked.Path, "//") ||
		len(asked.Path) > maxTicketPath || isSignIn(address.Path) || strings.Contains(asked.Path, "#") {
		return reply.BadRequest("path is the path and query of a GET of this gateway, such as /stream?pods=/api/v1/pods")
	}
	query, err := url.ParseQuery(address.RawQuery)
	if err != nil || request.HoldsToken(address) {
		return reply.BadRequest("the query of the path is malformed, or holds a token")
	}
	text, expires, err := h.tickets.Issue(id, boundTo(address.Path, query))
	if err != nil {
		return err
	}
	return reply.JSON(w, struct {
		Ticket    string    `json:"ticket"`
		ExpiresAt time.Time `json:"expiresAt"`
	}{text, expires.UTC()})
}
