package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// slowly is a connection on which the client steadily takes 20 KB/s, as on a bad mobile network, until it is told to
// hurry.
type slowly struct {
	net.Conn
	hurry *atomic.Bool
}

func (s slowly) Read(p []byte) (int, error) {
	if !s.hurry.Load() {
		time.Sleep(100 * time.Millisecond)
		p = p[:min(len(p), 2<<10)]
	}
	return s.Conn.Read(p)
}

// slowClient has a small receive buffer, so that only the server's kernel hides how slow it is.
func slowClient(t *testing.T) (client *http.Client, hurry *atomic.Bool) {
	t.Helper()
	hurry = &atomic.Bool{}
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		if failed := raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 8<<10)
		}); failed != nil {
			return failed
		}
		return err
	}}
	transport := &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) { // what is compressed is soon read
		conn, err := dialer.DialContext(ctx, network, address)
		return slowly{conn, hurry}, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, hurry
}

// A client that reads slowly but steadily is not disconnected, however long it takes: the time-out is for clients
// that take nothing. (The kernel reports that a connection can be written to again only when a third of its buffer is
// free. This client needs most of a minute for that.)
func TestSlowButSteadyClientGetsEverything(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "slow")
	const objects, each = 16, 700 << 10 // more than fits into buffers
	for i := range objects {
		big := configMap("slow", fmt.Sprintf("big-%02d", i), nil)
		big.Data = map[string]string{"text": strings.Repeat("0123456789abcdef", each/16)}
		if _, err := s.kube.CoreV1().ConfigMaps("slow").Create(context.Background(), big, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const timeout = 2 * time.Second
	g := s.startGateway(t, gatewayOptions{config: fmt.Sprintf("stream: {writeTimeout: %s}\n", timeout)})
	g.waitReady(t)
	path := scope{kind: configMapsKind, namespace: "slow", fieldSelector: "metadata.name!=kube-root-ca.crt"}.path()
	stream := func(ctx context.Context, client *http.Client) (int, error) {
		frames, err := openFramesBy(ctx, client, g.url+path, bearer(s.viewer(t)))
		if err != nil {
			return 0, err
		}
		defer frames.close()
		for told := 0; ; {
			read, err := frames.next()
			switch {
			case err != nil:
				return told, err
			case read.event == "added":
				told++
			case read.event == "synced":
				return told, nil
			case read.event == "stale" || read.event == "live": // the first list of so much may take its time
			case read.event != "":
				return told, fmt.Errorf("told was %s %s", read.event, read.data)
			}
		}
	}
	list := func(ctx context.Context, client *http.Client) (int, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+path, nil)
		if err != nil {
			return 0, err
		}
		request.Header = bearer(s.viewer(t))
		response, err := client.Do(request)
		if err != nil {
			return 0, err
		}
		defer response.Body.Close()
		var list struct{ Items []json.RawMessage }
		body, err := io.ReadAll(response.Body)
		if err == nil {
			err = json.Unmarshal(body, &list)
		}
		return len(list.Items), err
	}
	for name, get := range map[string]func(context.Context, *http.Client) (int, error){"a stream": stream, "a list": list} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 2*eventuallyWithin)
			defer cancel()
			client, hurry := slowClient(t)
			time.AfterFunc(8*timeout, func() { hurry.Store(true) })
			if n, err := get(ctx, client); n != objects || err != nil {
				t.Errorf("%d objects came, not %d: %v", n, objects, err)
			}
		})
	}
}
