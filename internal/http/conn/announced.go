package conn

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/pires/go-proxyproto"
)

// Announced is a connection of which the load balancer before it has said where it comes from.
type Announced struct {
	net.Conn
	from net.Addr
}

// RemoteAddr is where the client is.
func (a *Announced) RemoteAddr() net.Addr { return a.from }

// NetConn is the connection of the load balancer.
func (a *Announced) NetConn() net.Conn { return a.Conn }

const (
	// announcementHead is the size of what every header begins with: the signature, the version and the command, the
	// family, and the length of the rest in two bytes.
	announcementHead = 16
	// maxAnnouncement bounds the rest: addresses, and what else a load balancer may say, of which some kilobytes are
	// TLS certificates' names at most.
	maxAnnouncement = 4 << 10
)

var errNoAnnouncement = errors.New("it does not begin with a header of PROXY protocol version 2")

// ReadAnnouncement reads the header of PROXY protocol version 2 that a load balancer sends before anything else, and
// nothing behind it (https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt). It returns the connection as that
// of the client; a connection of the load balancer itself, such as for a check of health, as it is. It fails if the
// header is not there within a time.
func ReadAnnouncement(conn net.Conn, within time.Duration) (net.Conn, error) {
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	head := make([]byte, announcementHead)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, fmt.Errorf("read the header of a load balancer: %w", err)
	}
	if !bytes.HasPrefix(head, proxyproto.SIGV2) {
		return nil, errNoAnnouncement
	}
	rest := int(binary.BigEndian.Uint16(head[announcementHead-2:]))
	if rest > maxAnnouncement {
		return nil, fmt.Errorf("a load balancer's header has %d bytes more; allowed: %d", rest, maxAnnouncement)
	}
	text := append(head, make([]byte, rest)...)
	if _, err := io.ReadFull(conn, text[announcementHead:]); err != nil {
		return nil, fmt.Errorf("read the header of a load balancer: %w", err)
	}
	header, err := proxyproto.Read(bufio.NewReader(bytes.NewReader(text)))
	if err != nil {
		return nil, fmt.Errorf("a load balancer's header: %w", err)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	if from, ok := header.SourceAddr.(*net.TCPAddr); ok && !header.Command.IsLocal() {
		return &Announced{conn, from}, nil
	}
	return conn, nil
}
