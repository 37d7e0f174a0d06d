package rest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubecast/kubecast/internal/http/conn"
)

// The kernel says that there is room only once 32 KiB were sent (TCP_NOTSENT_LOWAT). A client that needs longer for
// these than it may take nothing is waited for all the same.
func TestLongAnswerWaitsForWhoeverTakesLittle(t *testing.T) {
	t.Parallel()
	const size, patience = 1 << 20, 3 * time.Second
	ends := make(chan error, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := newListWriter(w, r, patience)
		out.text(strings.Repeat("x", size))
		ends <- out.close()
	}))
	server.Config.ConnContext = conn.Remember
	server.Start()
	defer server.Close()
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { // as over a slow network: small packets, each acknowledged soon after it is read
			if err := unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, 1400); err != nil {
				t.Error(err)
			}
			if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<10); err != nil {
				t.Error(err)
			}
		})
	}}
	transport := &http.Transport{ReadBufferSize: 1 << 10, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, address)
	}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var n int64
	for until := time.Now().Add(2 * patience); err == nil && time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		var some int64
		some, err = io.CopyN(io.Discard, response.Body, 1<<10) // 5 KiB a second
		n += some
	}
	rest, _ := io.Copy(io.Discard, response.Body)
	if n += rest; n != size {
		t.Errorf("it was sent %d bytes of %d: %v", n, size, <-ends)
	}
}
