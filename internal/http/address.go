package http

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

const forwardedFor = "X-Forwarded-For"

// trustProxies replaces X-Forwarded-For by the client's address, as trusted proxies saw it. The header of any other
// peer is removed. Each proxy appends the address from which it was called, so the client's address is the last one
// that is no trusted proxy's.
func (s *Server) trustProxies(next http.Handler) http.Handler {
	if s.opts.TrustedProxies == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if forwarded := r.Header.Values(forwardedFor); len(forwarded) > 0 {
			client := ""
			if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && s.isProxy(peer.Addr()) {
				client = s.clientOf(strings.Join(forwarded, ","))
			}
			r.Header.Del(forwardedFor)
			if client != "" {
				r.Header.Set(forwardedFor, client)
			}
		}
		next.ServeHTTP(w, r)
	})
}

// clientOf returns the client's address in a list whose end a trusted proxy wrote; "" if there is none.
func (s *Server) clientOf(forwarded string) (client string) {
	hops := strings.Split(forwarded, ",")
	for _, hop := range slices.Backward(hops) {
		address, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			return client // no trusted proxy wrote what stands before
		}
		client = address.Unmap().String()
		if !s.isProxy(address) {
			return client
		}
	}
	return client
}

func (s *Server) isProxy(address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	return slices.ContainsFunc(s.opts.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(address) })
}
