package http

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/http/conn"
)

// arrivals is the public listener. It hands connections to net/http at a bounded rate, since net/http starts a
// goroutine for each at once. A few thousand goroutines that all want to run at the same moment would delay everybody
// who is being served. A peer that is no trusted proxy has a rate of its own besides. Its further connections wait, and
// cost no more than an open file each.
type arrivals struct {
	net.Listener
	*connections
	announcing []netip.Prefix // load balancers that say first where a connection comes from
	ready      chan arrival
	closed     chan struct{}
	end        func()
	done       sync.WaitGroup

	mu      sync.Mutex
	waiting map[net.Conn]*time.Timer // nil once the listener is closed
	unread  map[net.Conn]bool        // of load balancers, which have not said yet where they come from
}

type arrival struct {
	conn net.Conn
	err  error
}

const (
	arrivalsAtOnce = 16 // connections of any peers that are handed on in each arrivalsEach
	arrivalsEach   = time.Millisecond
	// A peer may open a peerAtOnce-th of the connections that it may have, and then a peerPerSecond-th each second.
	peerAtOnce      = 4
	leastAtOnce     = 16 // at least so many at once; a browser opens six to a host
	peerPerSecond   = 16
	peerLongestWait = 5 * time.Second // how long a connection waits at most
	// announcedWithin is how long a load balancer may take to say where a connection comes from.
	announcedWithin = 5 * time.Second
	// waitingOfTotal says how many connections may wait: a waitingOfTotal-th of all that may be open.
	waitingOfTotal = 4
)

// peerRate is the rate at which each peer may open connections, and how many at once.
func peerRate(limits ConnectionLimits) (perSecond float64, atOnce int) {
	return float64(limits.PerPeer) / peerPerSecond, max(leastAtOnce, limits.PerPeer/peerAtOnce)
}

func newPeerRate(limits ConnectionLimits) *budget.Rate {
	perSecond, atOnce := peerRate(limits)
	return budget.NewRate(perSecond, atOnce, peerLongestWait)
}

// Listen returns the public server's listener, on top of one of the system's. It must be closed.
func (s *Server) Listen(listener net.Listener) net.Listener {
	a := &arrivals{
		Listener: listener, connections: s.connections, announcing: s.opts.ProxyProtocol, ready: make(chan arrival), closed: make(chan struct{}), waiting: map[net.Conn]*time.Timer{}, unread: map[net.Conn]bool{},
	}
	a.end = sync.OnceFunc(a.stop)
	a.done.Go(a.run)
	return a
}

func (a *arrivals) Accept() (net.Conn, error) {
	select {
	case next := <-a.ready:
		return next.conn, next.err
	case <-a.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It closes connections that wait.
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
			_ = conn.Close() // it was handed to nobody
		}
	}
	a.waiting = nil
	for conn := range a.unread {
		_ = conn.Close()
	}
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
		if a.announces(conn) {
			a.readAnnouncement(conn)
		} else {
			a.admit(conn)
		}
		if n++; n == arrivalsAtOnce {
			time.Sleep(arrivalsEach - time.Since(began)) // further connections wait in the kernel meanwhile
			began, n = time.Now(), 0
		}
	}
}

// announces reports whether a connection is a load balancer's that says first where it comes from.
func (a *arrivals) announces(conn net.Conn) bool {
	if len(a.announcing) == 0 {
		return false
	}
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	return err == nil && contains(a.announcing, from.Addr())
}

// readAnnouncement admits a connection as one of where its load balancer says that it comes from. It does not wait for
// that.
func (a *arrivals) readAnnouncement(from net.Conn) {
	most := a.most()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil || most > 0 && len(a.unread) >= most/waitingOfTotal {
		a.refuse(from, "unannounced")
		return
	}
	a.unread[from] = true
	a.done.Go(func() {
		client, err := conn.ReadAnnouncement(from, announcedWithin)
		a.mu.Lock()
		delete(a.unread, from)
		a.mu.Unlock()
		if err != nil {
			a.log.Debug("a connection of a load balancer is refused", "address", from.RemoteAddr().String(), "error", err)
			a.refused.WithLabelValues(limitUnannounced).Inc()
			_ = from.Close()
			return
		}
		a.admit(client)
	})
}

// hand hands a connection or an error to net/http. It returns false once the listener is closed.
func (a *arrivals) hand(next arrival) bool {
	select {
	case a.ready <- next:
		return true
	case <-a.closed:
		if next.conn != nil {
			_ = next.conn.Close() // it was handed to nobody
		}
		return false
	}
}

// admit hands a connection on when its peer's rate permits, or refuses it.
func (a *arrivals) admit(conn net.Conn) {
	from := peerOf(conn)
	if !from.IsValid() || a.isProxy(from) {
		a.hand(arrival{conn: conn})
		return
	}
	wait, _, ok := a.rate.Reserve(from.String())
	switch {
	case !ok || wait > 0 && !a.wait(conn, wait):
		a.refuse(conn, "rate")
	case wait == 0:
		a.hand(arrival{conn: conn})
	}
}

// wait hands a connection on after a time. It returns false if too many wait already, or the listener is closed.
func (a *arrivals) wait(conn net.Conn, wait time.Duration) bool {
	most := a.most()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil || most > 0 && len(a.waiting) >= most/waitingOfTotal {
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
