package http

import (
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
)

const forwardedFor = "X-Forwarded-For"

// proxies are those whose X-Forwarded-For and X-Forwarded-Prefix are believed.
type proxies struct {
	trusted []netip.Prefix
	log     *slog.Logger

	mu         sync.Mutex
	unreadable map[saidBy]bool // of whom it was logged that what they write cannot be read
}

// saidBy is a header of a proxy.
type saidBy struct {
	proxy  netip.Addr
	header string
}

func newProxies(trusted []netip.Prefix, log *slog.Logger) *proxies {
	return &proxies{trusted: trusted, log: log, unreadable: map[saidBy]bool{}}
}

// trust replaces X-Forwarded-For by the client's address, as trusted proxies saw it. The header of any other peer is
// removed. Each proxy appends the address from which it was called, so the client's address is the last one that is no
// trusted proxy's.
func (p *proxies) trust(next http.Handler) http.Handler {
	if p.trusted == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if forwarded := r.Header.Values(forwardedFor); len(forwarded) > 0 {
			client := ""
			if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && p.has(peer.Addr()) {
				client = p.clientOf(peer.Addr(), strings.Join(forwarded, ","))
			}
			r.Header.Del(forwardedFor)
			if client != "" {
				r.Header.Set(forwardedFor, client)
			}
		}
		next.ServeHTTP(w, r)
	})
}

// clientOf returns the client's address in a list whose end a trusted proxy wrote; "" if there is
// none. If a hop cannot be read, the client counts as the proxy that wrote it: no text of a
// stranger's becomes an address.
func (p *proxies) clientOf(peer netip.Addr, hops string) (client string) {
	for hops != "" {
		before, hop := request.LastHop(hops)
		address, ok := request.ParseHop(hop)
		if !ok {
			p.tellUnreadable(peer, forwardedFor, "clients behind it count as one address", hop)
			return client
		}
		client = address.String()
		if !p.has(address) {
			return client
		}
		hops = before
	}
	return client
}

// unreadableMost bounds of how many proxies it is remembered that they were logged. They may be
// anybody in a trusted network.
const unreadableMost = 64

// tellUnreadable logs once of each proxy that a header of its cannot be read, and what follows from that.
func (p *proxies) tellUnreadable(peer netip.Addr, header, consequence, value string) {
	said := saidBy{peer, header}
	p.mu.Lock()
	known := p.unreadable[said] || len(p.unreadable) >= unreadableMost
	if !known {
		p.unreadable[said] = true
	}
	p.mu.Unlock()
	if !known {
		p.log.Warn("a trusted proxy sends an "+header+" that cannot be read; "+consequence, "proxy", peer.String(), "value", reply.Shortened(value))
	}
}

// isPeer reports whether a request comes from a trusted proxy.
func (p *proxies) isPeer(r *http.Request) bool { return p.trusted == nil || p.has(senderOf(r)) }

// senderOf is the address of who sent a request; invalid if it has none, as in tests.
func senderOf(r *http.Request) netip.Addr {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr()
}

// has reports whether an address is a trusted proxy's.
func (p *proxies) has(address netip.Addr) bool { return contains(p.trusted, address) }

// contains reports whether an address is in one of the networks.
func contains(networks []netip.Prefix, address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(address) })
}
