package eventstream

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/coding"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/http/scheduler"
	"github.com/kubecast/kubecast/internal/stream"
)

// scopes is an auth.Authorizer that lets users see some of each kind, and everything those whom it does not know.
type scopes map[string]auth.Scope

func (s scopes) Authorize(_ context.Context, id auth.Identity, req auth.Request) (auth.Decision, error) {
	scope, narrowed := s[id.Username]
	return auth.Decision{Allowed: !narrowed || req.Namespace != "" && scope.SeesNamespace(req.Namespace)}, nil
}

func (s scopes) Scope(_ context.Context, id auth.Identity, _ auth.Request) (auth.Scope, error) {
	if scope, narrowed := s[id.Username]; narrowed {
		return scope, nil
	}
	return auth.Scope{All: true}, nil
}

func (scopes) Changes(auth.Identity, func()) func() { return func() {} }

// running is a Hub that serves event streams on loopback, over a real cache that a fake API server feeds.
type running struct {
	t       *testing.T
	api     *apitest.API
	kinds   *cache.Kinds
	reach   *access.Access
	hub     *Hub
	address string
	mu      sync.Mutex
	written bytes.Buffer
}

// Write implements io.Writer, for the log.
func (r *running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written.Write(p)
}

func (r *running) log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written.String()
}

// patience is how long what must happen may take on a machine that is busy. Nothing that a Hub does
// by the clock alone comes within it: neither a heartbeat nor another question for permissions
// wakes a stream that should have been woken before.
const patience = 2 * time.Minute

// run runs a Hub until the test ends. Clients say in a header who they are.
func run(t *testing.T, wrap func(net.Conn) net.Conn) *running {
	t.Helper()
	return runFor(t, scopes{}, wrap)
}

func runFor(t *testing.T, authorizer auth.Authorizer, wrap func(net.Conn) net.Conn) *running {
	t.Helper()
	api, url := apitest.Start(t)
	r := &running{t: t, api: api}
	log := slog.New(slog.NewTextHandler(r, nil))
	connection, err := cluster.Connect(cluster.Options{Name: "default", Kubeconfig: apitest.Kubeconfig(t, url)})
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := cache.NewKinds(connection, cache.Options{
		Topic:   stream.Options{Events: 1000, Bytes: 64 << 20, Age: time.Hour},
		CatchUp: cache.CatchUpBound{Events: 1000, Bytes: 64 << 20, Timeout: patience},
	}, log)
	if err != nil {
		t.Fatal(err)
	}
	reach, err := access.New(access.Options{Clusters: []*cache.Kinds{kinds}, Authorizer: authorizer, SyncTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	r.kinds, r.reach = kinds, reach
	codings, err := coding.New(coding.Names, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	alarm := scheduler.NewAlarm()
	permissions := permission.New(permission.Options{
		Authorizer: authorizer, Confirm: func(context.Context, auth.Identity) error { return nil }, Reauthorize: time.Hour, Alarm: alarm,
	})
	t.Cleanup(permissions.End)
	r.hub = New(Options{
		Codings: codings,
		Parsers: ObjectParsers(reach), Permissions: permissions, Alarm: alarm,
		Processors: budget.NewQueue(2, 0, 0), Memory: budget.NewMemory(1 << 20),
		Times:       Times{Heartbeat: time.Hour, MaxAge: 24 * time.Hour, WriteTimeout: patience, Retry: time.Second},
		SyncTimeout: patience, Drain: time.Second, Registerer: prometheus.NewRegistry(), Log: log,
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = listener.Addr().String()
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if err := r.hub.Single(w, request, auth.Identity{Username: request.Header.Get("User")}); err != nil {
				t.Error(err)
			}
		}),
		ConnContext: conn.Remember,
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = kinds.Run(ctx) })
	all.Go(func() { r.hub.Run(ctx) })
	all.Go(func() { _ = server.Serve(wrapped{listener, wrap}) })
	t.Cleanup(func() {
		_ = server.Close()
		cancel()
		all.Wait()
	})
	return r
}

// wrapped wraps the connections that it accepts.
type wrapped struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

func (l wrapped) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.wrap(conn), nil
}

// open begins a stream of all pods, and returns what its client is told.
func (r *running) open() *bufio.Reader {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(2 * patience)); err != nil {
		r.t.Fatal(err)
	}
	fmt.Fprint(conn, "GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	told := bufio.NewReader(response.Body)
	r.expect(told, "event: synced")
	return told
}

// expect reads up to a line that has a text.
func (r *running) expect(told *bufio.Reader, text string) {
	r.t.Helper()
	for {
		line, err := told.ReadString('\n')
		if err != nil {
			r.t.Fatalf("never: %s: %v; log: %s", text, err, r.log())
		}
		if strings.Contains(line, apitest.SecretDetail) {
			r.t.Errorf("a client is told of the inside: %s", line)
		}
		if strings.Contains(line, text) {
			return
		}
	}
}

// await waits until the Hub has so many streams, and so many of them idle.
func (r *running) await(open, idle int) {
	r.t.Helper()
	deadline := time.Now().Add(patience)
	for s := r.hub.Stats(); s.Open != open || s.Idle < idle; s = r.hub.Stats() {
		if time.Now().After(deadline) {
			r.t.Fatalf("%d streams are open, %d of them idle", s.Open, s.Idle)
		}
		time.Sleep(time.Millisecond)
	}
}

// panicking is an Encoder that fails where it is to tell a change.
type panicking struct{ Encoder }

func (p panicking) Encode(buf []byte, e Event) []byte {
	if e.Kind == KindChange {
		panic(apitest.SecretDetail)
	}
	return p.Encoder.Encode(buf, e)
}

// TestPanicOfOneStreamEndsOnlyThat, and not in a way that looks complete.
func TestPanicOfOneStreamEndsOnlyThat(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"a worker's":               func(c net.Conn) net.Conn { return c },
		"a goroutine's of its own": func(c net.Conn) net.Conn { return struct{ net.Conn }{c} }, // which it is not known how to write to without waiting
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, wrap)
			healthy := r.open()
			sick := r.open()
			r.await(2, 2)
			for _, ss := range r.hub.open.all() {
				if ss.number == 2 && ss.Take() {
					ss.leavePeers()
					ss.encoder = panicking{ss.encoder}
					ss.beServed()
				}
			}
			r.api.Put("pods", "team-a/web")
			r.expect(healthy, `"name":"web"`)
			if _, err := io.ReadAll(sick); err == nil {
				t.Error("the stream seems to be complete")
			}
			r.await(1, 0)
			r.api.Put("pods", "team-a/next")
			r.expect(healthy, `"name":"next"`)
			if log := r.log(); !strings.Contains(log, "msg=panic") || !strings.Contains(log, "hub_test.go") {
				t.Errorf("the log does not say where it panicked: %s", log)
			}
		})
	}
}
