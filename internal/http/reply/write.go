package reply

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OnKubernetesPath reports whether a path is one of the Kubernetes API, of whatever cluster.
func OnKubernetesPath(path string) bool {
	if rest, ok := strings.CutPrefix(path, "/clusters/"); ok {
		_, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return slices.Contains([]string{"api", "apis", "version", "openapi"}, first)
}

// Status is the reply as Kubernetes' clients read it.
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

// Head sends the status and what the reply says in headers.
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
		header.Set("Connection", "close") // over HTTP/2 net/http lets it end
	}
	if e.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())))
	}
	w.WriteHeader(e.Code)
}

// Write sends the reply as a metav1.Status, which kubectl prints, or elsewhere as application/problem+json (RFC 9457).
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
		}{"about:blank", http.StatusText(e.Code), e.Code, e.Message}
	}
	e.Head(w)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone is no error
}

// JSON answers a value that must not be kept.
func JSON(w http.ResponseWriter, body any) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(body) // a client that has gone is no error
	return nil
}

// MustJSON is a value as JSON; it is for values that are made of texts and numbers only, of which none can fail.
func MustJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// AnswerPolicy is the Content-Security-Policy of all that is no page: whatever an object holds, a browser that is led to
// show an answer loads, runs and frames nothing.
const AnswerPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// DiffersBy is what answers from the cache differ by, beside their address: the form, and who asks. A browser keeps them
// for the same caller only.
const DiffersBy = "Accept, Authorization, Cookie"
