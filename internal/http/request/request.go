package request

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/kubecast/kubecast/internal/http/reply"
)

type requestIDKey struct{}

// WithID gives a request an id.
func WithID(r *http.Request, id string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
}

// ID is a request's id, which is also in the answer and in the log; "" if it has none.
func ID(r *http.Request) string {
	id, _ := r.Context().Value(requestIDKey{}).(string)
	return id
}

type baseKey struct{}

// WithBase says below which path a client finds the gateway.
func WithBase(r *http.Request, base string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), baseKey{}, base))
}

// Base is what a client has to put before a path of the gateway, such as /tools/kubecast; "" at the root of its host.
func Base(r *http.Request) string {
	base, _ := r.Context().Value(baseKey{}).(string)
	return base
}

type headKey struct{}

// HeadAsGet makes every route of GET answer HEAD, too; net/http leaves the body out.
func HeadAsGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			r = r.WithContext(context.WithValue(r.Context(), headKey{}, true))
			r.Method = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// IsHead reports whether a request was HEAD. A stream then sends its headers, and nothing more.
func IsHead(r *http.Request) bool { return r.Context().Value(headKey{}) != nil }

// MayName reports whether a raw query may have a parameter whose name contains a text. It is a quick check: if it
// says no, the query need not be parsed.
func MayName(query, text string) bool {
	return strings.Contains(query, text) || strings.IndexByte(query, '%') >= 0 // the name may be percent-encoded
}

// Query parses a request's query. A malformed part is an error, and not ignored: it may have been a selector.
func Query(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, reply.BadRequest("the query of the address is malformed")
	}
	return query, nil
}

// TicketParameter is where a ticket stands in an address (package signin). It is taken out before
// anybody reads what was asked for.
const TicketParameter = "ticket"
