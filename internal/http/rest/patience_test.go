package rest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/http/conn"
)

// A client that takes something is waited for, however slow it is. One that takes nothing is disconnected.
func TestLongAnswerWaitsForWhoeverTakesSomething(t *testing.T) {
	const size, patience = 16 << 20, 2 * time.Second
	text := strings.Repeat("x", 1<<20)
	test := func(t *testing.T, secure bool) {
		t.Parallel()
		ends := make(chan error, 1)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out := newListWriter(w, r, patience)
			for range size / len(text) {
				out.text(text)
			}
			ends <- out.close()
		}))
		server.Config.ConnContext = conn.Remember
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
		if secure {
			server.StartTLS()
		} else {
			server.Start()
		}
		get := func(read func(io.Reader)) error {
			transport := server.Client().Transport.(*http.Transport).Clone()
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
				if err == nil {
					err = conn.(*net.TCPConn).SetReadBuffer(128 << 10) // so that the server's kernel has to wait
				}
				return conn, err
			}
			defer transport.CloseIdleConnections()
			response, err := (&http.Client{Transport: transport}).Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			read(response.Body)
			return <-ends
		}
		var n int64
		err := get(func(body io.Reader) {
			slow := bufio.NewReaderSize(body, 8<<10)
			for until := time.Now().Add(3 * patience); time.Now().Before(until); time.Sleep(40 * time.Millisecond) {
				some, _ := slow.Discard(8 << 10)
				n += int64(some)
			}
			rest, _ := io.Copy(io.Discard, slow)
			n += rest
		})
		if err != nil || n != size {
			t.Errorf("a slow client was sent %d bytes of %d: %v", n, size, err)
		}
		if err := get(func(io.Reader) {}); err == nil {
			t.Error("a client that takes nothing was waited for")
		}
		server.Close()
	}
	t.Run("plain", func(t *testing.T) { test(t, false) })
	t.Run("TLS", func(t *testing.T) { test(t, true) })
}

// A client that asks again and again and takes no answer is disconnected, however small the answers are.
func TestClientThatTakesNoSmallAnswersIsCut(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = writeSmall(w, strings.Repeat("x", smallAnswer), 300*time.Millisecond) // net/http writes its last part after the handler
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.Start()
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	requests := strings.Repeat("GET / HTTP/1.1\r\nHost: test\r\n\r\n", 1000)
	for {
		if err := conn.SetWriteDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, requests); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("it is waited for")
			}
			break // the server has closed the connection
		}
	}
}
