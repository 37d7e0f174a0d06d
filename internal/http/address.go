package http

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

const forwardedFor = "X-Forwarded-For"

// trustProxies leaves in X-Forwarded-For nothing but the client's address, as the proxies that are trusted saw it; of
// anybody else the header is not believed. Each proxy appends the address that it was called from, so the client's is the
// last that is no trusted proxy's.
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

// clientOf is the client's address in a list that a trusted proxy wrote the end of; "" if there is none.
func (s *Server) clientOf(forwarded string) (client string) {
	hops := strings.Split(forwarded, ",")
	for _, hop := range slices.Backward(hops) {
		address, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			return client // what is before was written by somebody else
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
