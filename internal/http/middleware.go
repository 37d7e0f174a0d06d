package http

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/historyapi"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/http/signin"
	"github.com/kubecast/kubecast/internal/tracing"
	"github.com/kubecast/kubecast/internal/visibility"
)

// identify gives each request an id, which the answer and the log carry.
func (s *Server) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()[:12]
		w.Header().Set("X-Request-Id", id)
		next.ServeHTTP(w, request.WithID(r, id))
	})
}

func (s *Server) logger(r *http.Request) *slog.Logger { return s.log.With("request", request.ID(r)) }

// audited gives each request an audit record, and writes it to the audit log once the request is answered.
func (s *Server) audited(next http.Handler) http.Handler {
	if s.opts.Audit == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t, traced := auditrecord.Begin(s.opts.Audit, r)
		tracked := &statusWriter{ResponseWriter: w}
		defer func() {
			t.Answered(r.Method, tracked.code, signin.Concludes(r.Method, r.URL.Path), func() (auditrecord.Read, bool) { return namedBy(r) })
		}()
		next.ServeHTTP(tracked, traced)
	})
}

// methodForTrace is a method as traces have it, of which there are few: any text may be sent as one. The other name is OpenTelemetry's.
func methodForTrace(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return method
	}
	return "_OTHER"
}

// traced gives each request a span. Those of streams end when they have begun (package eventstream): what they do for hours is
// no one thing.
func (s *Server) traced(next http.Handler) http.Handler {
	if s.opts.Tracer == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var parent http.Header
		if s.proxies.isPeer(r) {
			parent = r.Header
		}
		ctx, span := s.opts.Tracer.Serve(r.Context(), parent, methodForTrace(r.Method))
		span.Set("http.request.method", methodForTrace(r.Method))
		span.Set("url.path", request.PathForLog(r))
		span.Set("kubecast.request", request.ID(r))
		tracked := &statusWriter{ResponseWriter: w}
		defer func() {
			if span.Kept() {
				return
			}
			span.SetInt("http.response.status_code", tracked.code)
			if tracked.code >= http.StatusInternalServerError || tracked.code == 0 {
				span.Fail(http.StatusText(tracked.code))
			}
			span.End()
		}()
		next.ServeHTTP(tracked, r.WithContext(ctx))
	})
}

// namedBy returns what a request would have read. It is for requests that were refused before a handler looked at the
// path.
func namedBy(r *http.Request) (auditrecord.Read, bool) {
	if t, ok := visibility.ParseLog(r.URL.Path); ok {
		return access.ReadOf(t, "get"), true
	}
	t, ok := visibility.Parse(strings.TrimPrefix(r.URL.Path, historyapi.Prefix))
	switch {
	case !ok:
		return auditrecord.Read{}, false
	case reply.Negotiate(r.Header) == reply.FormEvents || reply.WantsWatch(r.URL.Query()):
		return access.ReadOf(t, "watch"), true
	case t.Name != "":
		return access.ReadOf(t, "get"), true
	}
	return access.ReadOf(t, "list"), true
}

// recover turns a panic into a 500. A panic after the first byte ends the connection instead, so that the client does
// not take what it has for a complete answer.
func (s *Server) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tracked := &statusWriter{ResponseWriter: w, patience: s.opts.Stream.WriteTimeout}
		defer func() {
			cause := recover()
			switch {
			case cause == nil:
			case cause == http.ErrAbortHandler:
				panic(cause)
			default:
				s.logger(r).Error("panic", "path", request.PathForLog(r), "error", cause, "stack", string(debug.Stack()))
				if tracked.code != 0 {
					panic(http.ErrAbortHandler)
				}
				reply.To(errors.New("panic")).Write(w, r)
			}
		}()
		next.ServeHTTP(tracked, r)
	})
}

// statusWriter remembers the status. Once the connection was taken over, no other status can be sent either.
type statusWriter struct {
	http.ResponseWriter
	code     int
	patience time.Duration // how long the client may take nothing of small answers and the end of large ones, which net/http sends; 0: for ever
}

func (w *statusWriter) begin(code int) {
	if w.code != 0 {
		return
	}
	w.code = code
	if w.patience > 0 {
		// It fails where there is no connection, as in tests.
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.patience + w.patience/8))
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) WriteHeader(code int) {
	w.begin(code)
	w.ResponseWriter.WriteHeader(code)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// WriteString implements io.StringWriter, which spares a copy of objects.
func (w *statusWriter) WriteString(s string) (int, error) {
	w.begin(http.StatusOK)
	return io.WriteString(w.ResponseWriter, s)
}

func (w *statusWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.code = http.StatusOK
	}
	return conn, rw, err
}

// answer runs a handler. If that returns an error, it sends what the error says, unless the first
// byte was sent already.
func (s *Server) answer(route string, handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	duration := s.metrics.duration.WithLabelValues(route)
	for _, code := range []int{http.StatusOK, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable} {
		s.metrics.requests.WithLabelValues(route, strconv.Itoa(code)) // which is there from the start: a rate misses what a counter begins with
	}
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		if span := tracing.Of(r.Context()); span != nil {
			pattern := chi.RouteContext(r.Context()).RoutePattern()
			span.Rename(methodForTrace(r.Method) + " " + pattern)
			span.Set("http.route", pattern)
		}
		tracked, ok := w.(*statusWriter) // recover's, which the router passes on
		if !ok {
			tracked = &statusWriter{ResponseWriter: w}
			w = tracked
		}
		if err := handle(tracked, r); err != nil {
			failed := reply.To(err)
			s.logger(r).Log(r.Context(), reply.Level(r, failed), "request failed",
				"method", r.Method, "path", request.PathForLog(r), "status", failed.Code, "error", failed.Why(err))
			if tracked.code != 0 || failed.Code == 0 {
				panic(http.ErrAbortHandler) // a truncated answer must not look complete
			}
			failed.Write(tracked, r)
		}
		if w.Header().Get("X-Accel-Buffering") != "" { // connect has answered
			return // a stream's duration is no response time
		}
		s.metrics.requests.WithLabelValues(route, strconv.Itoa(tracked.code)).Inc()
		duration.Observe(time.Since(began).Seconds())
	}
}

// signedIn tells a handler who sent a request.
func (s *Server) signedIn(handle func(http.ResponseWriter, *http.Request, auth.Identity) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := s.signin.Caller(r)
		if err != nil {
			return err
		}
		return handle(w, r, id)
	}
}
