package http

import (
	"context"
	"errors"
	"net"
	"sync"
)

// pipes is a network of pipes, by address.
type pipes map[string]*pipeListener

func (p pipes) dial(ctx context.Context, _, address string) (net.Conn, error) {
	near, far := net.Pipe()
	l := p[address]
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
