package reply

import (
	"net/http"
	"strconv"
	"strings"
)

// Encoding chooses the content coding in which an answer is sent, among those that are offered, the
// best first; "" means that it is sent as it is. The client's q-values decide (RFC 9110, 12.5.3),
// and between equal ones the order of the offer. A client that names no coding gets none, although
// it could not complain about one.
//
// A client that refuses everything that is offered, and identity too, is answered without a coding: it can do more with
// that than with an error.
func Encoding(h http.Header, offered []string) (chosen string) {
	accepted := h["Accept-Encoding"]
	if len(accepted) == 0 || len(offered) == 0 {
		return ""
	}
	best := 0.0
	for _, coding := range offered {
		if quality, _ := qualityOf(accepted, coding); quality > best {
			best, chosen = quality, coding
		}
	}
	if identity, named := qualityOf(accepted, "identity"); named && identity > best {
		return ""
	}
	return chosen
}

// qualityOf is how much a client likes a coding, from 0 to 1, and whether it has said so by the coding's name. It
// allocates nothing, since each request is asked. What is malformed counts as refused.
func qualityOf(accepted []string, coding string) (quality float64, named bool) {
	for _, line := range accepted {
		for part := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(part, ";")
			name = strings.TrimSpace(name)
			switch {
			case strings.EqualFold(name, coding), coding == "gzip" && strings.EqualFold(name, "x-gzip"):
				return codingQuality(params), true
			case name == "*":
				quality = codingQuality(params)
			}
		}
	}
	return quality, false
}

func codingQuality(params string) float64 {
	params = strings.TrimSpace(params)
	if params == "" {
		return 1
	}
	name, text, ok := strings.Cut(params, "=")
	if !ok || !strings.EqualFold(strings.TrimSpace(name), "q") {
		return 0
	}
	quality, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(quality >= 0 && quality <= 1) {
		return 0
	}
	return quality
}
