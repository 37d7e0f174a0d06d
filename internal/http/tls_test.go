package http

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/certtest"
)

// overTLS lets clients talk TLS to the gateway, with HTTP/2 or without.
func overTLS(t *testing.T, version int) option {
	// In a bubble it is the year 2000.
	pair := certtest.Between(t, "gateway.test", time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), time.Now().Add(time.Hour))
	return func(g *gateway, _ *Options) {
		g.tls = pair.Server(t)
		transport := g.client.Transport.(*http.Transport)
		transport.TLSClientConfig = certtest.Client(pair)
		transport.Protocols = &http.Protocols{}
		transport.Protocols.SetHTTP1(version == 1)
		transport.Protocols.SetHTTP2(version == 2)
	}
}

// inEachTLS runs a test over TLS with either version of HTTP.
func inEachTLS(t *testing.T, test func(*testing.T, *gateway), opts ...option) {
	t.Helper()
	t.Parallel()
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP%d", version), func(t *testing.T) {
			t.Parallel()
			test(t, newGateway(t, append(opts, overTLS(t, version))...))
		})
	}
}

func (s *events) version() int { return s.response.ProtoMajor }

// TestStreamsOverTLS are told the same, in the same way, and leave nothing behind.
func TestStreamsOverTLS(t *testing.T) {
	inEachTLS(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "team-a/web")
		s := g.stream("/stream?p=/api/v1/pods&n=/api/v1/nodes")
		if want := "HTTP" + fmt.Sprint(s.version()); s.response.TLS == nil || !strings.HasSuffix(t.Name(), want) {
			t.Fatalf("this is %s, not %s over TLS", s.response.Proto, want)
		}
		s.until("p.synced")
		g.watches("pods", 1)
		for i := range 50 {
			g.api.Put("pods", fmt.Sprintf("team-a/pod-%d", i))
			if f := s.next(); f.String() != fmt.Sprintf("p.added pod-%d", i) {
				t.Fatalf("%q", f.raw)
			}
		}
		s.close()
		g.eventually("that it left is noticed", func() bool { return g.streams() == 0 && g.readers("pods") == 0 })
		g.api.Put("pods", "team-a/meanwhile")
		back := g.stream("/stream?p=/api/v1/pods&n=/api/v1/nodes", "Last-Event-ID: "+s.lastID)
		if f := back.next(); f.String() != "p.added meanwhile" {
			t.Errorf("%q", f.raw)
		}
		if kubectl := g.get("/api/v1/pods?limit=1"); kubectl.code != 200 {
			t.Errorf("%d %s", kubectl.code, kubectl.body)
		}
	})
}

// TestDrainOverTLSEndsStreamsWhole: with a goodbye, at a frame's end, and as what is complete.
func TestDrainOverTLSEndsStreamsWhole(t *testing.T) {
	inEachTLS(t, func(t *testing.T, g *gateway) {
		var open []*events
		for range 20 {
			s := g.stream("/api/v1/pods")
			s.expect("synced")
			open = append(open, s)
		}
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			g.server.Drain(context.Background())
		}()
		for _, s := range open {
			left := s.end()
			if last := left[len(left)-1]; last.String() != "goodbye drain" {
				t.Errorf("%q", last.raw)
			}
		}
		<-drained
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if err := g.http.Shutdown(ctx); err != nil {
			t.Errorf("connections are left: %v", err)
		}
	}, options(func(o *Options) { o.Drain = 200 * time.Millisecond }))
}

// TestIdleStreamsOverHTTP2KeepNoDeepStack: net/http needs a goroutine for each, and what that has on its stack is most of what
// an idle stream costs.
func TestIdleStreamsOverHTTP2KeepNoDeepStack(t *testing.T) {
	g := newGateway(t, overTLS(t, 2))
	const streams = 20
	for range streams {
		g.stream("/api/v1/pods").expect("synced")
	}
	goroutines := func() string {
		text := make([]byte, 8<<20)
		return string(text[:runtime.Stack(text, true)])
	}
	g.eventually("streams wait in no other goroutine than the request's, at its beginning", func() bool {
		held, sessions := 0, 0
		for one := range strings.SplitSeq(goroutines(), "\n\n") {
			held += strings.Count(one, "conn.(*Served).wait(")
			if strings.Contains(one, "conn.(*Served).wait(") && strings.Contains(one, "eventstream.") || strings.Contains(one, "eventstream.(*session).run(") {
				sessions++
			}
		}
		return held == streams && sessions == 0
	})
}

// TestClientsOfADrainingGatewayLeaveTheirConnection, although other streams keep it open: whoever came back by it would be
// turned away for as long as the gateway runs.
func TestClientsOfADrainingGatewayLeaveTheirConnection(t *testing.T) {
	inEachTLS(t, func(t *testing.T, g *gateway) {
		kept := g.stream("/api/v1/pods") // over HTTP/2 it is on the connection of the others
		kept.expect("synced")
		ask := func() (reused bool) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), g.patience)
			defer cancel()
			ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { reused = got.Reused }})
			response, err := g.client.Do(g.newRequest(ctx, http.MethodGet, "/api/v1/pods", nil))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
				t.Fatalf("%s %v", response.Status, err)
			}
			return reused
		}
		ask()
		if !ask() {
			t.Error("a connection is not kept")
		}
		g.drain()
		ask()
		g.eventually("the next request has a connection of its own", func() bool { return !ask() })
		g.api.Put("pods", "team-a/web")
		kept.expect("added web") // until it is its turn
	})
}

// TestStalledClientOverTLSIsCut, for all that waits for it: its write, and over HTTP/2 its connection.
func TestStalledClientOverTLSIsCut(t *testing.T) {
	inEachTLS(t, func(t *testing.T, g *gateway) {
		witness := g.stream("/api/v1/pods")
		witness.expect("synced")
		other, stall := g.another(3 << 20)
		other.stream("/api/v1/pods").expect("synced")
		stall()
		pad := noise(256 << 10)
		for began := time.Now(); g.streams() == 2; {
			if time.Since(began) > g.patience {
				t.Fatal("the stalled client is not cut")
			}
			g.api.Put("pods", "team-a/big", "spec.pad="+pad)
			witness.next()
		}
		g.api.Put("pods", "team-a/last")
		witness.expect("added last")
		g.eventually("its connection is closed", func() bool {
			g.server.connections.mu.Lock()
			defer g.server.connections.mu.Unlock()
			return len(g.server.connections.open) <= 1 // the witness's, over HTTP/2
		})
	}, options(func(o *Options) { o.Stream.WriteTimeout = 2 * time.Second }))
}

// TestEndDoesNotWaitForAStalledClientOverTLS, whose connection TLS would close with a word of
// farewell that nobody takes.
func TestEndDoesNotWaitForAStalledClientOverTLS(t *testing.T) {
	inEachTLS(t, func(t *testing.T, g *gateway) {
		witness := g.stream("/api/v1/pods")
		witness.expect("synced")
		for range 3 {
			other, stall := g.another(64 << 10)
			other.stream("/api/v1/pods").expect("synced")
			stall()
		}
		pad := noise(512 << 10)
		for range 4 { // more than the kernel's buffers hold
			g.api.Put("pods", "team-a/big", "spec.pad="+pad)
			witness.next()
		}
		began := time.Now()
		g.stop()
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
	}, options(func(o *Options) { o.Stream.WriteTimeout = time.Minute }))
}

// TestSlowButSteadyReaderOverTLSIsNotCut: the kernel would say only after a megabyte that there is room again.
func TestSlowButSteadyReaderOverTLSIsNotCut(t *testing.T) {
	const size, patience = 4 << 20, 3 * time.Second
	inEachTLS(t, func(t *testing.T, g *gateway) {
		for i := range 16 {
			g.api.Put("pods", fmt.Sprintf("team-a/%d", i), "spec.text="+strings.Repeat("x", size/16))
		}
		g.get("/api/v1/pods?limit=1")
		other, _ := g.another(64 << 10)
		s := other.stream("/api/v1/pods")
		slow := time.Now().Add(patience + 2*time.Second)
		piece := make([]byte, 8<<10)
		read, last := 0, ""
		for !strings.Contains(last, "event: synced") {
			n, err := s.body.Read(piece)
			if err != nil {
				t.Fatalf("cut after %d bytes: %v; log: %s", read, err, g.log)
			}
			read += n
			last = last[max(0, len(last)-64):] + string(piece[:n])
			if time.Now().Before(slow) {
				time.Sleep(time.Duration(n) * time.Second / (96 << 10)) // a third of a megabyte within the deadline
			}
		}
		if read < size {
			t.Errorf("%d bytes", read)
		}
	}, options(func(o *Options) { o.Stream.WriteTimeout = patience }))
}

// TestSizesAreBoundedOverTLS, in words as far as HTTP/2 gets them there.
func TestSizesAreBoundedOverTLS(t *testing.T) {
	inEachTLS(t, func(t *testing.T, g *gateway) {
		if a := g.get("/api/v1/pods?search=" + strings.Repeat("x", maxAddress)); a.code != 414 || a.status(t).Message == "" {
			t.Errorf("%d %s", a.code, a.body)
		}
		if a := g.get("/api/v1/pods", "X-Other: "+strings.Repeat("x", maxHeader)); a.code != 431 || a.status(t).Message == "" {
			t.Errorf("%d %s", a.code, a.body)
		}
		// Clients of HTTP/2 are told the limit, and may give up themselves.
		response, err := g.client.Do(g.newRequest(t.Context(), http.MethodGet, "/api/v1/pods", []string{"X-Other: " + strings.Repeat("x", 1<<20)}))
		if err == nil {
			response.Body.Close()
			if response.StatusCode != 431 {
				t.Error(response.Status)
			}
		}
		if a := g.get("/api/v1/pods"); a.code != 200 {
			t.Errorf("afterwards: %d %s", a.code, a.body)
		}
	})
}

// TestHandshakeIsNotWaitedFor for long: neither for its first byte nor for the rest of it.
func TestHandshakeIsNotWaitedFor(t *testing.T) {
	for name, sent := range map[string]string{"nothing": "", "half a greeting": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *gateway) {
				began := time.Now()
				_, r := g.raw(sent)
				_, _ = io.Copy(io.Discard, r) // until it is cut
				if took := time.Since(began); took > headerTimeout+time.Second {
					t.Errorf("it was cut after %v", took)
				}
			}, overTLS(t, 1))
		})
	}
}

// TestIdleStreamOverTLSHasNoGoroutine over HTTP/1.1, and all the same it is noticed when its client leaves: also a client
// that says so in TLS, and leaves the connection open.
func TestIdleStreamOverTLSHasNoGoroutine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("streams are parked on Linux only")
	}
	g := newGateway(t, overTLS(t, 1))
	trusted := g.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	trusted.ServerName = "gateway.test"
	open := func() (*tls.Conn, *events) {
		raw, _ := g.raw("")
		client := tls.Client(raw, trusted)
		if _, err := io.WriteString(client, "GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nAccept: text/event-stream\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		s := &events{t: t, response: response, body: bufio.NewReader(response.Body)}
		s.frame()
		s.expect("synced")
		return client, s
	}
	open()
	g.parked(1)
	before := runtime.NumGoroutine()
	var clients []*tls.Conn
	var streams []*events
	for range 100 {
		client, s := open()
		clients, streams = append(clients, client), append(streams, s)
	}
	g.parked(101)
	g.eventually("nothing is left of their beginnings", func() bool { return runtime.NumGoroutine() < before+20 })
	g.api.Put("pods", "team-a/web")
	for _, s := range streams {
		s.expect("added web")
	}
	for i, client := range clients {
		leave := client.CloseWrite // TLS says that the client leaves, TCP does not
		if i%2 == 0 {
			leave = client.NetConn().Close
		}
		if err := leave(); err != nil {
			t.Fatal(err)
		}
	}
	g.eventually("that they left is noticed", func() bool { return g.streams() == 1 })
}

// another is the same gateway for another client, whose kernel holds little, and which can stop
// reading. Over HTTP/2 the client lets window bytes come that it has not read.
func (g *gateway) another(window int) (client *gateway, stall func()) {
	g.t.Helper()
	stalled := make(chan struct{})
	transport := g.client.Transport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialer := net.Dialer{Control: func(_, _ string, conn syscall.RawConn) (err error) {
			failed := conn.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 16<<10) })
			return errors.Join(err, failed)
		}}
		conn, err := dialer.DialContext(ctx, network, address)
		return &stalling{Conn: conn, stalled: stalled, closed: make(chan struct{})}, err
	}
	transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: window, MaxReceiveBufferPerConnection: window}
	g.t.Cleanup(transport.CloseIdleConnections)
	copied := *g
	copied.client = &http.Client{Transport: transport}
	return &copied, sync.OnceFunc(func() { close(stalled) })
}

// stalling is a connection that nothing is read from any more once it is stalled.
type stalling struct {
	net.Conn
	stalled <-chan struct{}
	close   sync.Once
	closed  chan struct{}
}

func (c *stalling) Read(p []byte) (int, error) {
	select {
	case <-c.stalled:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return c.Conn.Read(p)
	}
}

func (c *stalling) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// TestQuietStreamsOverTLSLast: whatever is watched, in whichever form, its headers go out at once,
// before there is anything to tell, and nothing ends it while there is nothing, for longer than a
// connection may be idle between requests. A deadline of the headers' own would reset it over HTTP/2.
func TestQuietStreamsOverTLSLast(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP%d", version), func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *gateway) {
				version := g.api.Put("pods", "team-a/web")
				g.get("/api/v1/pods")
				began := time.Now()
				var quiet []*watched
				for _, query := range []string{
					fmt.Sprintf("resourceVersion=%d", version),
					fmt.Sprintf("resourceVersion=%d&allowWatchBookmarks=true", version),
					"labelSelector=app%3Dnew",
					"sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
				} {
					quiet = append(quiet, g.watch("/api/v1/pods?watch=true&"+query))
				}
				table := g.watch(fmt.Sprintf("/api/v1/pods?watch=true&resourceVersion=%d", version), "Accept: application/json;as=Table;v=v1;g=meta.k8s.io")
				s := g.stream("/api/v1/pods?sendInitialEvents=false&heartbeat=1h")
				if took := time.Since(began); took > 0 {
					t.Errorf("the headers came after %v", took)
				}
				pass(20 * time.Second) // many times what a client is given to take the head, and before the first bookmark
				g.api.Put("pods", "team-a/new", "metadata.labels.app=new")
				for _, w := range quiet {
					w.expect("ADDED new")
				}
				if row := table.next().Get("object.rows.0.cells.0").String(); row != "new" {
					t.Errorf("the table's watch is told %q", row)
				}
				s.expect("added new")
				quiet[1].close() // nobody would read its bookmarks
				quiet = slices.Delete(quiet, 1, 2)
				for since := time.Now(); time.Since(since) < idleTimeout+time.Minute; { // a connection without a request would end
					s.until("bookmark")
				}
				g.api.Put("pods", "team-a/newer", "metadata.labels.app=new")
				for _, w := range quiet {
					w.expect("ADDED newer")
				}
				if f := s.until("added"); f.field("metadata", "name") != "newer" {
					t.Errorf("the stream is told %q", f.raw)
				}
				for _, w := range append(quiet, table) {
					w.close()
				}
				s.close()
			}, overTLS(t, version))
		})
	}
}

// A client may say that it leaves in the same packet as its request, and leave the connection open: nothing that comes later says it.
func TestClientThatLeavesWithItsRequestIsNotKept(t *testing.T) {
	g := newGateway(t, overTLS(t, 1))
	trusted := g.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	trusted.ServerName = "gateway.test"
	var ended sync.WaitGroup
	for range 20 {
		raw, _ := g.raw("")
		below := &collecting{Conn: raw}
		client := tls.Client(below, trusted)
		if err := client.Handshake(); err != nil {
			t.Fatal(err)
		}
		below.collects = true
		_, err := io.WriteString(client, "GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nAccept: text/event-stream\r\n\r\n")
		// CloseWrite leaves a deadline that has passed.
		if err := errors.Join(err, client.CloseWrite(), raw.SetDeadline(time.Now().Add(g.patience))); err != nil {
			t.Fatal(err)
		}
		if _, err := raw.Write(below.records.Bytes()); err != nil {
			t.Fatal(err)
		}
		ended.Go(func() { _, _ = io.Copy(io.Discard, client) }) // until it is told the end
	}
	ended.Wait()
	g.eventually("that they left is noticed", func() bool { return g.streams() == 0 })
}

// collecting is a connection that keeps what is written, once it collects.
type collecting struct {
	net.Conn
	collects bool
	records  bytes.Buffer
}

func (c *collecting) Write(p []byte) (int, error) {
	if c.collects {
		return c.records.Write(p)
	}
	return c.Conn.Write(p)
}

// TestStreamsThatBeginTooLateDoNotLookComplete: to who follows a log, an end that looks complete is the end of the log.
func TestStreamsThatBeginTooLateDoNotLookComplete(t *testing.T) {
	inEachTLS(t, func(t *testing.T, g *gateway) {
		ended, end := context.WithCancel(t.Context())
		end()
		g.server.streams.Run(ended)
		response, err := g.client.Do(g.newRequest(t.Context(), http.MethodGet, "/api/v1/pods", []string{"Accept: text/event-stream"}))
		if err != nil {
			return // it was broken off before its head was sent
		}
		defer response.Body.Close()
		if body, err := io.ReadAll(response.Body); err == nil {
			t.Errorf("the stream of a server that has ended looks complete: %d %q", response.StatusCode, body)
		}
	})
}

// TestDelaysOfStreamsThatAreToldTogetherAreMeasured also over HTTP/2, where none of them is written to by a worker.
func TestDelaysOfStreamsThatAreToldTogetherAreMeasured(t *testing.T) {
	inEachTLS(t, func(t *testing.T, g *gateway) {
		const streams = 3
		var open []*events
		for range streams {
			s := g.stream("/api/v1/pods", "Accept-Encoding: identity")
			s.expect("synced")
			open = append(open, s)
		}
		measured := func() (count uint64) {
			families, err := g.registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				if f.GetName() == "kubecast_stream_append_to_flush_seconds" {
					count += f.GetMetric()[0].GetHistogram().GetSampleCount()
				}
			}
			return count
		}
		for i := range 5 {
			before := measured()
			g.api.Put("pods", fmt.Sprintf("a/pod-%d", i))
			for _, s := range open {
				s.expect(fmt.Sprintf("added pod-%d", i))
			}
			g.eventually("the delay of each delivery is measured", func() bool { return measured() == before+streams })
			g.eventually("they are told together", func() bool { return g.server.streams.Stats().Together == streams })
		}
	})
}
