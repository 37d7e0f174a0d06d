package conn

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

// sent is a connection on which a text was sent, and then nothing more.
type sent struct {
	net.Conn
	*bytes.Reader
}

func (s sent) Read(p []byte) (int, error)      { return s.Reader.Read(p) }
func (s sent) SetReadDeadline(time.Time) error { return nil }
func (s sent) RemoteAddr() net.Addr            { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1} }

// Whatever comes, the connection is either refused, or one of a client, with what follows the header unread.
func FuzzReadAnnouncement(f *testing.F) {
	client, balancer := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 443}
	proxied := proxyproto.HeaderProxyFromAddrs(2, client, balancer)
	local := proxyproto.HeaderProxyFromAddrs(2, client, balancer)
	local.Command = proxyproto.LOCAL
	for _, header := range []*proxyproto.Header{proxied, local, proxyproto.HeaderProxyFromAddrs(1, client, balancer)} {
		text, err := header.Format()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(text, "GET / HTTP/1.1\r\n"...))
		f.Add(text[:len(text)-1])
	}
	f.Add([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := sent{Reader: bytes.NewReader(text)}
		got, err := ReadAnnouncement(c, time.Second)
		read := len(text) - c.Len()
		if err != nil {
			if got != nil {
				t.Error("a connection that is refused")
			}
			return
		}
		if want := announcementHead + int(text[14])<<8 + int(text[15]); read != want || !bytes.HasPrefix(text, proxyproto.SIGV2) {
			t.Errorf("%d bytes were read, the header has %d", read, want)
		}
		if announced, ok := got.(*Announced); ok && announced.RemoteAddr().(*net.TCPAddr) == nil {
			t.Error("it comes from nowhere")
		}
	})
}
