package conn

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// connKey is the key of a request's connection in its context.
type connKey struct{}

// Shared is a connection of which several requests know.
type Shared struct {
	conn net.Conn
	left atomic.Bool
}

// Leave says that the client is to leave the connection. Over HTTP/2 net/http can tell it so only with the head of an answer,
// so that is done with the next one.
func (s *Shared) Leave() { s.left.Store(true) }

// IsLeft reports whether the client is to leave the connection.
func (s *Shared) IsLeft() bool { return s != nil && s.left.Load() }

// SharedOf returns the connection of a request that others can use at the same time; nil if there is none such.
func SharedOf(r *http.Request) *Shared {
	if r.ProtoMajor == 1 {
		return nil
	}
	s, _ := r.Context().Value(connKey{}).(*Shared)
	return s
}

// Remember puts a connection into the context of its requests, so that answers can see how much of them the client
// has taken. It also bounds how much of them the kernel holds before it is sent.
func Remember(ctx context.Context, conn net.Conn) context.Context {
	if tcp := TCPBelow(conn); tcp != nil {
		tellRoomEarly(tcp)
	}
	return context.WithValue(ctx, connKey{}, &Shared{conn: conn})
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
	if s, ok := r.Context().Value(connKey{}).(*Shared); ok {
		return s.conn
	}
	return nil
}
