package http

import (
	"net/http"
	"time"

	"github.com/kubecast/kubecast/internal/http/reply"
)

// How large a request may be, in bytes. Each limit is above what proxies usually accept (8 or 16 KiB). Each is below
// the size at which net/http would give up without saying why.
const (
	maxAddress = 32 << 10 // path and query: 32 watches with selectors
	maxHeader  = 32 << 10 // all names and values: tokens with many groups
	maxBody    = 64 << 10 // where a body is read; elsewhere it is ignored
)

// boundSizes refuses requests that are too large. It also bounds the time for a request's body: net/http would wait for
// the rest of a body as long as the client likes, even where no handler reads it.
func boundSizes(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// It fails where there is no connection, as in tests.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		if err := tooMuch(r); err != nil {
			w.Header().Set("Connection", "close") // the rest of such a request need not be read
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
