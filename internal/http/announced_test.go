package http

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

// TestBehindALoadBalancerEachClientIsOne: with PROXY protocol, limits by address count clients, and
// not the load balancer; streams work as without it. Whoever connects and says nothing holds nobody
// up, and is refused in the end, as is who says something else. Nobody but the load balancers is
// believed.
func TestBehindALoadBalancerEachClientIsOne(t *testing.T) {
	networks := options(func(o *Options) {
		o.ProxyProtocol = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
		o.TrustedProxies = []netip.Prefix{}
		o.Limits.PerAddress, o.Limits.Connections.PerPeer = 1, 8
	})
	paced := func(g *gateway, _ *Options) { g.wrap = func(l net.Listener) net.Listener { return g.server.Listen(l) } }
	for name, opts := range map[string][]option{"plain": {networks, paced}, "TLS": {networks, paced, overTLS(t, 1)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, opts...)
			_, address, secure := strings.Cut(g.url, "://")
			secure = strings.HasPrefix(g.url, "https")
			dial := func(before []byte) net.Conn {
				t.Helper()
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				if _, err := conn.Write(before); err != nil {
					t.Fatal(err)
				}
				return conn
			}
			from := func(client string, command proxyproto.ProtocolVersionAndCommand) []byte {
				t.Helper()
				header := proxyproto.HeaderProxyFromAddrs(2, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(client)), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443})
				header.Command = command
				text, err := header.Format()
				if err != nil {
					t.Fatal(err)
				}
				return text
			}
			stream := func(conn net.Conn, until string) {
				t.Helper()
				if secure {
					conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // the test's own gateway
				}
				fmt.Fprint(conn, "GET /api/v1/pods HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer alice\r\nAccept: text/event-stream\r\n\r\n")
				response, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				lines := bufio.NewScanner(response.Body)
				for lines.Scan() {
					if strings.Contains(lines.Text(), until) {
						return
					}
				}
				t.Errorf("%s: the stream ends without %q", response.Status, until)
			}
			silent := []net.Conn{}
			for range 20 {
				silent = append(silent, dial(nil))
			}
			stream(dial(from("198.51.100.1:1000", proxyproto.PROXY)), "event: synced")
			stream(dial(from("198.51.100.2:1000", proxyproto.PROXY)), "event: synced")
			stream(dial(from("198.51.100.1:1001", proxyproto.PROXY)), `"limit"`)
			stream(dial(from("[2001:db8::1]:1000", proxyproto.PROXY)), "event: synced")
			stream(dial(from("198.51.100.1:1000", proxyproto.LOCAL)), "event: synced")
			for what, text := range map[string]string{
				"no header":             "GET /api/v1/pods HTTP/1.1\r\nHost: test\r\n\r\n",
				"a header of version 1": "PROXY TCP4 198.51.100.9 192.0.2.1 1000 443\r\nGET / HTTP/1.1\r\n\r\n",
				"a header that is long": string(proxyproto.SIGV2) + "\x21\x11\xff\xff",
			} {
				if n, _ := io.Copy(io.Discard, dial([]byte(text))); n != 0 {
					t.Errorf("%s: it is answered", what)
				}
			}
			for _, conn := range silent {
				if n, _ := io.Copy(io.Discard, conn); n != 0 {
					t.Error("who says nothing is answered")
				}
			}
		})
	}
	t.Run("others", func(t *testing.T) {
		g := newGateway(t, paced, options(func(o *Options) { o.ProxyProtocol = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} }))
		if a := g.get("/openapi.yaml"); a.code != http.StatusOK {
			t.Errorf("without a header: %d", a.code)
		}
		_, address, _ := strings.Cut(g.url, "://")
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "%s\x21\x11\x00\x0c\xc6\x33\x64\x01\xc0\x00\x02\x01\x03\xe8\x01\xbbGET /openapi.yaml HTTP/1.1\r\nHost: test\r\n\r\n", proxyproto.SIGV2)
		if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && response.StatusCode != http.StatusBadRequest {
			t.Errorf("a header of somebody else is taken: %s", response.Status)
		}
	})
}
