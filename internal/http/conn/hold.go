package conn

import (
	"context"
	"net/http"
)

// holdKey is the key of a request's hold in its context.
type holdKey struct{}

// hold is what keeps a request open after its handler has returned.
type hold struct{ answer *Served }

// Hold lets streams go on when their handler has returned, on the connections that stay with net/http, too. It has to be the
// outermost handler, or nearly: net/http needs a goroutine until such a stream ends, and one that waits here has a small
// stack, while one that waited where the stream was opened would keep what all handlers before it had on theirs.
func Hold(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isTakenOver(r) {
			next.ServeHTTP(w, r)
			return
		}
		h := &hold{}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), holdKey{}, h)))
		if h.answer != nil && !h.answer.wait(r.Context()) {
			panic(http.ErrAbortHandler) // what was sent must not look complete
		}
	})
}

// isTakenOver reports whether Open takes a request's connection over. HTTP/1.0 has no chunks; any later minor version has them
// (RFC 9110, 2.5), and net/http answers it as 1.1.
func isTakenOver(r *http.Request) bool { return r.ProtoMajor == 1 && r.ProtoMinor >= 1 }
