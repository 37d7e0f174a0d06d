package request

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Address is where a client is counted: what the nearest proxy says of it, else where the connection comes from.
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

// Network is what is counted as one stranger.
func Network(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return NetworkOf(ip).String()
	}
	return address
}

// NetworkOf is what belongs to one client: an address, or of IPv6 a /64.
func NetworkOf(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return address
}
