package http

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	clientrest "k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/apitest"
	sessions "github.com/kubecast/kubecast/internal/auth/session"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gateway is a server under test: the real handlers over a real cache, fed by a fake API server.
type gateway struct {
	t        testing.TB
	api      *apitest.API
	server   *Server
	kinds    *cache.Kinds
	access   *fakeAuth
	sealer   *sessions.Sealer // of sealed
	past     *pastScopes
	registry *prometheus.Registry
	log      *syncBuffer
	http     *http.Server
	url      string
	client   *http.Client
	patience time.Duration
	opened   *atomic.Int64 // streams, each of which asks for another coding than the one before
	preload  []string
	topic    stream.Options
	idle     time.Duration
	atMost   int                               // kinds at once
	serves   func(group, resource string) bool // nil: all kinds
	wrap     func(net.Listener) net.Listener   // nil: as it is
	plain    bool                              // the pipes to it are: see pipeListener
	tls      *tls.Config                       // nil: without
	network  pipes                             // in which it is; nil outside of bubbles
	way      *way                              // to the API server, or to an edge's core; nil outside of bubbles
	stop     func()                            // ends serving, as a second signal does
}

type option func(*gateway, *Options)

// options changes the server's options.
func options(change func(*Options)) option { return func(_ *gateway, o *Options) { change(o) } }

// cached changes the cache, whose rings hold a thousand events if nothing is said.
func cached(topic stream.Options, preload ...string) option {
	return func(g *gateway, _ *Options) { g.topic, g.preload = topic, preload }
}

// before runs before the cache begins to read.
func before(f func(*apitest.API)) option {
	return func(g *gateway, _ *Options) { f(g.api) }
}

// newGateway runs a gateway on loopback until the test ends.
func newGateway(t testing.TB, opts ...option) *gateway {
	t.Helper()
	api, apiURL := apitest.Start(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	upstream := cluster.Options{Name: "default", Kubeconfig: apitest.Kubeconfig(t, apiURL)}
	return startGateway(t, api, upstream, listener, transport, 2*time.Minute, opts)
}

// inBubble runs a test with a gateway whose time passes only while everything waits. Its
// connections are pipes, of a sort over which streams are served as over sockets.
func inBubble(t *testing.T, test func(*testing.T, *gateway), opts ...option) {
	t.Helper()
	inBubbleOf(t, 1, func(t *testing.T, replicas []*gateway) { test(t, replicas[0]) }, opts...)
}

// inBubbleOf is inBubble with several replicas of one API server and one set of permissions.
func inBubbleOf(t *testing.T, replicas int, test func(*testing.T, []*gateway), opts ...option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := pipes{"api.test:80": newPipeListener("api.test:80")}
		all := make([]*gateway, replicas)
		for i := range all {
			network[replicaAddress(i)] = newPipeListener(replicaAddress(i))
			network[edgeAddress(i)] = newPipeListener(edgeAddress(i)) // see edgeOf
		}
		api := apitest.New(apitest.Usual...)
		apiServer := &http.Server{Handler: api, ErrorLog: discardLog()}
		go func() { _ = apiServer.Serve(network["api.test:80"]) }()
		t.Cleanup(func() {
			api.Close()
			_ = apiServer.Close()
		})
		for i := range all {
			way := &way{dial: network.dial}
			upstream := &http.Transport{DialContext: way.open}
			t.Cleanup(upstream.CloseIdleConnections)
			connect := cluster.Options{Name: "default", Config: &clientrest.Config{Host: "http://api.test:80", Transport: upstream}}
			transport := &http.Transport{DisableCompression: true, DialContext: network.dial}
			t.Cleanup(transport.CloseIdleConnections)
			shared := opts
			if i > 0 {
				shared = append(slices.Clone(opts), func(g *gateway, o *Options) {
					g.access, g.past = all[0].access, all[0].past
					o.Authenticator, o.Authorizer = g.access, g.access
				})
			}
			all[i] = startGateway(t, api, connect, network[replicaAddress(i)], transport, 100*time.Hour, shared)
			all[i].way, all[i].network = way, network
		}
		test(t, all)
	})
}

// edgeOf runs a gateway whose API server is another gateway of its bubble, with the same set of permissions. Of each number up to that
// of the replicas there may be one.
func edgeOf(core *gateway, number int, opts ...option) *gateway {
	core.t.Helper()
	network := core.network
	way := &way{dial: network.dial}
	upstream := &http.Transport{DialContext: way.open}
	core.t.Cleanup(upstream.CloseIdleConnections)
	connect := cluster.Options{Name: "default", Config: &clientrest.Config{Host: core.url, Transport: upstream, BearerToken: "edge"}}
	transport := &http.Transport{DisableCompression: true, DialContext: network.dial}
	core.t.Cleanup(transport.CloseIdleConnections)
	shared := append(slices.Clone(opts), func(g *gateway, o *Options) {
		g.access, g.past = core.access, core.past
		o.Authenticator, o.Authorizer = g.access, g.access
	})
	edge := startGateway(core.t, core.api, connect, network[edgeAddress(number)], transport, 100*time.Hour, shared)
	edge.way, edge.network = way, network
	core.t.Cleanup(way.cut) // the core's streams end first
	return edge
}

func edgeAddress(i int) string { return fmt.Sprintf("edge-%d.test:80", i) }

func replicaAddress(i int) string {
	if i == 0 {
		return "gateway.test:80"
	}
	return fmt.Sprintf("gateway-%d.test:80", i)
}

func startGateway(t testing.TB, api *apitest.API, upstream cluster.Options, listener net.Listener, transport *http.Transport, patience time.Duration, opts []option) *gateway {
	t.Helper()
	g := &gateway{
		t: t, api: api, access: &fakeAuth{}, past: &pastScopes{}, opened: &atomic.Int64{}, registry: prometheus.NewRegistry(), log: &syncBuffer{}, patience: patience,
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		topic:  streamOptions(),
	}
	logger := slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o := Options{
		Authenticator: g.access,
		Authorizer:    g.access,
		SyncTimeout:   10 * time.Second,
		Reauthorize:   10 * time.Second,
		Stream: StreamOptions{
			Heartbeat:    15 * time.Second,
			MaxAge:       time.Hour,
			WriteTimeout: 5 * time.Second,
			Retry:        2 * time.Second,
		},
		LogRing:    1 << 20,
		Compress:   []string{"zstd", "gzip"},
		Drain:      20 * time.Second,
		Limits:     Limits{Gateways: []string{"edge"}},
		Registerer: g.registry,
		Log:        logger,
	}
	for _, opt := range opts {
		opt(g, &o)
	}
	upstream.Serves = g.serves
	connection, err := cluster.Connect(upstream)
	if err != nil {
		t.Fatal(err)
	}
	g.kinds, err = cache.NewKinds(connection, cache.Options{
		Preload: g.preload, IdleAfter: g.idle, AtMost: g.atMost, Topic: g.topic,
		CatchUp: cache.CatchUpBound{Events: 1000, Bytes: 64 << 20, Timeout: 10 * time.Second},
	}, logger)
	if err != nil {
		t.Fatal(err)
	}
	o.Clusters = []*cache.Kinds{g.kinds}
	if g.server, err = New(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = g.kinds.Run(ctx) })
	serving, stopServing := context.WithCancel(context.Background())
	var streams sync.WaitGroup
	streams.Go(func() { g.server.Run(serving) })
	g.http = g.server.PublicServer(serving)
	g.http.Protocols = &http.Protocols{}
	g.http.Protocols.SetHTTP1(true)
	g.http.Protocols.SetHTTP2(true)
	g.http.Protocols.SetUnencryptedHTTP2(true)
	if l, is := listener.(*pipeListener); is {
		l.plain = g.plain
	}
	if g.wrap != nil {
		listener = g.wrap(listener)
	}
	g.url = "http://" + listener.Addr().String()
	if g.tls == nil {
		running.Go(func() { _ = g.http.Serve(listener) })
	} else {
		g.http.TLSConfig, g.url = g.tls, "https://"+listener.Addr().String()
		running.Go(func() { _ = ServeTLS(g.http, listener) })
	}
	g.stop = sync.OnceFunc(func() {
		_ = g.http.Close()
		stopServing()
		streams.Wait()
	})
	t.Cleanup(func() {
		g.stop()
		// Handlers that were just about to begin a stream find that the server has ended.
		g.eventually("nobody listens for changes of permissions, as all streams have ended", func() bool { return g.access.listeners() == 0 })
		for _, store := range g.kinds.All() {
			if waiting := store.Topic().Stats().Waiting; waiting != 0 {
				t.Errorf("%d cursors of %s still wait, though all streams have ended", waiting, store.Kind())
			}
		}
		cancel()
		running.Wait()
	})
	return g
}

func streamOptions() stream.Options {
	return stream.Options{Events: 1000, Bytes: 64 << 20, Age: time.Hour}
}

// drain begins to drain the server, and waits for no stream.
func (g *gateway) drain() {
	ended, end := context.WithCancel(context.Background())
	end()
	g.server.Drain(ended)
}

// answer is a response that was read to its end.
type answer struct {
	code   int
	header http.Header
	body   string
}

// request sends a request as alice, unless the headers ("Name: value") say who else, and reads the answer.
func (g *gateway) request(method, path string, headers ...string) answer {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), g.patience)
	defer cancel()
	response, err := g.client.Do(g.newRequest(ctx, method, path, headers))
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatalf("%s %s: reading the answer: %v", method, path, err)
	}
	g.checkPublic(string(body))
	return answer{response.StatusCode, response.Header, string(body)}
}

func (g *gateway) get(path string, headers ...string) answer {
	g.t.Helper()
	return g.request(http.MethodGet, path, headers...)
}

func (g *gateway) newRequest(ctx context.Context, method, path string, headers []string) *http.Request {
	g.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, g.url+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer alice")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Set(name, value); value == "" {
			r.Header.Del(name)
		}
	}
	return r
}

// checkPublic fails if a client is told what only the log may say.
func (g *gateway) checkPublic(text string) {
	g.t.Helper()
	if strings.Contains(text, apitest.SecretDetail) {
		g.t.Errorf("a client is told of the inside: %s", text)
	}
}

// readers is how many cursors wait for an event of a kind.
func (g *gateway) readers(kind string) int {
	for _, store := range g.kinds.All() {
		if store.Kind().String() == kind {
			return store.Topic().Stats().Waiting
		}
	}
	return 0
}

// eventually waits for what happens soon and tells nobody. In a bubble, streams that are not read meanwhile are cut.
func (g *gateway) eventually(what string, is func() bool) {
	g.t.Helper()
	deadline := time.NewTimer(min(g.patience, 10*time.Minute))
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline.C:
			g.t.Fatalf("never: %s; log: %s", what, g.log)
		}
	}
}

// patiently gets something again while it is 503: on a busy machine a page of the history may take longer than it may.
func (g *gateway) patiently(path string, headers ...string) (a answer) {
	g.t.Helper()
	g.eventually("an answer to "+path, func() bool {
		a = g.get(path, headers...)
		return a.code != 503
	})
	return a
}

// watches waits until the cache has so many watches of a kind.
func (g *gateway) watches(resource string, n int) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), g.patience)
	defer cancel()
	if !g.api.AwaitWatches(resource, n, ctx.Done()) {
		g.t.Fatalf("never: %d watches of %s", n, resource)
	}
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func discardLog() *log.Logger { return slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug) }

// escape is a text as a value in a query.
func escape(text string) string { return url.QueryEscape(text) }

// pass lets time pass, in a bubble.
func pass(d time.Duration) { <-time.After(d) }
