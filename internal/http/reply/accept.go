package reply

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Form is one of the forms in which an answer can be given.
type Form int

const (
	FormNone   Form = iota // none that the gateway has
	FormJSON               // objects as they are
	FormEvents             // an event stream
	// Forms of meta.k8s.io in v1, and in v1beta1.
	formTable
	formTableBeta
	formMetadata // PartialObjectMetadata, and the list of it
	formMetadataBeta
)

// String is the form as the audit log names it.
func (f Form) String() string {
	switch {
	case f == FormEvents:
		return "events"
	case f.IsTable():
		return "table"
	case f.IsMetadata():
		return "metadata"
	}
	return "json"
}

// IsTable reports whether objects are rows of a table.
func (f Form) IsTable() bool { return f == formTable || f == formTableBeta }

// IsMetadata reports whether objects have nothing but metadata.
func (f Form) IsMetadata() bool { return f == formMetadata || f == formMetadataBeta }

// MetaVersion is the version of meta.k8s.io that a form is of.
func (f Form) MetaVersion() string {
	if f == formTableBeta || f == formMetadataBeta {
		return "v1beta1"
	}
	return "v1"
}

// Negotiate chooses the form in which objects are answered.
func Negotiate(h http.Header) Form {
	if accept := h["Accept"]; len(accept) == 1 && accept[0] == "application/json" {
		return FormJSON // most ask for it in these words
	}
	return Choose(h, formOf)
}

// Choose finds the form that the client prefers of those that it accepts (RFC 9110, 12.5.1): by quality, then what is
// named before what is meant by *, then in the client's order, as the API server does. Without an Accept header it is
// JSON. A form's zero value is none; of tells which one a media range is.
func Choose[F comparable](h http.Header, of func(media string, params map[string]string) F) (chosen F) {
	ranges := acceptRanges(h)
	if len(ranges) == 0 {
		return of("application/json", nil)
	}
	var none F
	best := acceptRange{}
	for _, r := range ranges {
		f := of(r.media, r.params)
		if f != none && (r.quality > best.quality || r.quality == best.quality && r.named && !best.named) {
			best, chosen = r, f
		}
	}
	if best.quality == 0 {
		return none
	}
	return chosen
}

// AcceptsEvents reports whether an event stream is among what the client accepts. Without an Accept header it is.
func AcceptsEvents(h http.Header) bool {
	ranges := acceptRanges(h)
	for _, r := range ranges {
		if r.quality > 0 && (r.media == "text/event-stream" || r.media == "text/*" || r.media == "*/*") {
			return true
		}
	}
	return len(ranges) == 0
}

// acceptRange is one of the media ranges of an Accept header.
type acceptRange struct {
	media   string
	params  map[string]string
	quality float64
	named   bool // has no *
}

// acceptRanges reads the header; what makes no sense in it is left out, and if all of it makes none it accepts nothing.
func acceptRanges(h http.Header) []acceptRange {
	accept := strings.Join(h.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return nil
	}
	ranges := []acceptRange{{}} // there is a header
	for part := range strings.SplitSeq(accept, ",") {
		// client-go asks for com.github.proto-openapi.spec.v2@v1.0+protobuf, though @ cannot stand there.
		media, params, err := mime.ParseMediaType(strings.ReplaceAll(part, "@", "."))
		if err != nil {
			continue
		}
		r := acceptRange{media: media, params: params, quality: 1, named: !strings.Contains(media, "*")}
		if text, ok := params["q"]; ok {
			if r.quality, err = strconv.ParseFloat(text, 64); err != nil || !(r.quality >= 0 && r.quality <= 1) {
				continue
			}
		}
		ranges = append(ranges, r)
	}
	return ranges
}

var metaForms = map[string]Form{
	"Table v1":                          formTable,
	"Table v1beta1":                     formTableBeta,
	"PartialObjectMetadata v1":          formMetadata,
	"PartialObjectMetadata v1beta1":     formMetadataBeta,
	"PartialObjectMetadataList v1":      formMetadata,
	"PartialObjectMetadataList v1beta1": formMetadataBeta,
}

func formOf(media string, params map[string]string) Form {
	switch {
	case media == "text/event-stream":
		return FormEvents
	case params["as"] != "":
		if media != "application/json" && media != "application/*" && media != "*/*" || params["g"] != "meta.k8s.io" {
			return FormNone
		}
		return metaForms[params["as"]+" "+params["v"]]
	case media == "application/json", media == "application/*", media == "*/*":
		return FormJSON
	}
	return FormNone
}

// WantsWatch reports whether a query asks for a watch, as the API server reads it: with everything but false.
func WantsWatch(query url.Values) bool {
	return query.Has("watch") && !slices.ContainsFunc([]string{"false", "0"}, func(no string) bool {
		return strings.EqualFold(query.Get("watch"), no)
	})
}
