package http

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// connections counts those that net/http has, streams over HTTP/1.1 excepted, which have limits of their own. Each needs a
// file of the process, and so do the gateway's own to the API servers, which must not be left without.
type connections struct {
	limits  ConnectionLimits
	isProxy func(netip.Addr) bool // whose clients are many
	streams func() int            // that are open
	refused *prometheus.CounterVec
	log     *slog.Logger

	mu     sync.Mutex
	total  int
	peers  map[netip.Addr]int // but for proxies
	toldAt time.Time          // that some are refused
}

// ConnectionLimits bound the connections that are open at once; 0 is no limit.
type ConnectionLimits struct {
	PerPeer int // of one address that is no trusted proxy's
	Total   int // streams included
}

// count is an http.Server's ConnState.
func (c *connections) count(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if why := c.add(peerOf(conn)); why != "" {
			c.refuse(conn, why)
		}
	case http.StateClosed, http.StateHijacked:
		c.remove(peerOf(conn))
	}
}

// add counts one more, and says why it is one too many.
func (c *connections) add(peer netip.Addr) (why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	if c.limits.Total > 0 && c.total+c.streams() > c.limits.Total {
		why = "total"
	}
	if peer.IsValid() && !c.isProxy(peer) {
		c.peers[peer]++
		if c.limits.PerPeer > 0 && c.peers[peer] > c.limits.PerPeer {
			why = "peer"
		}
	}
	return why
}

func (c *connections) remove(peer netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total--
	if c.peers[peer] > 0 {
		decrement(c.peers, peer)
	}
}

// refuse closes a connection; net/http notices, and its state is closed. To answer would take a TLS handshake, of which
// there may be many.
func (c *connections) refuse(conn net.Conn, why string) {
	_ = conn.Close() // which fails if it is closed
	c.refused.WithLabelValues(why).Inc()
	c.mu.Lock()
	now := time.Now()
	tell := now.Sub(c.toldAt) > time.Minute
	if tell {
		c.toldAt = now
	}
	c.mu.Unlock()
	if tell {
		c.log.Warn("connections are refused: too many are open", "limit", why, "address", conn.RemoteAddr().String())
	}
}

// peerOf is the address that a connection comes from, or of IPv6 the network, all of which is one client's; none if it
// is not from a network.
func peerOf(conn net.Conn) netip.Addr {
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return clientNetwork(from.Addr())
}

// clientNetwork is what belongs to one client: an address, or of IPv6 a /64.
func clientNetwork(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return address
}
