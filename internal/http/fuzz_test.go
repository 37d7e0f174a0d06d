package http

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
)

// FuzzRequest sends whatever a stranger may send to a whole gateway. It must never be a 500, never tell of the inside,
// and each event stream must be well-formed to its end.
func FuzzRequest(f *testing.F) {
	for _, seed := range [][4]string{
		{"GET", "/api/v1/pods", "application/json", ""},
		{"GET", "/api/v1/namespaces/team-a/pods/web?watch=1", "text/event-stream", id(1001)},
		{"GET", "/stream?a=/api/v1/pods%3FlabelSelector%3Dapp&b=/apis/batch/v1/jobs&conflate=1s&fields=spec.x&deltas=merge-patch", "*/*", systemEpoch + ".a-5"},
		{"GET", "/api/v1/pods?limit=1&continue=eyJ2IjoxMDAyLCJuIjoid2ViIn0", "", ""},
		{"HEAD", "/stream", "text/event-stream", "x"},
		{"OPTIONS", "*", "", ""},
		{"POST", "/api/v1/pods", "", ""},
		{"GET", "/clusters/default/apis/example.org/v1/widgets?fieldSelector=a%5C.b%3Dc,d!%3De&resourceVersion=0", "text/event-stream;q=0.1", "\xff"},
		{"GET", "/assets/../%2e%2e/x", "text/html", ""},
		{"GET", "/api/v1/secrets?labelSelector=a%20in%20(b,c),!d&fieldSelector=data.key%3Dx", "", ""},
		{"GET", "http://elsewhere/api/v1/pods", "", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	g := newGateway(f, options(func(o *Options) {
		o.Stream.MaxAge = 2 * time.Millisecond
		o.SyncTimeout = 5 * time.Second
	}))
	g.api.Put("pods", "team-a/web", "metadata.labels.app=web")
	g.api.Put("secrets", "team-a/key", "data.key=c2VjcmV0")
	for _, path := range []string{"/api/v1/pods", "/apis/batch/v1/jobs", "/api/v1/secrets", "/apis/example.org/v1/widgets"} {
		g.get(path)
	}
	line := func(text string) string {
		return strings.Map(func(r rune) rune {
			if r <= ' ' || r == 0x7f {
				return -1
			}
			return r
		}, text)
	}
	f.Fuzz(func(t *testing.T, method, address, accept, position string) {
		request := line(method) + " " + line(address) + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer alice\r\nAccept: " +
			line(accept) + "\r\nLast-Event-ID: " + line(position) + "\r\n\r\n"
		conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(g.patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			return // refused before it was read
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: line(method)})
		if err != nil {
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
				t.Fatalf("%q: %v", request, err)
			}
			return
		}
		if response.Header.Get("X-Request-Id") == "" {
			return // net/http itself refused it
		}
		if response.StatusCode >= 500 && response.StatusCode != http.StatusGatewayTimeout {
			t.Errorf("%q: %s; log: %s", request, response.Status, g.log)
		}
		if response.Header.Get("Content-Type") == "text/event-stream" && line(method) == http.MethodGet {
			s := &events{t: t, response: response, body: bufio.NewReader(response.Body)}
			for {
				if _, err := s.read(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%q: %v", request, err)
				}
			}
			return
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Errorf("%q: %v", request, err)
		}
		if text := string(body); strings.Contains(text, apitest.SecretDetail) || strings.Contains(text, "c2VjcmV0") {
			t.Errorf("%q tells of the inside: %s", request, text)
		}
	})
}
