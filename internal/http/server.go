// Package http is the gateway's face: routes, handlers, content negotiation, server-sent events and the table of
// errors. The contract of docs/wire.md is kept here and nowhere else.
//
// What it promises: nothing is shown before the authenticator said who is asking and the authorizer that they may see
// it. A stream gives its client every event after the client's position, or tells it `reset`. No error text of the
// inside reaches a client.
//
// What it refuses: all methods but GET, HEAD and OPTIONS, except POST where somebody signs in or
// out, asks what they may do, or says which of their notifications they have read, and PUT of what
// they want to be notified of.
package http

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/audit"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/oidc"
	sessions "github.com/kubecast/kubecast/internal/auth/session"
	"github.com/kubecast/kubecast/internal/balance"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/config"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/coding"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/historyapi"
	"github.com/kubecast/kubecast/internal/http/livepage"
	"github.com/kubecast/kubecast/internal/http/logstream"
	"github.com/kubecast/kubecast/internal/http/notifications"
	"github.com/kubecast/kubecast/internal/http/objectstream"
	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/http/podlog"
	"github.com/kubecast/kubecast/internal/http/queueapi"
	"github.com/kubecast/kubecast/internal/http/ratelimit"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/http/rest"
	"github.com/kubecast/kubecast/internal/http/scheduler"
	"github.com/kubecast/kubecast/internal/http/signin"
	"github.com/kubecast/kubecast/internal/jobs/inbox"
	"github.com/kubecast/kubecast/internal/jobs/service"
	"github.com/kubecast/kubecast/internal/jobs/webhook"
	"github.com/kubecast/kubecast/internal/livequery"
	"github.com/kubecast/kubecast/internal/logs"
	"github.com/kubecast/kubecast/internal/shards"
	"github.com/kubecast/kubecast/internal/tracing"
)

// Options configure a Server; all fields are required unless they say otherwise.
type Options struct {
	Clusters      []*cache.Kinds // the first is the default one; SetClusters changes them
	Authenticator signin.Authenticator
	Authorizer    auth.Authorizer
	Sessions      *sessions.Sessions         // of browsers, and tickets; nil: there are none
	Login         *oidc.Login                // of people with a browser; nil: there is none. Needs Sessions
	Revocations   *auth.Revocations          // end streams before their time; may be nil
	Reauthorize   time.Duration              // how often it is asked again what somebody may see who goes on seeing it
	Ready         func(cluster string) error // what else must be before a cluster can be served, or why it is not; may be nil
	SyncTimeout   time.Duration              // how long a request waits for a kind's first list
	Stream        StreamOptions
	Limits        Limits
	LogRing       int           // bytes kept of each log that streams follow
	orderKeep     int           // of livequery.Options.Keep; 0: the default. Tests keep less
	Drain         time.Duration // within which streams end once Drain was called
	Compress      []string      // the codings that are offered, the best first (coding.Names); may be empty
	// BasePath is the path below which everything stands, such as /tools/kubecast (config.IsBasePath). Empty: the root, or
	// what a trusted proxy says in X-Forwarded-Prefix that it took off.
	BasePath string
	// TrustedProxies are those whose X-Forwarded-For and X-Forwarded-Prefix are believed; nil: everybody, as if each had
	// passed through one.
	TrustedProxies []netip.Prefix
	// ProxyProtocol are those that send a header of PROXY protocol version 2 before anything else,
	// and must; may be empty.
	ProxyProtocol []netip.Prefix
	Share         shards.Share     // what the gateway has of its clusters; the zero value: all
	Origins       []string         // of pages elsewhere that may call; may be empty
	History       *service.Service // nil: none is kept
	Inbox         *inbox.Inbox     // what users are told of their jobs; nil: nothing. Needs History
	NoQueues      bool             // nobody is told of queues, as if there were none
	SeeTheirOwn   bool             // whether owner=me shows callers their own jobs of the history without any other permission, and notifications
	Webhooks      *webhook.Senders // nil: there are none
	Portal        fs.FS            // the built portal; nil if it was not built
	Audit         *audit.Log       // nil: none is kept
	Registerer    prometheus.Registerer
	Tracer        *tracing.Tracer // nil: there are no traces
	Log           *slog.Logger
}

// StreamOptions are what all event streams have in common.
type StreamOptions = eventstream.Times

// LogLimits bound the logs that are read at a time.
type LogLimits = podlog.Limits

// Server answers the gateway's requests.
type Server struct {
	signin        *signin.Handler
	opts          Options
	access        *access.Access
	pages         map[string]page // the portal's files by their names; nil if it was not built
	connections   *connections
	proxies       *proxies
	rest          *rest.Handler
	jobHistory    *historyapi.Handler
	notifications *notifications.Handler
	queues        *queueapi.Handler
	logs          *podlog.Handler
	feeds         *logs.Feeds
	logStreams    *logstream.Handler
	queries       *livequery.Registry
	permissions   *permission.Permissions
	streams       *eventstream.Hub
	objects       *objectstream.Handler
	processors    *budget.Queue // who does something that takes long
	rates         *ratelimit.Rates
	turns         *ratelimit.Turns
	memory        *budget.Memory // of what is kept to be made once
	metrics       *metrics
	instance      string // names this life of this replica
	log           *slog.Logger
}

// New builds a server.
func New(opts Options) (*Server, error) {
	if opts.BasePath != "" && !config.IsBasePath(opts.BasePath) {
		return nil, fmt.Errorf("http.Options.BasePath: %q is no base path", opts.BasePath)
	}
	s := &Server{
		opts:       opts,
		memory:     budget.NewMemory(keptBytes),
		processors: budget.NewQueue(runtime.GOMAXPROCS(0), 0, 0),
		rates:      ratelimit.New(opts.Limits.RequestsPerSecond),
		proxies:    newProxies(opts.TrustedProxies, opts.Log),
		metrics:    newMetrics(opts.Registerer),
		instance:   rand.Text(),
		log:        opts.Log,
	}
	s.signin = signin.New(signin.Options{
		Authenticator: opts.Authenticator, Sessions: opts.Sessions, Login: opts.Login, Origins: opts.Origins, Allows: allows, Rates: s.rates, Log: opts.Log,
	})
	s.signin.SetGateways(opts.Limits.Gateways)
	var err error
	if opts.Portal != nil {
		if s.pages, err = readPages(opts.Portal); err != nil {
			return nil, err
		}
	}
	codings, err := coding.New(opts.Compress, opts.Registerer)
	if err != nil {
		return nil, fmt.Errorf("http.Options.Compress: %w", err)
	}
	s.access, err = access.New(access.Options{Clusters: opts.Clusters, Authorizer: opts.Authorizer, SyncTimeout: opts.SyncTimeout})
	if err != nil {
		return nil, fmt.Errorf("http.Options.Clusters: %w", err)
	}
	s.turns = ratelimit.NewTurns(opts.Limits.RequestsPerUser, s.rates)
	s.queries = livequery.New(livequery.Options{
		Queries: keptQuestions, Bytes: questionBytes, Linger: questionLinger, Keep: cmp.Or(opts.orderKeep, questionKeep), Processors: s.processors, Registerer: opts.Registerer,
	})
	s.rest = rest.New(rest.Options{
		Access: s.access, Processors: s.processors, Memory: s.memory, Queries: s.queries, Turns: s.turns,
		WriteTimeout: opts.Stream.WriteTimeout, SyncTimeout: opts.SyncTimeout, Codings: codings, NoQueues: opts.NoQueues, Log: opts.Log,
	})
	s.queues = queueapi.New(queueapi.Options{
		Access: s.access, Jobs: opts.History, Turns: s.turns, Processors: s.processors, SyncTimeout: opts.SyncTimeout, None: opts.NoQueues,
	})
	s.jobHistory = historyapi.New(historyapi.Options{
		Jobs: opts.History, Access: s.access, SeeTheirOwn: opts.SeeTheirOwn, Turns: s.turns, Processors: s.processors,
		WriteTimeout: opts.Stream.WriteTimeout, Codings: codings, Places: s.queues.Places,
	})
	told := notifications.Options{Inbox: opts.Inbox, Access: s.access, SeeTheirOwn: opts.SeeTheirOwn, Turns: s.turns}
	if opts.History != nil {
		told.Kinds = opts.History.Kinds()
	}
	s.notifications = notifications.New(told)
	s.feeds = logs.New(logs.Options{
		Upstreams: unlimited(opts.Limits.Logs.Total), PerUser: opts.Limits.Logs.PerUser, Free: auth.IsGateway, Ring: opts.LogRing, Linger: logLinger, Registerer: opts.Registerer,
	})
	s.logStreams = logstream.New(logstream.Options{
		Access: s.access, Feeds: s.feeds, Take: func(user string) (func(), error) { return s.logs.Take(user) },
		Turns: s.turns, WriteTimeout: opts.Stream.WriteTimeout,
	})
	s.objects = objectstream.New(objectstream.Options{
		Access: s.access, Pages: livepage.New(livepage.Options{Access: s.access, Queries: s.queries}).Stream,
	})
	parsers := s.objects.Parsers()
	for path, parse := range map[string]eventstream.Parser{
		historyapi.Prefix: s.jobHistory.Stream, logstream.Prefix: s.logStreams.Stream, notifications.Path: s.notifications.Stream, queueapi.Path: s.queues.Stream,
	} {
		parsers[strings.TrimPrefix(path, "/")] = eventstream.Sources{Parse: parse}
	}
	alarm := scheduler.NewAlarm()
	s.permissions = permission.New(permission.Options{
		Authorizer: opts.Authorizer, Confirm: s.signin.Confirm, Revocations: opts.Revocations, Reauthorize: opts.Reauthorize, Alarm: alarm,
	})
	s.streams = eventstream.New(eventstream.Options{
		Parsers: parsers, Permissions: s.permissions, Alarm: alarm,
		Processors: s.processors, Memory: s.memory, Codings: codings, Times: opts.Stream,
		Limits:      opts.Limits.ofStreams(),
		SyncTimeout: opts.SyncTimeout, Drain: opts.Drain, Registerer: opts.Registerer, Log: opts.Log,
	})
	s.logs = podlog.New(podlog.Options{
		Access: s.access, Authorizer: opts.Authorizer, Permissions: s.permissions, Limits: opts.Limits.Logs,
		WriteTimeout: opts.Stream.WriteTimeout, Drain: opts.Drain, Registerer: opts.Registerer, Log: opts.Log,
	})
	s.connections = newConnections(opts.Limits.Connections, s.proxies.has, s.streams.Connections, s.metrics.refused, opts.Log)
	s.metrics.connections(opts.Registerer, s.connections)
	s.metrics.ready(opts.Registerer, func() bool { state, _ := s.state(); return state == ready })
	return s, nil
}

// Run serves the streams until the context ends, and cuts those that are left then.
func (s *Server) Run(ctx context.Context) {
	following, stop := context.WithCancel(context.WithoutCancel(ctx)) // logs and questions outlive the streams that read them
	var feeding sync.WaitGroup
	feeding.Go(func() { s.feeds.Run(following) })
	feeding.Go(func() { s.queries.Run(following) })
	feeding.Go(func() { s.queues.Run(following) })
	s.streams.Run(ctx)
	s.permissions.End()
	stop()
	feeding.Wait()
}

// Load is what other replicas are told of this one.
func (s *Server) Load() balance.Load {
	return balance.Load{Instance: s.instance, Streams: s.streams.Open()}
}

// Move ends so many streams at random moments within a time, since other replicas have fewer. It returns how many it found.
func (s *Server) Move(streams int, within time.Duration) int { return s.streams.Move(streams, within) }

// Returned is of how many streams that Move has ended the client has come back here.
func (s *Server) Returned() int { return s.streams.Returned() }

// SetClusters replaces the clusters that are served; see access.Access.
func (s *Server) SetClusters(all []*cache.Kinds) error { return s.access.SetClusters(all) }

// Drain lets no new streams in, logs included, and ends the running ones at random moments within Options.Drain. It
// returns when all have ended, or the context has.
func (s *Server) Drain(ctx context.Context) {
	var draining sync.WaitGroup
	draining.Go(func() { s.logs.Drain(ctx) })
	s.streams.Drain(ctx)
	draining.Wait()
}

// Handler is the public listener's.
func (s *Server) Handler() http.Handler {
	r := chi.NewRouter()
	r.Use(s.sendAway, s.proxies.trust, s.below, s.opts.Share.Only, s.identify, s.traced, s.audited, s.recover, securityHeaders, boundSizes, s.signin.CORS, refuseImpersonation, signin.TakeTicket)
	s.route(r)
	r.MethodNotAllowed(s.answer("unknown", s.methodNotAllowed))
	return conn.Hold(request.HeadAsGet(r))
}

// sendAway has the connections end on which something is asked of a server that drains, or from which a stream is moved.
// Whoever kept one, above all over HTTP/2 where further streams keep it open, would come back by it for as long as this replica
// runs.
func (s *Server) sendAway(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.streams.Draining() || conn.SharedOf(r).IsLeft() {
			w.Header().Set("Connection", "close") // over HTTP/2, net/http sends GOAWAY
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) methodNotAllowed(_ http.ResponseWriter, r *http.Request) error {
	return &reply.Error{
		Code:    http.StatusMethodNotAllowed,
		Reason:  metav1.StatusReasonMethodNotAllowed,
		Message: "the gateway only reads: send this request to the Kubernetes API server itself",
		Allow:   s.signin.AllowedMethods(r.URL.Path),
	}
}

// review answers a review that is posted, which changes nothing; other objects are not taken. Reviews of others are for other
// gateways; everybody else is told what they would be of any other object.
func (s *Server) review(w http.ResponseWriter, r *http.Request) error {
	switch {
	case rest.IsReview(r.URL.Path):
		return s.signedIn(s.rest.PostReview)(w, r)
	case rest.IsReviewOfOthers(r.URL.Path):
		id, err := s.signin.Caller(r)
		switch {
		case !id.Gateway:
		case err != nil:
			return err
		default:
			return s.rest.PostReviewOfOthers(w, r, id)
		}
	}
	return s.methodNotAllowed(w, r)
}

// allows returns the methods that a path takes, if it is one of those outside of package signin
// that take more than GET; else "".
func allows(path string) string {
	if rest.IsReview(path) {
		return "POST, OPTIONS"
	}
	return notifications.Allows(path)
}

// route adds all addresses; openapi.yaml describes them.
func (s *Server) route(r chi.Router) {
	for _, base := range []string{"", "/clusters/{cluster}"} {
		for _, path := range rest.HealthPaths {
			r.Get(base+path, s.answer("health", s.signedIn(s.health)))
		}
		r.Post(base+"/apis/*", s.answer("review", s.review))
		for _, path := range []string{"/api", "/api/*", "/apis", "/apis/*", "/version", "/version/", "/openapi/*"} {
			r.Get(base+path, s.answer("kubernetes", s.resource))
		}
		for _, path := range []string{queueapi.Path, queueapi.Path + "/{name}", queueapi.Path + "/{namespace}/{name}"} {
			r.Get(base+path, s.answer("queues", s.streamOr(s.queues.Answer)))
		}
	}
	r.Get(historyapi.Prefix+"/*", s.answer("history", s.history))
	r.Get(logstream.Prefix+"/*", s.answer("logs", s.logLines))
	r.Get(notifications.Path, s.answer("notifications", s.streamOr(s.notifications.List)))
	r.Post(notifications.ReadPath, s.answer("notifications", s.signedIn(s.notifications.MarkRead)))
	r.Get(notifications.SettingsPath, s.answer("notifications", s.signedIn(s.notifications.Settings)))
	r.Put(notifications.SettingsPath, s.answer("notifications", s.signedIn(s.notifications.ChangeSettings)))
	r.Get("/stream", s.answer("stream", s.multiStream))
	r.Get("/auth/me", s.answer("auth", s.signedIn(s.rest.Me)))
	s.signin.Route(r, func(handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
		return s.answer("auth", handle)
	})
	r.Get("/clusters", s.answer("clusters", s.signedIn(s.rest.Clusters)))
	r.Get("/openapi.yaml", s.answer("openapi", describe))
	r.Get("/*", s.answer("portal", s.portal()))
}

// logLinger is for how long a log is followed that nobody reads any more: who comes back soon finds it as it was.
const logLinger = 10 * time.Second

// What is kept of questions of live counts and pages. Their memory is beside keptBytes, since a
// list can be made again, and a stream whose question is given up ends.
const (
	keptQuestions  = 1024
	questionBytes  = 128 << 20
	questionLinger = 5 * time.Second
	questionKeep   = 8192 // objects at the beginning of an order: a page has up to 500 places
)

// unlimited makes a limit of which 0 means none one that is never reached.
func unlimited(limit int) int {
	if limit == 0 {
		return math.MaxInt
	}
	return limit
}

// keptBytes is how much is kept in memory for all users together only so that it needs not be made
// again: what was rendered of objects, lists that were sorted, snapshots that pages walk.
const keptBytes = 16 << 20
