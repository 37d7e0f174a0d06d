package http

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
)

// reply is an error that is meant for the client as it stands.
type reply struct {
	code       int
	reason     metav1.StatusReason
	message    string
	retryAfter time.Duration // of 429 and 503
	challenge  string        // of 401
	allow      string        // of 405
	details    *metav1.StatusDetails
	list       metav1.ListMeta // of 410: a fresh continue token
	cause      error           // for the log
}

func (e *reply) Error() string { return e.message }
func (e *reply) Unwrap() error { return e.cause }

func badRequest(format string, args ...any) error {
	return &reply{code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, message: fmt.Sprintf(format, args...)}
}

func notFound(message string) error {
	return &reply{code: http.StatusNotFound, reason: metav1.StatusReasonNotFound, message: message}
}

func notAcceptable(message string) error {
	return &reply{code: http.StatusNotAcceptable, reason: metav1.StatusReasonNotAcceptable, message: message}
}

// forbidden is worded as the API server's own.
func forbidden(id auth.Identity, t target, verb string) error {
	message := t.qualified()
	if t.name != "" {
		message += fmt.Sprintf(" %q", t.name)
	}
	message += fmt.Sprintf(" is forbidden: User %q cannot %s resource %q in API group %q", id.Username, verb, t.resource, t.group)
	if t.namespace != "" {
		message += fmt.Sprintf(" in the namespace %q", t.namespace)
	} else {
		message += " at the cluster scope"
	}
	return &reply{
		code:    http.StatusForbidden,
		reason:  metav1.StatusReasonForbidden,
		message: message,
		details: &metav1.StatusDetails{Name: t.name, Group: t.group, Kind: t.resource},
	}
}

// replyTo is the one table from errors to what clients are told. What is not in it is a 500 that says nothing.
func replyTo(err error) *reply {
	var r *reply
	switch {
	case errors.As(err, &r):
		return r
	case errors.Is(err, auth.ErrNoCredentials), errors.Is(err, auth.ErrBadToken):
		return &reply{
			code:      http.StatusUnauthorized,
			reason:    metav1.StatusReasonUnauthorized,
			message:   auth.PublicText(err),
			challenge: auth.Challenge(err),
			cause:     err,
		}
	case errors.Is(err, auth.ErrTooLarge):
		return &reply{
			code: http.StatusRequestHeaderFieldsTooLarge, reason: metav1.StatusReasonRequestEntityTooLarge, cause: err,
			message: "the token has too many groups or claims for a cookie: send it with each request",
		}
	case errors.Is(err, auth.ErrLoginRefused):
		return &reply{
			code: http.StatusBadRequest, reason: metav1.StatusReasonBadRequest, cause: err,
			message: "this sign-in is not valid, or not any more: begin it anew",
		}
	case errors.Is(err, auth.ErrLoginDenied):
		return &reply{
			code: http.StatusForbidden, reason: metav1.StatusReasonForbidden, cause: err,
			message: "the identity provider did not sign you in",
		}
	case errors.Is(err, auth.ErrProviderAway):
		return unavailable("the identity provider does not answer as it should; try again in a moment", 2*time.Second, err)
	case errors.Is(err, auth.ErrUndecided), errors.Is(err, auth.ErrUnavailable):
		return unavailable("the caller's permissions cannot be checked at the moment", 2*time.Second, err)
	case errors.Is(err, cluster.ErrNoKind), errors.Is(err, cluster.ErrNoDocument), errors.Is(err, cache.ErrGone):
		return &reply{
			code:    http.StatusNotFound,
			reason:  metav1.StatusReasonNotFound,
			message: "the server could not find the requested resource",
			cause:   err,
		}
	case errors.Is(err, cache.ErrNotWatchable):
		return &reply{
			code:    http.StatusMethodNotAllowed,
			reason:  metav1.StatusReasonMethodNotAllowed,
			message: "the cluster does not let this kind be listed and watched, so the gateway cannot serve it",
			allow:   "OPTIONS",
			cause:   err,
		}
	case errors.Is(err, cache.ErrRefused):
		return unavailable("the gateway itself may not list and watch this kind: its operator has to grant it the verbs "+
			"list and watch", 30*time.Second, err)
	case errors.Is(err, cluster.ErrUnavailable), errors.Is(err, cache.ErrNotSynced), errors.Is(err, cache.ErrClosed):
		return unavailable("the cluster cannot be reached, or its objects are not all read yet", 2*time.Second, err)
	case errors.Is(err, budget.ErrTooMuch):
		return tooManyRequests("too many requests of this user are being answered already: try again later", err)
	case errors.Is(err, cache.ErrTooManyKinds):
		return tooManyRequests("too many kinds are being read: end what needs them, or try again later", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unavailable("the request was given up", time.Second, err)
	}
	return &reply{
		code:    http.StatusInternalServerError,
		reason:  metav1.StatusReasonInternalError,
		message: "internal error; the gateway's log has the cause under the request's id",
		cause:   err,
	}
}

func unavailable(message string, retryAfter time.Duration, cause error) *reply {
	return &reply{
		code:       http.StatusServiceUnavailable,
		reason:     metav1.StatusReasonServiceUnavailable,
		message:    message,
		retryAfter: retryAfter,
		cause:      cause,
	}
}

// onKubernetesPath reports whether a path is one of the Kubernetes API, of whatever cluster.
func onKubernetesPath(path string) bool {
	if rest, ok := strings.CutPrefix(path, "/clusters/"); ok {
		_, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return slices.Contains([]string{"api", "apis", "version", "openapi"}, first)
}

// status is the reply as Kubernetes' clients read it.
func (e *reply) status() metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		ListMeta: e.list,
		Status:   metav1.StatusFailure,
		Message:  e.message,
		Reason:   e.reason,
		Details:  e.details,
		Code:     int32(e.code),
	}
}

// head sends the status and what the reply says in headers.
func (e *reply) head(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	if e.challenge != "" {
		header.Set("WWW-Authenticate", e.challenge)
	}
	if e.allow != "" {
		header.Set("Allow", e.allow)
	}
	if e.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(e.retryAfter.Seconds())))
	}
	w.WriteHeader(e.code)
}

// write sends the reply as a metav1.Status, which kubectl prints, or elsewhere as application/problem+json (RFC 9457).
func (e *reply) write(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	var body any
	if onKubernetesPath(r.URL.Path) {
		header.Set("Content-Type", "application/json")
		body = e.status()
	} else {
		header.Set("Content-Type", "application/problem+json")
		body = struct {
			Type   string `json:"type"`
			Title  string `json:"title"`
			Status int    `json:"status"`
			Detail string `json:"detail"`
		}{"about:blank", http.StatusText(e.code), e.code, e.message}
	}
	e.head(w)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone is no error
}
