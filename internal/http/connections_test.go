package http

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kubecast/kubecast/internal/config"
)

// TestOneAddressDoesNotTakeAllConnections, though it is one of those that are trusted to be a
// proxy's: what asks for nothing gives way, and then what is idle of who has most. Who is being
// served stays.
func TestOneAddressDoesNotTakeAllConnections(t *testing.T) {
	const most = 20
	for name, test := range map[string]struct {
		from  string // where all connections come from
		asked bool   // each had one request answered, and is kept
	}{
		"silent, of the same address": {from: "127.0.0.1"},
		"silent, of another":          {from: "127.0.0.2"},
		"idle, of another":            {from: "127.0.0.2", asked: true},
	} {
		for _, version := range []int{0, 1, 2} {
			t.Run(fmt.Sprintf("%s, TLS with HTTP %d", name, version), func(t *testing.T) {
				t.Parallel()
				opts := []option{options(func(o *Options) {
					o.TrustedProxies = config.Networks(config.Default().TrustedProxies)
					o.Limits.Connections = ConnectionLimits{PerPeer: 4, Total: most}
				})}
				if version > 0 {
					opts = append(opts, overTLS(t, version))
				}
				g := newGateway(t, opts...)
				served := g.stream("/api/v1/pods") // from the beginning, over HTTP/2 on the connection of which others will be
				served.expect("synced")
				dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(test.from)}}
				_, address, _ := strings.Cut(g.url, "://")
				var taken []net.Conn
				for range 2 * most {
					conn, err := dialer.Dial("tcp", address)
					if err != nil {
						t.Skip(err) // systems on which loopback is one address
					}
					defer conn.Close()
					taken = append(taken, conn)
					if test.asked && version == 0 {
						fmt.Fprint(conn, "GET /openapi.yaml HTTP/1.1\r\nHost: test\r\n\r\n")
						if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
							_, _ = io.Copy(io.Discard, response.Body)
						}
					}
				}
				for range 3 {
					g.client.CloseIdleConnections()
					if a := g.get("/openapi.yaml"); a.code != 200 {
						t.Errorf("beside them: %d", a.code)
					}
				}
				g.api.Put("pods", "team-a/web")
				served.expect("added web")
				closed := 0
				for _, conn := range taken {
					_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
					if _, err := io.Copy(io.Discard, conn); !errors.Is(err, os.ErrDeadlineExceeded) {
						closed++
					}
				}
				if closed < most {
					t.Errorf("%d of %d were closed, and %d may be open", closed, len(taken), most)
				}
			})
		}
	}
}

// Many streams share a connection over HTTP/2, and so one file. Over HTTP/1.1 each has its own.
func TestStreamsThatShareAConnectionCountAsOne(t *testing.T) {
	for version, refused := range map[int]float64{1: 1, 2: 0} {
		t.Run(fmt.Sprintf("HTTP %d", version), func(t *testing.T) {
			const most = 8
			g := newGateway(t, overTLS(t, version), options(func(o *Options) { o.Limits.Connections = ConnectionLimits{Total: most} }))
			var open []*events
			for range most {
				s := g.stream("/api/v1/pods")
				s.expect("synced")
				open = append(open, s)
			}
			other, _ := g.another(1 << 16)
			request, err := http.NewRequest(http.MethodGet, g.url+"/openapi.yaml", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := other.client.Do(request)
			if err == nil {
				response.Body.Close()
			}
			if was := g.metric("kubecast_connections_refused_total", "total"); (err != nil) != (refused > 0) || (was > 0) != (refused > 0) {
				t.Errorf("somebody new: %v, and %v refused", err, was)
			}
			for _, s := range open {
				s.close()
			}
			g.eventually("nothing is left of them", func() bool { return g.server.streams.Connections() == 0 })
		})
	}
}

// TestRefusedConnectionIsCountedBeforeItIsClosed: a client that sees the end of its connection finds it in the metrics.
func TestRefusedConnectionIsCountedBeforeItIsClosed(t *testing.T) {
	nobody, none := func(netip.Addr) bool { return false }, func() int { return 0 }
	refused := newMetrics(prometheus.NewRegistry()).refused
	c := newConnections(ConnectionLimits{Total: 1}, nobody, none, refused, slog.New(slog.DiscardHandler))
	var counted []float64 // by the time at which each is closed
	for range 3 {
		end, other := net.Pipe()
		defer end.Close()
		defer other.Close()
		c.count(&closing{end, func() { counted = append(counted, testutil.ToFloat64(refused.WithLabelValues(limitTotal))) }}, http.StateNew)
	}
	if !slices.Equal(counted, []float64{1, 2}) {
		t.Errorf("when they are closed, so many are counted: %v", counted)
	}
}

// closing is a connection that says when it is closed.
type closing struct {
	net.Conn
	closes func()
}

func (c *closing) Close() error {
	c.closes()
	return c.Conn.Close()
}

// TestRequestBehindAStreamIsNotAnswered, be it pipelined with the stream's own or sent later: a proxy that shares its
// connections between users would take the answer for somebody else's. The stream goes on as if nothing had been sent.
func TestRequestBehindAStreamIsNotAnswered(t *testing.T) {
	for _, form := range []string{"text/event-stream", "application/json"} {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, TLS %v", form, secure), func(t *testing.T) {
				t.Parallel()
				var opts []option
				if secure {
					opts = append(opts, overTLS(t, 1))
				}
				g := newGateway(t, opts...)
				g.api.Put("pods", "team-a/first")
				g.get("/api/v1/pods")
				conn, r := g.raw("")
				if secure {
					conn = tls.Client(conn, plainTLS(g))
					r = bufio.NewReader(conn)
				}
				const smuggled = "/api/v1/namespaces/team-a/pods/smuggled"
				path := "GET /api/v1/pods"
				if form != eventStream {
					path += "?watch=true"
				}
				if _, err := io.WriteString(conn, lines(path, "Accept: "+form)+lines("GET "+smuggled)); err != nil {
					t.Fatal(err)
				}
				var text strings.Builder
				until := func(name string) {
					t.Helper()
					for !strings.Contains(text.String(), `"name":"`+name+`"`) {
						piece := make([]byte, 4<<10)
						n, err := r.Read(piece)
						text.Write(piece[:n])
						if err != nil {
							t.Fatalf("%v after %q", err, text.String())
						}
					}
				}
				until("first")
				g.eventually("the stream waits", func() bool { return g.readers("pods") == 1 })
				if _, err := io.WriteString(conn, lines("GET "+smuggled)); err != nil {
					t.Fatal(err)
				}
				g.api.Put("pods", "team-a/second")
				until("second")
				if answers := strings.Count(text.String(), "HTTP/1.1 "); answers != 1 || strings.Contains(text.String(), "smuggled") {
					t.Errorf("%d answers: %q", answers, text.String())
				}
			})
		}
	}
}

// plainTLS is how the gateway's own client talks TLS, without HTTP/2.
func plainTLS(g *gateway) *tls.Config {
	config := g.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName, config.NextProtos = "localhost", nil
	return config
}
