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

// connections counts those that net/http has, streams over HTTP/1.1 excepted, which have limits of their own. Each needs a
// file of the process, and so do the gateway's own to the API servers, which must not be left without.
//
// Once there are as many as there may be, those on which nothing is being answered give way: those that never asked for
// anything, and then those of an address that has more than the newcomer's. So no address can take all of them for itself,
// a trusted proxy's neither.
type connections struct {
	limits  ConnectionLimits
	pace    *budget.Rate          // at which a peer may open them
	isProxy func(netip.Addr) bool // whose clients are many
	streams func() int            // that are open
	refused *prometheus.CounterVec
	log     *slog.Logger

	mu     sync.Mutex
	open   map[net.Conn]*opened
	peers  map[netip.Addr]*peer
	toldAt time.Time // that some are refused
}

// ConnectionLimits bound the connections that are open at once; 0 is no limit.
type ConnectionLimits struct {
	PerPeer int // of one address that is no trusted proxy's
	Total   int // streams included
}

// opened is one connection.
type opened struct {
	conn    net.Conn
	from    netip.Addr
	serving int              // requests
	silent  *silence.Element // in one of its peer's lists while it serves none
}

// peer is all connections of an address, the longest silent first.
type peer struct {
	count  int
	unused silence.List // never asked for anything
	idle   silence.List
}

func newConnections(limits ConnectionLimits, isProxy func(netip.Addr) bool, streams func() int, refused *prometheus.CounterVec, log *slog.Logger) *connections {
	return &connections{
		limits: limits, pace: newPeers(limits), isProxy: isProxy, streams: streams, refused: refused, log: log,
		open: map[net.Conn]*opened{}, peers: map[netip.Addr]*peer{},
	}
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

// track wraps the handler of all requests, by which is known which connections are of use.
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

// add counts one more. If that is one too many, it says why, and which one has to go: this one or another.
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
		why = "peer"
	case c.limits.Total > 0 && len(c.open)+c.streams() > c.limits.Total:
		why = "total"
		out = cmp.Or(c.leastUseful(mine), o)
	default:
		return "", nil
	}
	// Closing it is going to take a moment, in which another may come, for which it must not give way once more.
	c.remove(out)
	return why, out.conn
}

// leastUseful is what gives way to a newcomer of a peer, if anything does: of whoever has most, what never asked for anything,
// else what is idle and of another that has more than the newcomer's.
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

// forget takes a connection from the silent ones.
func (p *peer) forget(o *opened) {
	if o.silent != nil {
		p.unused.Remove(o.silent) // which does nothing if it is in the other list
		p.idle.Remove(o.silent)
		o.silent = nil
	}
}

// refuse closes a connection; net/http notices, and its state is closed. To answer would take a TLS handshake, of which
// there may be many.
func (c *connections) refuse(victim net.Conn, why string) {
	if tcp := conn.TCPBelow(victim); tcp != nil {
		_ = tcp.Close() // which fails if it is closed; TLS' own close would wait for one that takes nothing
	} else {
		_ = victim.Close()
	}
	c.refused.WithLabelValues(why).Inc()
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

// peerOf is the address that a connection comes from, or of IPv6 the network, all of which is one client's; none if it
// is not from a network.
func peerOf(conn net.Conn) netip.Addr {
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return request.NetworkOf(from.Addr())
}
