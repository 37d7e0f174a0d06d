package http

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// form is one of the forms in which an answer can be given.
type form int

const (
	formNone form = iota // none that the gateway has
	formJSON
	formEvents
)

// negotiate chooses the form that the client prefers of those that it accepts (RFC 9110, 12.5.1): by quality, then in
// the client's order, as the API server does. Without an Accept header it is JSON.
func negotiate(h http.Header) form {
	accept := strings.Join(h.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return formJSON
	}
	best, quality := formNone, 0.0
	for part := range strings.SplitSeq(accept, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		if f := formOf(media, params); f != formNone && q > quality {
			best, quality = f, q
		}
	}
	return best
}

func formOf(media string, params map[string]string) form {
	switch {
	case media == "text/event-stream":
		return formEvents
	case params["as"] != "": // Table, PartialObjectMetadata
		return formNone
	case media == "application/json", media == "application/*", media == "*/*":
		return formJSON
	}
	return formNone
}
