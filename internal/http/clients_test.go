package http

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/http/eventstream"
)

// A client that takes no byte is cut when its write's deadline has passed, and nobody else waits for it.
func TestStalledClientIsCutAndDelaysNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		witness := g.stream("/api/v1/pods")
		witness.expect("synced")
		var stalled []*events
		for range 20 {
			s := g.stream("/api/v1/pods")
			s.expect("synced")
			stalled = append(stalled, s)
		}
		g.eventually("all of them wait", func() bool { return g.server.streams.Stats().Idle == 21 })
		var cut time.Duration
		began := time.Now()
		for i := range 100 {
			put := time.Now()
			g.api.Put("pods", fmt.Sprintf("team-a/pod-%d", i))
			witness.expect(fmt.Sprintf("added pod-%d", i))
			if late := time.Since(put); late > 0 {
				t.Fatalf("the witness is told %v late", late)
			}
			if cut == 0 && g.streams() == 1 {
				cut = time.Since(began)
			}
			pass(100 * time.Millisecond)
		}
		if cut < 5*time.Second || cut > 5*time.Second+200*time.Millisecond {
			t.Errorf("the stalled clients were cut after %v", cut)
		}
		for _, s := range stalled {
			for {
				f, err := s.read()
				if err == io.EOF || err == nil && f.event == "goodbye" {
					t.Fatal("to a client that was cut, the stream looks complete")
				}
				if err != nil {
					break
				}
			}
		}
		g.eventually("only the witness is left", func() bool { return g.streams() == 1 && g.readers("pods") == 1 })
	})
}

// TestStalledClientOnARealConnection, whose buffers the kernel fills first.
func TestStalledClientOnARealConnection(t *testing.T) {
	g := newGateway(t, options(func(o *Options) { o.Stream.WriteTimeout = 2 * time.Second }), func(g *gateway, _ *Options) {
		g.wrap = func(l net.Listener) net.Listener { return smallBuffers{l, 256 << 10} } // else it may take longer to fill them than the test has
	})
	witness := g.stream("/api/v1/pods")
	witness.expect("synced")
	other, _ := g.another(0)
	stalled := other.stream("/api/v1/pods")
	stalled.expect("synced")
	pad := noise(256 << 10)
	i := 0
	for began := time.Now(); g.streams() == 2; i++ {
		if time.Since(began) > g.patience {
			t.Fatal("the stalled client is not cut")
		}
		g.api.Put("pods", "team-a/big", "spec.pad="+pad)
		witness.next()
	}
	g.api.Put("pods", "team-a/last")
	witness.expect("added last")
}

// TestSlowReaderOfAListDelaysNobody, since a snapshot holds no lock; and if it stops reading it is cut, and knows.
func TestSlowReaderOfAListDelaysNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		pad := strings.Repeat("x", eventstream.FlushAt)
		for i := range 20 {
			g.api.Put("pods", fmt.Sprintf("team-a/pod-%02d", i), "spec.pad="+pad)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		response, err := g.client.Do(g.newRequest(ctx, http.MethodGet, "/api/v1/pods", nil))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		slow := bufio.NewReader(response.Body)
		for range 5 { // slowly, but in time for each piece
			if _, err := slow.Discard(eventstream.FlushAt); err != nil {
				t.Fatal(err)
			}
			pass(4 * time.Second)
		}
		witness := g.stream("/api/v1/pods?sendInitialEvents=false")
		g.eventually("the witness waits", func() bool { return g.readers("pods") == 1 })
		put := time.Now()
		g.api.Put("pods", "team-a/new")
		witness.expect("added new")
		if late := time.Since(put); late > 0 {
			t.Errorf("an event is %v late", late)
		}
		if strings.Contains(g.log.String(), "did not take the answer") {
			t.Error("a slow reader was cut")
		}
		g.eventually("it is cut", func() bool { return strings.Contains(g.log.String(), "did not take the answer") })
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("a reader that stopped was cut after %v", took)
		}
		if _, err := io.Copy(io.Discard, slow); err == nil {
			t.Error("half a list looks complete")
		}
	})
}

// TestClientThatLeavesInSilenceIsNoticed at once, though nothing is written to it.
func TestClientThatLeavesInSilenceIsNoticed(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		for _, path := range []string{"/api/v1/pods", "/stream?a=/api/v1/pods&b=/api/v1/namespaces/x/pods"} {
			s := g.stream(path)
			s.until(map[bool]string{true: "synced", false: "b.synced"}[path[1] == 'a'])
			began := time.Now()
			s.close()
			g.eventually("it is noticed", func() bool { return g.streams() == 0 && g.readers("pods") == 0 })
			if took := time.Since(began); took > 10*time.Millisecond {
				t.Errorf("noticed after %v", took)
			}
		}
		// Nor does one that waits for a kind to be read hold anything.
		g.api.Hang("nodes")
		s := g.stream("/api/v1/nodes")
		s.close()
		g.eventually("it is noticed", func() bool { return g.streams() == 0 })
	})
}

// raw speaks to the gateway without an HTTP client between.
func (g *gateway) raw(request string) (net.Conn, *bufio.Reader) {
	g.t.Helper()
	dial := g.client.Transport.(*http.Transport).DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(g.t.Context(), "tcp", g.url[strings.Index(g.url, "//")+2:])
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(g.patience)); err != nil {
		g.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		g.t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// TestOneFrameIsOneChunk of an HTTP/1.1 answer, and HTTP/1.0, which knows no chunks, is served, too.
func TestStreamsOnTheWire(t *testing.T) {
	g := newGateway(t, options(func(o *Options) { o.Stream.MaxAge = 300 * time.Millisecond }))
	g.api.Put("pods", "team-a/web")
	for _, version := range []string{"1.0", "1.1"} {
		_, r := g.raw("GET /api/v1/pods HTTP/" + version + "\r\nHost: x\r\nAuthorization: Bearer alice\r\nAccept: text/event-stream\r\n\r\n")
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if chunked := slices.Equal(response.TransferEncoding, []string{"chunked"}); chunked != (version == "1.1") || !response.Close {
			t.Errorf("HTTP/%s: %v, close %v", version, response.TransferEncoding, response.Close)
		}
		if _, err := http.ParseTime(response.Header.Get("Date")); err != nil {
			t.Errorf("HTTP/%s: %v", version, err)
		}
		s := &events{t: t, response: response, body: bufio.NewReader(response.Body)}
		s.frame()
		s.frame()
		s.expect("added web", "synced", "goodbye age")
		s.end()
	}
}

// TestClientThatTalksIsNotHeard: what a client sends that it should not costs a little of the
// kernel's memory, and hides neither the client's leaving nor the stream's end.
func TestClientThatTalksIsNotHeard(t *testing.T) {
	t.Parallel() // it mostly waits, for real time
	const request = "GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nAccept: text/event-stream\r\n\r\n"
	g := newGateway(t)
	conn, r := g.raw(request)
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &events{t: t, response: response, body: bufio.NewReader(response.Body)}
	s.frame()
	s.expect("synced")
	if err := conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	const most = 16 << 20 // that both ends' kernels may hold
	if n, err := io.CopyN(conn, zeroes{}, most); err == nil {
		t.Errorf("%d bytes were taken", n)
	}
	g.api.Put("pods", "team-a/web")
	s.expect("added web")
	_ = conn.Close()
	g.eventually("it is noticed that the client has left", func() bool { return g.streams() == 0 })

	// Where somebody has to read, the client is cut: to read costs something.
	inBubble(t, func(t *testing.T, g *gateway) {
		conn, r := g.raw(request)
		go func() { _, _ = io.Copy(conn, zeroes{}) }() // until it is cut
		_, _ = io.Copy(io.Discard, r)
		g.eventually("it has ended", func() bool { return g.streams() == 0 })
	})
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestHTTP2StreamOutlivesItsWriteDeadline: net/http ends an HTTP/2 stream when a deadline passes, though nothing is
// being written.
func TestHTTP2StreamOutlivesItsWriteDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		transport := g.client.Transport.(*http.Transport)
		transport.Protocols = &http.Protocols{}
		transport.Protocols.SetUnencryptedHTTP2(true)

		g.api.Put("pods", "team-a/web")
		s := g.stream("/api/v1/pods?heartbeat=60s")
		if s.response.ProtoMajor != 2 {
			t.Fatal(s.response.Proto)
		}
		s.expect("added web", "synced")
		for i := range 20 {
			pass(25 * time.Second)
			g.api.Put("pods", fmt.Sprintf("team-a/pod-%d", i))
			s.expect(fmt.Sprintf("added pod-%d", i))
		}
		other := g.stream("/api/v1/pods")
		other.until("synced")
		other.close()
		g.eventually("the other has left", func() bool { return g.streams() == 1 })
		left := s.end()
		if last := left[len(left)-1]; last.String() != "goodbye age" {
			t.Errorf("%q", last.raw)
		}
	})
}

// streams is how many streams are open.
func (g *gateway) streams() int { return g.server.streams.Stats().Open }

// TestKindInUseIsNotStopped as idle, however long a stream of it is silent; without one it is.
func TestKindInUseIsNotStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		s := g.stream("/api/v1/pods")
		s.expect("synced")
		for began := time.Now(); time.Since(began) < 20*time.Minute; {
			s.frame()
		}
		g.api.Put("pods", "team-a/web")
		s.expect("added web")
		s.close()
		g.eventually("the kind is stopped", func() bool { return len(g.kinds.All()) == 0 })
		g.watches("pods", 0)
		g.stream("/api/v1/pods").expect("added web", "synced")
	}, func(g *gateway, _ *Options) { g.idle = time.Minute })
}

// TestKindThatIsRemovedEndsItsStreams, as when its CRD is deleted: its objects go first, then the
// client is told that there is no such kind any more, and so is everybody who asks later. Streams
// of other kinds go on, also if they had this one (see TestKindThatIsRemovedEndsNoOtherSource).
func TestKindThatIsRemovedEndsItsStreams(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("widgets", "team-a/one")
		stay := g.stream("/api/v1/pods")
		stay.expect("synced")
		several := g.stream("/stream?u=/apis/example.org/v1/widgets&w=/apis/example.org/v1/widgets")
		several.expect("u.added one", "u.synced", "w.added one", "w.synced")
		one := g.stream("/apis/example.org/v1/widgets")
		one.expect("added one", "synced")
		plain := g.watch("/apis/example.org/v1/widgets?watch=true")
		plain.expect("ADDED one")
		g.api.Delete("widgets", "team-a/one")
		g.api.Serve(apitest.Widgets, false)
		for _, s := range []*events{several, one} {
			left := s.end()
			deleted := slices.ContainsFunc(left, func(f frame) bool { return strings.HasSuffix(f.String(), "deleted one") })
			if last := left[len(left)-1]; !deleted || last.String() != "goodbye gone" {
				t.Errorf("it is told %v", left)
			}
		}
		plain.expect("DELETED one")
		if more := plain.next(); more.Exists() {
			t.Errorf("the watch goes on with %s", more)
		}
		for _, accept := range []string{"application/json", "text/event-stream"} {
			if a := g.get("/apis/example.org/v1/widgets", "Accept: "+accept); a.code != http.StatusNotFound {
				t.Errorf("%s afterwards: %d %s", accept, a.code, a.body)
			}
		}
		g.api.Put("pods", "team-a/web")
		stay.expect("added web")
		g.api.Serve(apitest.Widgets, true)
		g.api.Put("widgets", "team-a/two")
		pass(2 * time.Second)
		g.stream("/apis/example.org/v1/widgets").expect("added two", "synced")
	})
}

// TestKindThatVanishesForAMomentUnderAStream is no more than that its watch is lost.
func TestKindThatVanishesForAMomentUnderAStream(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("widgets", "team-a/one")
		s := g.stream("/apis/example.org/v1/widgets")
		s.expect("added one", "synced")
		g.api.Delete("widgets", "team-a/one")
		g.api.Serve(apitest.Widgets, false)
		told := []string{s.next().event, s.next().event} // that the watch is lost may be known first
		if slices.Sort(told); !slices.Equal(told, []string{"deleted", "stale"}) {
			t.Errorf("%v", told)
		}
		g.api.Serve(apitest.Widgets, true)
		g.api.Put("widgets", "team-a/two")
		s.expect("added two", "live live")
	})
}
