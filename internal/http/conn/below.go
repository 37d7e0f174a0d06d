package conn

import (
	"context"
	"net"
	"net/http"
)

// connKey is where a request's context has its connection.
type connKey struct{}

// Remember lets answers see how much of them a client has taken.
func Remember(ctx context.Context, conn net.Conn) context.Context {
	if tcp := TCPBelow(conn); tcp != nil && conn != net.Conn(tcp) {
		tellRoomEarly(tcp)
	}
	return context.WithValue(ctx, connKey{}, conn)
}

// TCPBelow is the TCP connection that a connection is, or that is below its TLS; nil if there is none.
func TCPBelow(conn net.Conn) *net.TCPConn {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	tcp, _ := conn.(*net.TCPConn)
	return tcp
}

// tcpOf is the connection of a request that has one for itself; nil if it cannot be told.
func tcpOf(r *http.Request) *net.TCPConn {
	if r.ProtoMajor != 1 {
		return nil // other answers are on it, too
	}
	return TCPBelow(Of(r))
}

// Of is the connection that a request came by; nil if it is not known.
func Of(r *http.Request) net.Conn {
	c, _ := r.Context().Value(connKey{}).(net.Conn)
	return c
}
