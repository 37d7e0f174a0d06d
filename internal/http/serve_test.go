package http

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// rawStream is a stream on a connection without goroutines of the client's.
func (g *gateway) rawStream(path string) (net.Conn, *events) {
	g.t.Helper()
	conn, r := g.raw("GET " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nAccept: text/event-stream\r\n\r\n")
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	s := &events{t: g.t, response: response, body: bufio.NewReader(response.Body)}
	s.frame()
	return conn, s
}

// parked waits until all streams are parked.
func (g *gateway) parked(streams int) {
	g.t.Helper()
	g.eventually("the streams are idle", func() bool {
		stats := g.server.streams.Stats()
		return stats.Open == streams && stats.Idle == streams
	})
}

// TestIdleStreamHasNoGoroutine, since ten thousand streams are idle most of the time.
func TestIdleStreamHasNoGoroutine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("streams are parked on Linux only")
	}
	g := newGateway(t)
	_, first := g.rawStream("/api/v1/pods")
	first.expect("synced")
	g.parked(1)
	before := runtime.NumGoroutine()
	var streams []*events
	for range 200 {
		_, s := g.rawStream("/api/v1/pods")
		s.expect("synced")
		streams = append(streams, s)
	}
	g.parked(201)
	g.eventually("nothing is left of their beginnings", func() bool { return runtime.NumGoroutine() < before+20 })
	g.api.Put("pods", "team-a/web")
	for _, s := range streams {
		s.expect("added web")
	}
}

// TestSlowButSteadyReaderIsNotCut, however much it is to be sent: it takes something before each deadline, though the
// kernel says so only when a third of its buffer is free.
func TestSlowButSteadyReaderIsNotCut(t *testing.T) {
	t.Parallel()
	const kernel, rest = 32 << 10, 56 << 10
	g := newGateway(t, options(func(o *Options) { o.Stream.WriteTimeout = 2 * time.Second }), func(g *gateway, _ *Options) {
		g.wrap = func(l net.Listener) net.Listener { return smallBuffers{l, kernel} }
	})
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		g.api.Put("pods", "team-a/"+name, "spec.text="+strings.Repeat("x", (2*kernel+rest)/8))
	}
	g.get("/api/v1/pods?limit=1")
	// As over Ethernet; with the segments of loopback such a small window would open in leaps.
	g.client.Transport.(*http.Transport).DialContext = (&net.Dialer{Control: func(_, _ string, conn syscall.RawConn) (err error) {
		failed := conn.Control(func(fd uintptr) {
			err = errors.Join(syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 1400),
				syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 8<<10))
		})
		return errors.Join(err, failed)
	}}).DialContext
	_, s := g.rawStream("/api/v1/pods")
	read := 0
	for text := []byte(nil); !strings.Contains(string(text), "event: synced"); {
		piece := make([]byte, 4<<10)
		n, err := s.body.Read(piece)
		if err != nil {
			t.Fatalf("cut after %d bytes: %v; log: %s", read, err, g.log)
		}
		read += n
		text = append(text[max(0, len(text)-64):], piece[:n]...)
		time.Sleep(time.Duration(n) * 400 * time.Millisecond / (4 << 10))
	}
}

// smallBuffers gives its connections less room in the kernel.
type smallBuffers struct {
	net.Listener
	bytes int
}

func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(l.bytes)
	}
	return conn, err
}

// TestStreamsOverLaterHTTP1: net/http takes any minor version, and a stream that ended at once would be opened again for ever.
func TestStreamsOverLaterHTTP1(t *testing.T) {
	g := newGateway(t)
	_, r := g.raw("GET /api/v1/pods HTTP/1.2\r\nHost: x\r\nAuthorization: Bearer alice\r\nAccept: text/event-stream\r\n\r\n")
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &events{t: g.t, response: response, body: bufio.NewReader(response.Body)}
	s.frame()
	s.expect("synced")
}
