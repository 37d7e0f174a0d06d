package http

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/kubecast/kubecast/internal/http/conn"
)

// How long a client may take, and how much it may send before anything is looked at.
const (
	headerTimeout = 10 * time.Second // until a request's header is complete, from the connection's begin (TLS included) or its last request
	bodyTimeout   = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// maxNetHTTPHeader is where net/http ends the connection. maxHeader and maxAddress are smaller, so that they can be
	// refused in words.
	maxNetHTTPHeader = 64 << 10
	pingAfter        = 30 * time.Second // of silence, over HTTP/2 only
)

// PublicServer returns the server of the public listener. Its requests' contexts end with the context.
func (s *Server) PublicServer(ctx context.Context) *http.Server {
	server := newHTTPServer(ctx, s.connections.track(s.Handler()), s.log)
	server.ConnState = s.connections.count
	// A stream over HTTP/2 has deadlines for its own writes. These here are for a connection whose
	// client has gone without a word, or takes nothing of any of its streams.
	server.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, WriteByteTimeout: s.opts.Stream.WriteTimeout}
	return server
}

// ServeTLS serves a listener over TLS, such that idle streams over HTTP/1.1 need no goroutines.
func ServeTLS(server *http.Server, listener net.Listener) error {
	return server.ServeTLS(conn.BelowTLS(listener), "", "")
}

// OpsServer returns the server of the ops listener.
func (s *Server) OpsServer(ctx context.Context, opts OpsOptions) *http.Server {
	return newHTTPServer(ctx, s.OpsHandler(opts), s.log)
}

// newHTTPServer bounds what a client may send. It has no time-out for answers, since streams last: each write has a
// deadline of its own.
func newHTTPServer(ctx context.Context, handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxNetHTTPHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       conn.Remember,
	}
}
