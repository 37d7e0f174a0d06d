package reply

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OnKubernetesPath reports whether a path belongs to the Kubernetes API of any cluster.
func OnKubernetesPath(path string) bool {
	if rest, ok := strings.CutPrefix(path, "/clusters/"); ok {
		_, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return slices.Contains([]string{"api", "apis", "version", "openapi"}, first)
}

// Status is the reply in the form that Kubernetes' clients read.
func (e *Error) Status() metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		ListMeta: e.List,
		Status:   metav1.StatusFailure,
		Message:  e.Message,
		Reason:   e.Reason,
		Details:  e.Details,
		Code:     int32(e.Code),
	}
}

// Head sends the reply's status and headers.
func (e *Error) Head(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	if e.Challenge != "" {
		header.Set("WWW-Authenticate", e.Challenge)
	}
	if e.Allow != "" {
		header.Set("Allow", e.Allow)
	}
	if e.Close {
		header.Set("Connection", "close") // over HTTP/2, net/http ends the connection then
	}
	if e.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())))
	}
	w.WriteHeader(e.Code)
}

// Write sends the reply: on Kubernetes' paths as a metav1.Status, which kubectl prints, elsewhere as
// application/problem+json (RFC 9457).
func (e *Error) Write(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	var body any
	if OnKubernetesPath(r.URL.Path) {
		header.Set("Content-Type", "application/json")
		body = e.Status()
	} else {
		header.Set("Content-Type", "application/problem+json")
		body = struct {
			Type   string `json:"type"`
			Title  string `json:"title"`
			Status int    `json:"status"`
			Detail string `json:"detail"`
			// As in a Status: one word, by which a program tells apart what has the same status.
			Reason metav1.StatusReason `json:"reason"`
		}{"about:blank", http.StatusText(e.Code), e.Code, e.Message, e.Reason}
	}
	e.Head(w)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone is no error
}

// JSON answers a value that must not be cached.
func JSON(w http.ResponseWriter, body any) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(body) // a client that has gone is no error
	return nil
}

// MustJSON encodes a value as JSON. It panics if that fails, so it is only for values made of texts and numbers, for
// which it cannot.
func MustJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// AnswerPolicy is the Content-Security-Policy of all answers that are not pages. If a browser is led to show such an
// answer, it loads, runs and frames nothing, whatever an object contains.
const AnswerPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// DiffersBy is the Vary header of answers from the cache: they depend on the form, the coding and
// the caller. A browser that keeps an answer reuses it only for the same caller.
const DiffersBy = "Accept, Accept-Encoding, Authorization, Cookie"
