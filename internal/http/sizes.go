package http

import (
	"net/http"
	"time"

	"github.com/kubecast/kubecast/internal/http/reply"
)

// What a request may be, in bytes. Each is more than what is in the way of most requests takes (proxies stop at 8 or 16 KiB),
// and less than what net/http would read before it gives up without a word of why.
const (
	maxAddress = 32 << 10 // path and query: 32 watches with selectors
	maxHeader  = 32 << 10 // all names and values: tokens with many groups
	maxBody    = 64 << 10 // where one is read; elsewhere nobody looks at it
)

// boundSizes refuses requests that are too large, and gives a body, of which few requests have any use, a time to come in:
// net/http would wait for the rest of it as long as the client likes.
func boundSizes(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// It fails where there is no connection, as in tests.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		if err := tooMuch(r); err != nil {
			w.Header().Set("Connection", "close") // who sends such things may as well begin anew
			reply.To(err).Write(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func tooMuch(r *http.Request) error {
	if len(r.RequestURI) > maxAddress {
		return reply.TooLong(http.StatusRequestURITooLong, "the address, with its query,", maxAddress)
	}
	size := 0
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value)
		}
	}
	if size > maxHeader {
		return reply.TooLong(http.StatusRequestHeaderFieldsTooLarge, "the request's header", maxHeader)
	}
	return nil
}
