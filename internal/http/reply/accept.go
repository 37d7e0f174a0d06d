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
	FormNone   Form = iota // no form that the gateway has
	FormJSON               // whole objects
	FormEvents             // an event stream
	FormText               // lines of text
	// The forms of meta.k8s.io exist in v1 and in v1beta1.
	formTable
	formTableBeta
	formMetadata // PartialObjectMetadata, and its list
	formMetadataBeta
)

// String is the form's name in the audit log.
func (f Form) String() string {
	switch {
	case f == FormEvents:
		return "events"
	case f == FormText:
		return "text"
	case f.IsTable():
		return "table"
	case f.IsMetadata():
		return "metadata"
	}
	return "json"
}

// IsTable reports whether objects are answered as rows of a table.
func (f Form) IsTable() bool { return f == formTable || f == formTableBeta }

// IsMetadata reports whether only the metadata of objects is answered.
func (f Form) IsMetadata() bool { return f == formMetadata || f == formMetadataBeta }

// MetaVersion is the form's version of meta.k8s.io.
func (f Form) MetaVersion() string {
	if f == formTableBeta || f == formMetadataBeta {
		return "v1beta1"
	}
	return "v1"
}

// Negotiate chooses the form in which objects are answered.
func Negotiate(h http.Header) Form {
	if accept := h["Accept"]; len(accept) == 1 && accept[0] == "application/json" {
		return FormJSON // the usual case
	}
	return Choose(h, formOf)
}

// Choose finds the form that the client prefers among those that it accepts (RFC 9110, 12.5.1). The order is that of
// the API server: by quality, then named media types before ranges with *, then as in the header. Without an Accept
// header the form is JSON. Of returns the form of a media range; the zero value means none.
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

// AcceptsEvents reports whether the client accepts an event stream. Without an Accept header it does.
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
	named   bool // without a *
}

// acceptRanges reads the Accept header. It leaves out malformed ranges. If all are malformed, nothing is accepted.
// Without a header it returns nil.
func acceptRanges(h http.Header) []acceptRange {
	accept := strings.Join(h.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return nil
	}
	ranges := []acceptRange{{}} // not empty, since there is a header
	for part := range strings.SplitSeq(accept, ",") {
		// client-go asks for com.github.proto-openapi.spec.v2@v1.0+protobuf, although @ is not allowed there.
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

// WantsWatch reports whether a query asks for a watch. Like the API server, it takes every value but "false" and "0"
// for true.
func WantsWatch(query url.Values) bool {
	return query.Has("watch") && !slices.ContainsFunc([]string{"false", "0"}, func(no string) bool {
		return strings.EqualFold(query.Get("watch"), no)
	})
}
