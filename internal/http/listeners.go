package http

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/kubecast/kubecast/internal/http/conn"
)

// What a client may take its time for, and how much it may send before anything is looked at.
const (
	headerTimeout = 10 * time.Second // from the connection, or its last request, to a request's header, TLS included
	bodyTimeout   = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// maxNetHTTPHeader ends a connection; maxHeader and maxAddress, which are less, are answered in words.
	maxNetHTTPHeader = 64 << 10
	pingAfter        = 30 * time.Second // of silence, over HTTP/2
)

// PublicServer serves the public listener's requests; those that still run when the context ends are told so.
func (s *Server) PublicServer(ctx context.Context) *http.Server {
	server := newHTTPServer(ctx, s.connections.track(s.Handler()), s.log)
	server.ConnState = s.connections.count
	// A stream over HTTP/2 has the deadlines of its own writes; these are for a connection whose client has gone without
	// a word, or takes nothing of any of its streams.
	server.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, WriteByteTimeout: s.opts.Stream.WriteTimeout}
	return server
}

// OpsServer serves the ops listener's requests.
func (s *Server) OpsServer(ctx context.Context, opts OpsOptions) *http.Server {
	return newHTTPServer(ctx, s.OpsHandler(opts), s.log)
}

// newHTTPServer bounds what a client may send; what is written to it has deadlines of its own, since a stream lasts.
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
