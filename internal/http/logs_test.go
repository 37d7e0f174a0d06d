package http

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
)

const webLog = "/api/v1/namespaces/a/pods/web/log"

// logged has the API server answer requests for logs.
func logged(answer http.HandlerFunc) option {
	return before(func(api *apitest.API) { api.Logs = answer })
}

// lineByLine writes a line whenever one is sent, until the channel is closed or the reader has gone.
func lineByLine(lines <-chan string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for {
			select {
			case line, more := <-lines:
				if !more {
					return
				}
				fmt.Fprint(w, line)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
}

// follow opens a log; the reader ends with the test.
func (g *gateway) follow(path string, headers ...string) *http.Response {
	g.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	g.t.Cleanup(cancel)
	response, err := g.client.Do(g.newRequest(ctx, http.MethodGet, path, headers))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// logsOpen is how many logs are being read from the API server.
func (g *gateway) logsOpen() int {
	return int(g.metric("kubecast_log_upstreams", ""))
}

// metric is the value of a gauge or counter, of all labels or of those with one value.
func (g *gateway) metric(name, label string) (sum float64) {
	g.t.Helper()
	families, err := g.registry.Gather()
	if err != nil {
		g.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (label == "" || strings.Contains(m.String(), strconv.Quote(label))) {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func TestLineOfALogDoesNotWaitForTheNext(t *testing.T) {
	var written sync.Map // by gateway
	inEachTLS(t, func(t *testing.T, g *gateway) {
		of, _ := written.Load(g)
		lines := of.(chan string)
		lines <- "one\n"
		response := g.follow(webLog + "?follow=true")
		if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/plain" || response.Header.Get("X-Accel-Buffering") != "no" {
			t.Fatalf("%d %v", response.StatusCode, response.Header)
		}
		reader := bufio.NewReader(response.Body)
		for i := range 20 { // the next one is written once this one was read
			if line, err := reader.ReadString('\n'); err != nil || line != "one\n" {
				t.Fatalf("line %d: %q, %v", i, line, err)
			}
			lines <- "one\n"
		}
		if line, err := reader.ReadString('\n'); err != nil || line != "one\n" {
			t.Fatalf("%q, %v", line, err)
		}
		_ = response.Body.Close()
		g.eventually("that the client left is noticed", func() bool { return g.logsOpen() == 0 })
	}, func(g *gateway, _ *Options) {
		lines := make(chan string, 1)
		written.Store(g, lines)
		g.api.Logs = lineByLine(lines)
	})
}

// What the API server says is passed on, and only what Kubernetes knows is asked.
func TestLogsAndTheirErrorsAreTheAPIServersOwn(t *testing.T) {
	var asked atomic.Pointer[http.Request]
	answer := func(w http.ResponseWriter, r *http.Request) {}
	g := newGateway(t, logged(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r)
		answer(w, r)
	}))
	long := strings.Repeat("\x00\xff binary and long ", 20_000) + "\nwithout an end"
	answer = func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, long) }
	a := g.get(webLog + "?container=x&tailLines=5&timestamps=true&watch=true&limit=3&labelSelector=a")
	if a.code != 200 || a.body != long {
		t.Errorf("%d, %d bytes", a.code, len(a.body))
	}
	if query := asked.Load().URL.RawQuery; query != "container=x&tailLines=5&timestamps=true" || asked.Load().Header.Get("Authorization") != "" {
		t.Errorf("the API server was asked for %s", query)
	}
	if a := g.request(http.MethodHead, webLog+"?follow=true"); a.code != 200 || asked.Load().URL.Query().Has("follow") {
		t.Errorf("HEAD: %d", a.code)
	}
	for _, code := range []int{400, 404, 429, 500, 503} {
		const words = `{"kind":"Status","message":"container \"x\" in pod \"web\" is waiting to start: ContainerCreating"}`
		answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(code)
			fmt.Fprint(w, words)
		}
		if a := g.get(webLog); a.code != code || a.body != words || a.header.Get("Content-Type") != "application/json" || a.header.Get("Retry-After") != "7" {
			t.Errorf("%d %v %s", a.code, a.header, a.body)
		}
	}
	for _, code := range []int{401, 403} { // which is about the gateway, and would name its account
		g.api.Fail("logs", code)
		if a := g.get(webLog); a.code != 503 || !strings.Contains(a.body, "pods/log") || a.header.Get("Retry-After") == "" {
			t.Errorf("%d %s", a.code, a.body)
		}
	}
	g.api.Fail("logs", 0)
	answer = func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "half a li")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	response := g.follow(webLog)
	if body, err := io.ReadAll(response.Body); err == nil || string(body) != "half a li" {
		t.Errorf("what the API server broke off looks complete: %q, %v", body, err)
	}
}

func TestNobodyReadsALogThatTheyMayNotGet(t *testing.T) {
	log, option := audited(t)
	g := newGateway(t, option, logged(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the key is 42\n") }))
	g.api.Put("pods", "a/web")
	g.access.set(func(a *fakeAuth) {
		a.decide = func(id auth.Identity, r auth.Request) (bool, error) {
			return id.Username == "alice" || r.Subresource != "log", nil
		}
	})
	if a := g.get(webLog); a.code != 200 || a.body != "the key is 42\n" {
		t.Errorf("alice: %d %s", a.code, a.body)
	}
	asked := g.access.asked[len(g.access.asked)-1]
	if want := (auth.Request{Cluster: "default", Verb: "get", Version: "v1", Resource: "pods", Subresource: "log", Namespace: "a", Name: "web"}); asked != want {
		t.Errorf("asked was %+v", asked)
	}
	if a := g.get("/api/v1/namespaces/a/pods/web", "Authorization: Bearer bob"); a.code != 200 {
		t.Errorf("bob sees the pod: %d %s", a.code, a.body)
	}
	served := g.api.Served("logs")
	for _, path := range []string{webLog, webLog + "/", webLog + "?follow=true", "/clusters/default" + webLog} {
		a := g.get(path, "Authorization: Bearer bob")
		if a.code != 403 || a.status(t).Message != `pods "web" is forbidden: User "bob" cannot get resource "pods/log" in API group "" in the namespace "a"` {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	if a := g.get(webLog, "Authorization: "); a.code != 401 {
		t.Errorf("a stranger: %d", a.code)
	}
	// None of these is the log of a pod, and none may be asked for, since cleaned they would name others.
	for _, path := range []string{
		"/api/v1/namespaces/../pods/web/log", "/api/v1/namespaces/a/pods/../log", "/api/v1/namespaces/a/pods/%2e%2e/log", "/api/v1/namespaces/a/pods/w%25b/log",
		"/api/v1/pods/web/log", "/api/v1/namespaces/a/secrets/web/log", "/apis/batch/v1/namespaces/a/pods/web/log", "/api/v2/namespaces/a/pods/web/log",
		"/api/v1/namespaces/a/pods/web/log/x", "/clusters/none" + webLog,
	} {
		if a := g.get(path); a.code != 404 {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	if n := g.api.Served("logs") - served; n != 0 {
		t.Errorf("the API server was asked %d times", n)
	}
	log.end()
	lines := log.lines()
	for _, want := range []string{
		`ResponseStarted get pods a/web "alice" 200 allow all token`, `ResponseComplete get pods a/web "alice" 200 allow all token complete 1`,
		`ResponseComplete get pods a/web "bob" 403 forbid token`, `ResponseComplete get pods a/web "" 401`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("%s is not in\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

// A log that is followed ends as a stream does, and what was read of it does not look complete.
func TestFollowedLogEndsWithWhatPermittedIt(t *testing.T) {
	since := func(g *gateway, after time.Duration, decision func() (bool, error)) {
		began := time.Now()
		g.access.decide = func(auth.Identity, auth.Request) (bool, error) {
			if time.Since(began) < after {
				return true, nil
			}
			return decision()
		}
	}
	for reason, test := range map[string]struct {
		set         func(*gateway)
		after, till time.Duration
		later       int // status of who comes back; 0: they are let in
	}{
		"expired": {func(g *gateway) { g.access.expires = time.Now().Add(5 * time.Minute) }, 5 * time.Minute, 5 * time.Minute, 0},
		"revoked": {func(g *gateway) { since(g, 5*time.Minute, func() (bool, error) { return false, nil }) }, 5 * time.Minute, 5*time.Minute + 10*time.Second, 403},
		"drain":   {func(g *gateway) { context.AfterFunc(timeout(g.t, 5*time.Minute), g.drain) }, 5 * time.Minute, 5*time.Minute + 20*time.Second, 503},
		"unavailable": {func(g *gateway) {
			since(g, 5*time.Minute, func() (bool, error) { return false, fmt.Errorf("%w: %s", auth.ErrUndecided, apitest.SecretDetail) })
		}, 5*time.Minute + 40*time.Second, 5*time.Minute + 80*time.Second, 503},
	} {
		t.Run(reason, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *gateway) {
				g.access.set(func(*fakeAuth) { test.set(g) })
				began := time.Now()
				response := g.follow(webLog + "?follow=true")
				body, err := io.ReadAll(response.Body)
				if took := time.Since(began); took < test.after || took > test.till {
					t.Errorf("ended after %v", took)
				}
				if err == nil || string(body) != "one\n" {
					t.Errorf("it looks complete: %q, %v", body, err)
				}
				g.eventually("it is counted as ended", func() bool { return g.logsOpen() == 0 })
				if n := g.metric("kubecast_log_ended_total", reason); n != 1 {
					t.Errorf("ended for another reason: %s", g.log)
				}
				if test.later == 0 {
					return
				}
				if a := g.get(webLog); a.code != test.later {
					t.Errorf("who comes back is answered %d %s", a.code, a.body)
				}
			}, logged(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, "one\n")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}))
		})
	}
}

// A container that writes nothing has no answer yet, and what it is waited for by may end meanwhile.
func TestLogWithoutALineEndsInWords(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.access.set(func(a *fakeAuth) { a.expires = time.Now().Add(time.Minute) })
		if a := g.get(webLog + "?follow=true"); a.code != 401 {
			t.Errorf("%d %s", a.code, a.body)
		}
		g.access.set(func(a *fakeAuth) { a.expires = time.Time{} })
		context.AfterFunc(timeout(t, time.Minute), func() { g.access.permit("alice", auth.Scope{}) })
		began := time.Now()
		if a := g.get(webLog + "?follow=true"); a.code != 403 || time.Since(began) != time.Minute {
			t.Errorf("%d %s after %v", a.code, a.body, time.Since(began))
		}
	}, logged(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
}

func TestTooManyLogsAreRefused(t *testing.T) {
	g := newGateway(t, options(func(o *Options) { o.Limits.Logs = LogLimits{Total: 3, PerUser: 2} }), logged(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	first := g.follow(webLog)
	g.follow(webLog)
	if a := g.get(webLog); a.code != 429 || a.header.Get("Retry-After") == "" || a.status(t).Message == "" {
		t.Errorf("alice's third: %d %s", a.code, a.body)
	}
	g.follow(webLog, "Authorization: Bearer bob")
	if a := g.get(webLog, "Authorization: Bearer carol"); a.code != 429 {
		t.Errorf("the fourth: %d %s", a.code, a.body)
	}
	_ = first.Body.Close()
	g.eventually("the place is free", func() bool { return g.logsOpen() == 2 })
	g.follow(webLog, "Authorization: Bearer carol")
}

// A client that takes nothing holds neither memory nor a connection to the API server for long.
func TestClientThatTakesNothingOfALogIsCut(t *testing.T) {
	var written atomic.Int64
	inBubble(t, func(t *testing.T, g *gateway) {
		response := g.follow(webLog + "?follow=true")
		pass(time.Minute)
		if n := g.logsOpen(); n != 0 {
			t.Errorf("%d logs are read after a minute", n)
		}
		if n := written.Load(); n > 256<<10 {
			t.Errorf("the gateway has taken %d bytes for a client that took none", n)
		}
		if _, err := io.Copy(io.Discard, response.Body); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("what it has looks complete: %v", err)
		}
	}, logged(func(w http.ResponseWriter, _ *http.Request) {
		for {
			n, err := w.Write(make([]byte, 1<<10))
			if err != nil {
				return
			}
			written.Add(int64(n))
		}
	}))
}
