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

// ID is a request's id, which the answer and the log carry; "" if it was given none.
func ID(r *http.Request) string {
	id, _ := r.Context().Value(requestIDKey{}).(string)
	return id
}

type headKey struct{}

// HeadAsGet lets every route of GET answer HEAD; net/http leaves the body out.
func HeadAsGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			r = r.WithContext(context.WithValue(r.Context(), headKey{}, true))
			r.Method = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// IsHead reports whether a request was HEAD: a stream's headers can be sent then, but nothing more.
func IsHead(r *http.Request) bool { return r.Context().Value(headKey{}) != nil }

// MayName reports whether a query may have a parameter in whose name a text is. It spares others to read the query.
func MayName(query, text string) bool {
	return strings.Contains(query, text) || strings.IndexByte(query, '%') >= 0 // that may be how it is written
}

// Query is a request's query. What cannot be read must not be passed over: it may have been a selector.
func Query(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, reply.BadRequest("the query of the address is malformed")
	}
	return query, nil
}
