package request

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Address is the address for which a request counts: the last one in X-Forwarded-For, which the nearest proxy wrote,
// or else the connection's own.
func Address(r *http.Request) string {
	if forwarded := r.Header.Values("X-Forwarded-For"); len(forwarded) > 0 {
		hops := strings.Split(forwarded[len(forwarded)-1], ",")
		if ip := net.ParseIP(strings.TrimSpace(hops[len(hops)-1])); ip != nil {
			return ip.String()
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// Network is the network that counts as one stranger, for an address as a text.
func Network(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return NetworkOf(ip).String()
	}
	return address
}

// NetworkOf is the network that counts as one client: an IPv4 address, or a /64 of IPv6.
func NetworkOf(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return address
}
