package http

import (
	"net"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
)

// arrivals is the public listener. It hands connections to net/http at a pace, since each is a goroutine at once: a few thousand that are
// to run at the same moment hold up everybody who is being served. A peer that is no trusted proxy may open some at once, and then so
// many a second; further ones wait, as no more than an open file each.
type arrivals struct {
	net.Listener
	*connections
	ready  chan arrival
	closed chan struct{}
	end    func()
	done   sync.WaitGroup

	mu      sync.Mutex
	waiting map[net.Conn]*time.Timer // nil once it is closed
}

type arrival struct {
	conn net.Conn
	err  error
}

const (
	arrivalsAtOnce = 16 // of any peers
	arrivalsEach   = time.Millisecond
	// What a peer may open at once, and then a second, as parts of what it may have open.
	peerAtOnce    = 4
	leastAtOnce   = 16 // a browser opens six to a host
	peerPerSecond = 16
	peerPatience  = 5 * time.Second // for which a connection waits
	// waitingOfTotal is the part of all connections that may wait.
	waitingOfTotal = 4
)

// newPeers is how often a peer may open a connection.
func newPeers(limits ConnectionLimits) *budget.Rate {
	return budget.NewRate(float64(limits.PerPeer)/peerPerSecond, max(leastAtOnce, limits.PerPeer/peerAtOnce), peerPatience)
}

// Listen makes the listener of the public server from one of the system's. It must be closed.
func (s *Server) Listen(listener net.Listener) net.Listener {
	a := &arrivals{
		Listener: listener, connections: s.connections, ready: make(chan arrival), closed: make(chan struct{}), waiting: map[net.Conn]*time.Timer{},
	}
	a.end = sync.OnceFunc(a.stop)
	a.done.Go(a.run)
	return a
}

// Accept implements net.Listener.
func (a *arrivals) Accept() (net.Conn, error) {
	select {
	case next := <-a.ready:
		return next.conn, next.err
	case <-a.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Who waits is cut off.
func (a *arrivals) Close() error {
	err := a.Listener.Close()
	a.end()
	a.done.Wait()
	return err
}

func (a *arrivals) stop() {
	close(a.closed)
	a.mu.Lock()
	defer a.mu.Unlock()
	for conn, timer := range a.waiting {
		if timer.Stop() {
			a.done.Done()
			_ = conn.Close() // nobody has it
		}
	}
	a.waiting = nil
}

func (a *arrivals) run() {
	began, n := time.Now(), 0
	for {
		conn, err := a.Listener.Accept()
		if err != nil {
			if !a.hand(arrival{err: err}) {
				return
			}
			continue
		}
		a.admit(conn)
		if n++; n == arrivalsAtOnce {
			time.Sleep(arrivalsEach - time.Since(began)) // while more wait in the kernel
			began, n = time.Now(), 0
		}
	}
}

// hand hands something to net/http, and is false once it takes nothing any more.
func (a *arrivals) hand(next arrival) bool {
	select {
	case a.ready <- next:
		return true
	case <-a.closed:
		if next.conn != nil {
			_ = next.conn.Close() // nobody has it
		}
		return false
	}
}

// admit hands a connection on, once it is time for another one of its peer.
func (a *arrivals) admit(conn net.Conn) {
	from := peerOf(conn)
	if !from.IsValid() || a.isProxy(from) {
		a.hand(arrival{conn: conn})
		return
	}
	wait, _, ok := a.pace.Reserve(from.String())
	switch {
	case !ok || wait > 0 && !a.wait(conn, wait):
		a.refuse(conn, "rate")
	case wait == 0:
		a.hand(arrival{conn: conn})
	}
}

// wait hands a connection on later. It is false if too many wait.
func (a *arrivals) wait(conn net.Conn, wait time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil || a.limits.Total > 0 && len(a.waiting) >= a.limits.Total/waitingOfTotal {
		return false
	}
	a.done.Add(1)
	a.waiting[conn] = time.AfterFunc(wait, func() {
		defer a.done.Done()
		a.mu.Lock()
		delete(a.waiting, conn)
		a.mu.Unlock()
		a.hand(arrival{conn: conn})
	})
	return true
}
