package request

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// Address is the address for which a request counts: the last one in X-Forwarded-For, which the nearest proxy wrote,
// or else the connection's own.
func Address(r *http.Request) string {
	if forwarded := r.Header.Values("X-Forwarded-For"); len(forwarded) > 0 {
		_, hop := LastHop(forwarded[len(forwarded)-1])
		if address, ok := ParseHop(hop); ok {
			return address.String()
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// LastHop divides a list of hops, as X-Forwarded-For has it, before its last one.
func LastHop(hops string) (before, last string) {
	comma := strings.LastIndexByte(hops, ',')
	return hops[:max(comma, 0)], strings.Trim(hops[comma+1:], " \t")
}

// ParseHop reads the address of a hop. Some proxies write the client's port behind it, some write
// IPv6 in brackets, and some put it in quotes (RFC 7239, 6). The port is another one for each
// connection, and a zone means something only to the machine that wrote it, so neither is part of
// the address. A hop that is unknown or hidden on purpose has none.
func ParseHop(hop string) (address netip.Addr, ok bool) {
	if len(hop) >= 2 && hop[0] == '"' && hop[len(hop)-1] == '"' {
		hop = hop[1 : len(hop)-1]
	}
	text := hop
	if bracketed, is := strings.CutPrefix(hop, "["); is {
		inside, behind, closed := strings.Cut(bracketed, "]")
		if !closed || behind != "" && !isPort(behind) || !strings.Contains(inside, ":") {
			return netip.Addr{}, false
		}
		text = inside
	} else if colon := strings.IndexByte(hop, ':'); colon >= 0 && strings.LastIndexByte(hop, ':') == colon { // IPv6 has more than one
		if !isPort(hop[colon:]) {
			return netip.Addr{}, false
		}
		text = hop[:colon]
	}
	address, err := netip.ParseAddr(text)
	return address.Unmap().WithZone(""), err == nil
}

// isPort reports whether a text is a colon and a port, as a number or hidden (RFC 7239, 6.2 and 6.3).
func isPort(text string) bool {
	port := strings.TrimPrefix(text, ":")
	if port == text || port == "" {
		return false
	}
	if _, err := strconv.ParseUint(port, 10, 16); err == nil {
		return true
	}
	return port[0] == '_' && strings.Trim(port, "._-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
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
