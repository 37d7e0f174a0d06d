package http

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

type requestIDKey struct{}

// identify gives each request an id, which the answer and the log carry.
func (s *Server) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()[:12]
		w.Header().Set("X-Request-Id", id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
	})
}

func requestID(r *http.Request) string {
	id, _ := r.Context().Value(requestIDKey{}).(string)
	return id
}

func (s *Server) logger(r *http.Request) *slog.Logger { return s.log.With("request", requestID(r)) }

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
				s.logger(r).Error("panic", "path", pathForLog(r), "cause", cause, "stack", string(debug.Stack()))
				if tracked.code != 0 {
					panic(http.ErrAbortHandler)
				}
				replyTo(errors.New("panic")).write(w, r)
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

type headKey struct{}

// headAsGet lets every route of GET answer HEAD; net/http leaves the body out.
func headAsGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			r = r.WithContext(context.WithValue(r.Context(), headKey{}, true))
			r.Method = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// isHead reports whether a request was HEAD: a stream's headers can be sent then, but nothing more.
func isHead(r *http.Request) bool { return r.Context().Value(headKey{}) != nil }

// answer runs a handler and sends what its error says, if the first byte was not sent.
func (s *Server) answer(route string, handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		tracked := &statusWriter{ResponseWriter: w}
		if err := handle(tracked, r); err != nil {
			reply := replyTo(err)
			s.logger(r).Log(r.Context(), failureLevel(r, reply), "request failed",
				"method", r.Method, "path", pathForLog(r), "status", reply.code, "error", err, "cause", reply.cause)
			if tracked.code != 0 || reply.code == 0 {
				panic(http.ErrAbortHandler) // a truncated answer must not look complete
			}
			reply.write(tracked, r)
		}
		if w.Header().Get("X-Accel-Buffering") != "" { // connect has answered
			return // a stream's duration is no response time
		}
		s.metrics.requests.WithLabelValues(route, strconv.Itoa(tracked.code)).Inc()
		s.metrics.duration.WithLabelValues(route).Observe(time.Since(began).Seconds())
	}
}

// failureLevel keeps what clients do wrong, and that they leave, out of the log; and what a cluster does out of the
// errors, which are the gateway's own.
func failureLevel(r *http.Request, reply *reply) slog.Level {
	switch {
	case r.Context().Err() != nil, reply.code < 500, reply.code == http.StatusGatewayTimeout: // 504: of a version that is yet to come
		return slog.LevelDebug
	case reply.code == http.StatusInternalServerError:
		return slog.LevelError
	}
	return slog.LevelWarn
}

// identity is who sent a request: the holder of its token, else of its session, else of its ticket.
func (s *Server) identity(r *http.Request) (auth.Identity, error) {
	if tokenInAddress(r.URL) {
		return auth.Identity{}, badRequest("a token in the address would end up in logs: send it as Authorization: Bearer")
	}
	var token string
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, value, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(value) == "" {
			return auth.Identity{}, auth.ErrBadToken
		}
		token = strings.TrimSpace(value)
	}
	trail := trailOf(r.Context())
	switch cookie, ticket := sessionCookie(r), ticketOf(r); {
	case token != "":
		trail.by(byToken)
	case cookie != "" && s.opts.Sessions != nil:
		trail.by(bySession)
		if err := s.refuseForeign(r); err != nil {
			return auth.Identity{}, err
		}
		id, err := s.opts.Sessions.Open(from(r), cookie)
		if errors.Is(err, auth.ErrTokenExpired) && ticket != nil { // browsers keep a session that can be renewed beyond its end
			trail.by(byTicket)
			return s.tickets.Redeem(from(r), ticket.text, ticket.request)
		}
		return id, err
	case ticket != nil && s.opts.Sessions != nil:
		trail.by(byTicket)
		return s.tickets.Redeem(from(r), ticket.text, ticket.request)
	}
	return s.opts.Authenticator.Authenticate(from(r), token)
}

// jsonWebToken is the compact form (RFC 7515, 3.1) of what begins with {" as each header does.
var jsonWebToken = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`)

// tokenInAddress reports whether a token, or what looks like one, stands in an address.
func tokenInAddress(address *url.URL) bool {
	if !mayName(address.RawQuery, "token") {
		return jsonWebToken.MatchString(address.Path) || jsonWebToken.MatchString(address.RawQuery)
	}
	query := address.Query()
	for _, name := range []string{"access_token", "token", "id_token"} {
		if query.Has(name) {
			return true
		}
	}
	return jsonWebToken.MatchString(address.Path) || jsonWebToken.MatchString(address.RawQuery)
}

// maxLoggedPath is more than the path of any object takes.
const maxLoggedPath = 1 << 10

// pathForLog is a request's path as it may be logged. A query never may: it holds what people search for, and tickets.
func pathForLog(r *http.Request) string {
	path := jsonWebToken.ReplaceAllString(r.URL.Path, "[token]")
	if len(path) > maxLoggedPath {
		path = path[:maxLoggedPath] + "…"
	}
	return path
}

// mayName reports whether a query may have a parameter in whose name a text is. It spares others to read the query.
func mayName(query, text string) bool {
	return strings.Contains(query, text) || strings.IndexByte(query, '%') >= 0 // that may be how it is written
}

// queryOf is a request's query. What cannot be read must not be passed over: it may have been a selector.
func queryOf(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("the query of the address is malformed")
	}
	return query, nil
}
