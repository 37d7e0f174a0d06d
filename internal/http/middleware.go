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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/http/trail"
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

// audited gives each request a trail, and tells it once the request is answered.
func (s *Server) audited(next http.Handler) http.Handler {
	if s.opts.Audit == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t, traced := trail.Begin(s.opts.Audit, r)
		tracked := &statusWriter{ResponseWriter: w}
		defer func() {
			signsIn := isSignIn(r.URL.Path) && r.Method == http.MethodPost || r.URL.Path == config.CallbackPath
			t.Answered(r.Method, tracked.code, signsIn, func() (trail.Read, bool) { return namedBy(r) })
		}()
		next.ServeHTTP(tracked, traced)
	})
}

// namedBy is what a request would read that was refused before anybody looked at its path.
func namedBy(r *http.Request) (trail.Read, bool) {
	t, ok := access.Parse(r.URL.Path)
	switch {
	case !ok:
		return trail.Read{}, false
	case reply.Negotiate(r.Header) == reply.FormEvents || reply.WantsWatch(r.URL.Query()):
		return t.Read("watch"), true
	case t.Name != "":
		return t.Read("get"), true
	}
	return t.Read("list"), true
}

// recover turns a panic into a 500. One that comes after the first byte ends the connection instead: the client
// must not take what it has for complete.
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
				s.logger(r).Error("panic", "path", request.PathForLog(r), "cause", cause, "stack", string(debug.Stack()))
				if tracked.code != 0 {
					panic(http.ErrAbortHandler)
				}
				reply.To(errors.New("panic")).Write(w, r)
			}
		}()
		next.ServeHTTP(tracked, r)
	})
}

// statusWriter remembers the status, which is spent, too, once the connection was taken over.
type statusWriter struct {
	http.ResponseWriter
	code     int
	patience time.Duration // for the client to take what net/http itself sends: small answers, and the end of large ones; 0: for ever
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

// Hijack implements http.Hijacker.
func (w *statusWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.code = http.StatusOK
	}
	return conn, rw, err
}

// What pages of other origins may send and read, beside what every page may (Fetch, section 3.2).
const (
	corsRequestHeaders  = "Authorization, Content-Type, If-None-Match, Last-Event-ID"
	corsResponseHeaders = "ETag, Retry-After, WWW-Authenticate, X-Request-Id"
	corsMaxAge          = "7200" // seconds; browsers do not remember a preflight for longer
)

// cors lets pages of the configured origins call, and answers OPTIONS. Origins are named one by one, so that a session's
// cookie may go with them; `*` is no origin that the configuration takes.
func (s *Server) cors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		origin := r.Header.Get("Origin")
		preflight := r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
		if len(s.opts.Origins) > 0 {
			h.Add("Vary", "Origin")
			if preflight {
				h.Add("Vary", "Access-Control-Request-Method")
				h.Add("Vary", "Access-Control-Request-Headers")
			}
		}
		if origin != "" && slices.Contains(s.opts.Origins, origin) {
			h.Set("Access-Control-Allow-Origin", origin)
			if s.opts.Sessions != nil {
				h.Set("Access-Control-Allow-Credentials", "true") // a session's cookie, from another origin of the same site
			}
			if preflight {
				h.Set("Access-Control-Allow-Methods", allowedMethods(r.URL.Path))
				h.Set("Access-Control-Allow-Headers", corsRequestHeaders)
				h.Set("Access-Control-Max-Age", corsMaxAge)
			} else {
				h.Set("Access-Control-Expose-Headers", corsResponseHeaders)
			}
		}
		if r.Method == http.MethodOptions {
			h.Set("Allow", allowedMethods(r.URL.Path))
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func allowedMethods(path string) string {
	if reads, changes := authChanges[path]; changes && reads {
		return "GET, HEAD, POST, OPTIONS"
	} else if changes {
		return "POST, OPTIONS"
	}
	return "GET, HEAD, OPTIONS"
}

// answer runs a handler and sends what its error says, if the first byte was not sent.
func (s *Server) answer(route string, handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		tracked := &statusWriter{ResponseWriter: w}
		if err := handle(tracked, r); err != nil {
			failed := reply.To(err)
			s.logger(r).Log(r.Context(), reply.Level(r, failed), "request failed",
				"method", r.Method, "path", request.PathForLog(r), "status", failed.Code, "error", err, "cause", failed.Cause)
			if tracked.code != 0 || failed.Code == 0 {
				panic(http.ErrAbortHandler) // a truncated answer must not look complete
			}
			failed.Write(tracked, r)
		}
		if w.Header().Get("X-Accel-Buffering") != "" { // connect has answered
			return // a stream's duration is no response time
		}
		s.metrics.requests.WithLabelValues(route, strconv.Itoa(tracked.code)).Inc()
		s.metrics.duration.WithLabelValues(route).Observe(time.Since(began).Seconds())
	}
}

// signedIn lets a handler know who sends a request.
func (s *Server) signedIn(handle func(http.ResponseWriter, *http.Request, auth.Identity) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := s.caller(r)
		if err != nil {
			return err
		}
		return handle(w, r, id)
	}
}

// identity is who sent a request: the holder of its token, else of its session, else of its ticket.
func (s *Server) identity(r *http.Request) (auth.Identity, error) {
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
	trace := trail.Of(r.Context())
	switch cookie, ticket := sessionCookie(r), ticketOf(r); {
	case token != "":
		trace.By(trail.ByToken)
	case cookie != "" && s.opts.Sessions != nil:
		trace.By(trail.BySession)
		if err := s.refuseForeign(r); err != nil {
			return auth.Identity{}, err
		}
		id, err := s.opts.Sessions.Open(from(r), cookie)
		if errors.Is(err, auth.ErrTokenExpired) && ticket != nil { // browsers keep a session that can be renewed beyond its end
			trace.By(trail.ByTicket)
			return s.tickets.Redeem(from(r), ticket.text, ticket.request)
		}
		return id, err
	case ticket != nil && s.opts.Sessions != nil:
		trace.By(trail.ByTicket)
		return s.tickets.Redeem(from(r), ticket.text, ticket.request)
	}
	return s.opts.Authenticator.Authenticate(from(r), token)
}
