package conn

import (
	"context"
	"net"
	"net/http"
)

// connKey is the key of a request's connection in its context.
type connKey struct{}

// Remember puts a connection into the context of its requests, so that answers can see how much of them the client
// has taken. It also bounds how much of them the kernel holds before it is sent.
func Remember(ctx context.Context, conn net.Conn) context.Context {
	if tcp := TCPBelow(conn); tcp != nil {
		tellRoomEarly(tcp)
	}
	return context.WithValue(ctx, connKey{}, conn)
}

// TCPBelow returns the TCP connection that a connection is, or that lies below its TLS or a load
// balancer's header; nil if there is none.
func TCPBelow(conn net.Conn) *net.TCPConn {
	for {
		above, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = above.NetConn()
	}
	tcp, _ := conn.(*net.TCPConn)
	return tcp
}

// tcpOf returns the TCP connection of a request that has it for itself; nil if it does not, or that is not known.
func tcpOf(r *http.Request) *net.TCPConn {
	if r.ProtoMajor != 1 {
		return nil // other answers share it
	}
	return TCPBelow(Of(r))
}

// Of returns the connection of a request; nil if it is not known.
func Of(r *http.Request) net.Conn {
	c, _ := r.Context().Value(connKey{}).(net.Conn)
	return c
}
