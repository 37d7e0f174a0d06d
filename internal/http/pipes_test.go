package http

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipes is a network of pipes, by address.
type pipes map[string]*pipeListener

func (p pipes) dial(ctx context.Context, _, address string) (net.Conn, error) {
	l := p[address]
	near, far := net.Pipe()
	if !l.plain {
		near, far = offeringPipe(near, far)
	}
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type pipeListener struct {
	address pipeAddress
	plain   bool // its connections can only be written to by those who wait, as those under TLS
	conns   chan net.Conn
	closed  chan struct{}
	close   func()
}

func newPipeListener(address string) *pipeListener {
	l := &pipeListener{address: pipeAddress(address), conns: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.close(); return nil }
func (l *pipeListener) Addr() net.Addr { return l.address }

type pipeAddress string

func (pipeAddress) Network() string  { return "pipe" }
func (a pipeAddress) String() string { return string(a) }

// way is the way of a replica to its API server, which can be cut while others go on.
type way struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	off   bool
	conns []net.Conn
}

var errCut = errors.New("the way is cut")

func (w *way) open(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	off := w.off
	w.mu.Unlock()
	if off {
		return nil, errCut
	}
	conn, err := w.dial(ctx, network, address)
	if err == nil {
		w.mu.Lock()
		w.conns = append(w.conns, conn)
		w.mu.Unlock()
	}
	return conn, err
}

// cut breaks the connections that stand, and lets none be made until mended.
func (w *way) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off = true
	for _, conn := range w.conns {
		_ = conn.Close()
	}
	w.conns = nil
}

func (w *way) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off = false
}

// offeringPipe makes a pipe to which a server can write without waiting, as to a socket: see
// conn.Offerer. So streams are served by workers, and are told together. It holds nothing: it takes
// what a read that is under way has room for.
func offeringPipe(near, far net.Conn) (client, server net.Conn) {
	room, left := make(chan int, 1), make(chan struct{})
	leave := sync.OnceFunc(func() { close(left) })
	return &clientEnd{near, room, leave}, &serverEnd{Conn: far, room: room, left: left, leave: leave, late: make(chan struct{})}
}

// clientEnd says of each read how much it has room for. Nothing else is written to it.
type clientEnd struct {
	net.Conn
	room  chan<- int
	leave func()
}

func (c *clientEnd) Read(p []byte) (int, error) {
	select {
	case c.room <- len(p):
	default: // the read before this one has failed
	}
	return c.Conn.Read(p)
}

func (c *clientEnd) Close() error {
	c.leave()
	return c.Conn.Close()
}

// serverEnd writes as much as a read has room for, so that no write is ever begun that has to wait.
type serverEnd struct {
	net.Conn
	room  <-chan int
	left  <-chan struct{}
	leave func()

	mu    sync.Mutex
	late  chan struct{} // closed once the deadline of writes has passed
	timer *time.Timer
}

func (s *serverEnd) Offer(piece []byte) (taken int, err error) {
	for taken < len(piece) {
		select {
		case <-s.left:
			return taken, io.ErrClosedPipe
		case room := <-s.room:
			n, err := s.Conn.Write(piece[taken:min(len(piece), taken+room)])
			if taken += n; err != nil {
				return taken, err
			}
		default:
			return taken, nil
		}
	}
	return taken, nil
}

func (s *serverEnd) NotifyGone(gone func()) {
	go func() {
		<-s.left
		gone()
	}()
}

func (s *serverEnd) Write(p []byte) (n int, err error) {
	s.mu.Lock()
	late := s.late
	s.mu.Unlock()
	for {
		select {
		case <-late:
			return n, os.ErrDeadlineExceeded
		default:
		}
		select {
		case <-s.left:
			return n, io.ErrClosedPipe
		case <-late:
			return n, os.ErrDeadlineExceeded
		case room := <-s.room:
			m, err := s.Conn.Write(p[n:min(len(p), n+room)])
			if n += m; err != nil || n == len(p) {
				return n, err
			}
		}
	}
}

func (s *serverEnd) Close() error {
	s.leave()
	return s.Conn.Close()
}

func (s *serverEnd) SetDeadline(at time.Time) error {
	return errors.Join(s.SetReadDeadline(at), s.SetWriteDeadline(at))
}

// SetWriteDeadline is for writes that begin afterwards, which is enough for those that are made here.
func (s *serverEnd) SetWriteDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	late := make(chan struct{})
	s.late, s.timer = late, nil
	switch left := time.Until(at); {
	case at.IsZero():
	case left <= 0:
		close(late)
	default:
		s.timer = time.AfterFunc(left, func() { close(late) })
	}
	return nil
}
