//go:build linux

package load

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
)

// Target says what a group's clients ask for.
type Target struct {
	Address       string // host:port, on loopback
	Path          string
	Token         string // may be empty
	Users         []User // in place of Path and Token: each client has its own
	TLS           bool   // the server's certificate is not checked: the server is on loopback
	HTTP2         int    // how many clients share a connection of HTTP/2 over TLS; 0: HTTP/1.1
	Accept        string // "": streams, else JSON
	Coding        string // of Accept-Encoding; "": none is asked for
	Raw           bool   // bytes are counted, and not read; a list ends its connection
	Snapshot      bool   // the stream begins with one
	ReceiveBuffer int    // of the socket, in bytes; 0: the system's
}

// User is what one client of many asks for, and its token.
type User struct{ Path, Token string }

// request is the text of a client's request.
func (t Target) request(index int, lastEventID string) []byte {
	if len(t.Users) > 0 {
		t.Path, t.Token = t.Users[index].Path, t.Users[index].Token
	}
	var b strings.Builder
	accept := cmp.Or(t.Accept, "text/event-stream, application/json;q=0.9")
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\n", t.Path, t.Address, accept)
	if t.Coding != "" {
		fmt.Fprintf(&b, "Accept-Encoding: %s\r\n", t.Coding)
	}
	if t.Raw {
		b.WriteString("Connection: close\r\n")
	}
	if t.Token != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", t.Token)
	}
	if lastEventID != "" {
		fmt.Fprintf(&b, "Last-Event-ID: %s\r\n", lastEventID)
	}
	b.WriteString("\r\n")
	return []byte(b.String())
}

// newRequest is a client's request over HTTP/2.
func (t Target) newRequest(ctx context.Context, index int, lastEventID string) (*http.Request, error) {
	text := bufio.NewReader(bytes.NewReader(t.request(index, lastEventID)))
	request, err := http.ReadRequest(text)
	if err != nil {
		return nil, err
	}
	request.URL.Scheme, request.URL.Host, request.RequestURI = "https", t.Address, ""
	return request.WithContext(ctx), nil
}

// sources is from how many addresses connections come. So there are enough ports for all connections, and for closed
// ones whose ports the system still holds.
const sources = 4

// ipBindAddressNoPort leaves the choice of the port to connect, which may use one port for several connections.
const ipBindAddressNoPort = 24

// connect opens a connection, and sends the request. The socket that it returns is non-blocking.
func connect(t Target, index int, request []byte) (fd int, err error) {
	address, err := netip.ParseAddrPort(t.Address)
	if err != nil {
		return -1, err
	}
	fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	defer func() {
		if err != nil {
			_ = syscall.Close(fd)
			fd = -1
		}
	}()
	if t.ReceiveBuffer > 0 {
		if err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF, t.ReceiveBuffer); err != nil {
			return fd, fmt.Errorf("SO_RCVBUF: %w", err)
		}
	}
	// Closing resets the connection, since ten thousand of them must not hold their ports for a minute.
	linger := &syscall.Linger{Onoff: 1, Linger: 0}
	if err = syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, linger); err != nil {
		return fd, fmt.Errorf("SO_LINGER: %w", err)
	}
	if err = syscall.SetsockoptInt(fd, syscall.SOL_IP, ipBindAddressNoPort, 1); err != nil {
		return fd, fmt.Errorf("IP_BIND_ADDRESS_NO_PORT: %w", err)
	}
	if err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, byte(2 + index%sources)}}); err != nil {
		return fd, fmt.Errorf("bind: %w", err)
	}
	if err = syscall.Connect(fd, &syscall.SockaddrInet4{Addr: address.Addr().As4(), Port: int(address.Port())}); err != nil {
		return fd, fmt.Errorf("connect to %s: %w", t.Address, err)
	}
	if _, err = syscall.Write(fd, request); err != nil {
		return fd, fmt.Errorf("write the request: %w", err)
	}
	if err = syscall.SetNonblock(fd, true); err != nil {
		return fd, err
	}
	return fd, nil
}
