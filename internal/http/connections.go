package http

import (
	"cmp"
	silence "container/list"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/request"
)

// connections bounds the connections that net/http has. Those of streams over HTTP/1.1 are not
// among them: they count for the total, and their streams have limits of their own. Streams over
// HTTP/2 are no connections, however many there are on one. Each connection needs a file of the
// process. The gateway's own connections to the API servers need files, too, and must not be left
// without.
//
// When the limit is reached, connections on which nothing is being answered give way to a newcomer: first those that
// never asked for anything, then idle ones of an address that has more of them than the newcomer's. So no address can
// take all connections for itself, not even a trusted proxy's.
type connections struct {
	rate    *budget.Rate          // the rate at which each peer may open connections
	isProxy func(netip.Addr) bool // a trusted proxy, which has many clients
	streams func() int            // the connections that streams have taken over
	refused *prometheus.CounterVec
	log     *slog.Logger

	mu     sync.Mutex
	limits ConnectionLimits
	open   map[net.Conn]*opened
	peers  map[netip.Addr]*peer
	toldAt time.Time // when the log last said that connections are refused
}

// ConnectionLimits bound the connections that are open at the same time; 0 means no limit.
type ConnectionLimits struct {
	PerPeer int // of one address that is no trusted proxy's
	Total   int // those that streams have taken over included
}

// opened is one connection.
type opened struct {
	conn    net.Conn
	from    netip.Addr
	serving int              // requests that are being answered
	silent  *silence.Element // in one of its peer's lists while it serves none
}

// peer is all connections of one address. Its lists begin with the connection that has been silent longest.
type peer struct {
	count  int
	unused silence.List // never asked for anything
	idle   silence.List
}

func newConnections(limits ConnectionLimits, isProxy func(netip.Addr) bool, streams func() int, refused *prometheus.CounterVec, log *slog.Logger) *connections {
	return &connections{
		limits: limits, rate: newPeerRate(limits), isProxy: isProxy, streams: streams, refused: refused, log: log,
		open: map[net.Conn]*opened{}, peers: map[netip.Addr]*peer{},
	}
}

// set changes the limits. Connections that are open stay.
func (c *connections) set(limits ConnectionLimits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limits = limits
	c.rate.Set(peerRate(limits))
}

// most is how many connections there may be; 0: any number.
func (c *connections) most() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limits.Total
}

// all is how many connections there are, those that streams have taken over included.
func (c *connections) all() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) + c.streams()
}

// count is an http.Server's ConnState.
func (c *connections) count(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if why, victim := c.add(conn); why != "" {
			c.refuse(victim, why)
		}
	case http.StateClosed, http.StateHijacked:
		c.mu.Lock()
		defer c.mu.Unlock()
		if o := c.open[conn]; o != nil {
			c.remove(o)
		}
	}
}

// track wraps the handler of all requests, to know on which connections requests are being answered.
func (c *connections) track(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := conn.Of(r)
		c.begin(from)
		defer c.end(from)
		next.ServeHTTP(w, r)
	})
}

func (c *connections) begin(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.open[conn]
	if o == nil { // it gave way
		return
	}
	if o.serving++; o.serving == 1 {
		c.peers[o.from].forget(o)
	}
}

func (c *connections) end(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.open[conn]
	if o == nil { // it was closed, or taken over for a stream
		return
	}
	if o.serving--; o.serving == 0 {
		o.silent = c.peers[o.from].idle.PushBack(o)
	}
}

// add counts a new connection. If that is one too many, it returns the limit, and the connection to close: this one or
// another.
func (c *connections) add(conn net.Conn) (why string, victim net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := peerOf(conn)
	mine := c.peers[from]
	if mine == nil {
		mine = &peer{}
		c.peers[from] = mine
	}
	mine.count++
	o := &opened{conn: conn, from: from}
	o.silent = mine.unused.PushBack(o)
	c.open[conn] = o
	out := o
	switch {
	case c.limits.PerPeer > 0 && mine.count > c.limits.PerPeer && from.IsValid() && !c.isProxy(from):
		why = limitPeer
	case c.limits.Total > 0 && len(c.open)+c.streams() > c.limits.Total:
		why = limitTotal
		out = cmp.Or(c.leastUseful(mine), o)
	default:
		return "", nil
	}
	// It is removed before it is closed. Otherwise it could be chosen again for the next newcomer.
	c.remove(out)
	return why, out.conn
}

// leastUseful returns the connection that gives way to a newcomer of a peer; nil if none does. It is one that never
// asked for anything, of the peer that has most connections among those that have such ones. If there is none, it is an
// idle one of the peer that has most connections, if these are more than the newcomer's peer has.
func (c *connections) leastUseful(mine *peer) *opened {
	var unused, idle *peer
	for _, p := range c.peers {
		mute := p.unused.Len()
		if p == mine {
			mute-- // the newcomer
		}
		if mute > 0 && (unused == nil || p.count > unused.count) {
			unused = p
		}
		if p.idle.Len() > 0 && p.count > mine.count && (idle == nil || p.count > idle.count) {
			idle = p
		}
	}
	for _, p := range []*peer{unused, idle} {
		if p != nil {
			return cmp.Or(p.unused.Front(), p.idle.Front()).Value.(*opened)
		}
	}
	return nil
}

func (c *connections) remove(o *opened) {
	delete(c.open, o.conn)
	p := c.peers[o.from]
	p.forget(o)
	if p.count--; p.count == 0 {
		delete(c.peers, o.from)
	}
}

// forget removes a connection from the lists of silent ones.
func (p *peer) forget(o *opened) {
	if o.silent != nil {
		p.unused.Remove(o.silent) // this does nothing if it is in the other list
		p.idle.Remove(o.silent)
		o.silent = nil
	}
}

// refuse closes a connection. net/http notices that, and calls count with the state closed. No answer is sent, since
// that would take a TLS handshake for each refused connection. It counts first: a client that sees the end finds it in
// the metrics.
func (c *connections) refuse(victim net.Conn, why string) {
	c.refused.WithLabelValues(why).Inc()
	if tcp := conn.TCPBelow(victim); tcp != nil {
		_ = tcp.Close() // fails if it is closed already; TLS' own Close would wait for a client that takes nothing
	} else {
		_ = victim.Close()
	}
	c.mu.Lock()
	now := time.Now()
	tell := now.Sub(c.toldAt) > time.Minute
	if tell {
		c.toldAt = now
	}
	c.mu.Unlock()
	if tell {
		c.log.Warn("connections are refused: too many are open", "limit", why, "address", victim.RemoteAddr().String())
	}
}

// peerOf returns the address from which a connection comes. For IPv6 it is the network, since a client usually has a
// whole one. It is the zero value if the connection does not come from a network.
func peerOf(conn net.Conn) netip.Addr {
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return request.NetworkOf(from.Addr())
}
