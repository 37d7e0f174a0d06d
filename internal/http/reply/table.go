package reply

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/oidc"
	"github.com/kubecast/kubecast/internal/auth/session"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
)

// To is the only table from errors to what clients are told. An error that is not in it becomes a 500 that says
// nothing.
func To(err error) *Error {
	var r *Error
	switch {
	case errors.As(err, &r):
		return r
	case errors.Is(err, auth.ErrNoCredentials), errors.Is(err, auth.ErrBadToken):
		return &Error{
			Code:      http.StatusUnauthorized,
			Reason:    metav1.StatusReasonUnauthorized,
			Message:   auth.PublicText(err),
			Challenge: auth.Challenge(err),
			Cause:     err,
		}
	case errors.Is(err, session.ErrTooLarge):
		return &Error{
			Code: http.StatusRequestHeaderFieldsTooLarge, Reason: metav1.StatusReasonRequestEntityTooLarge, Cause: err,
			Message: "the token has too many groups or claims for a cookie: send it with each request",
		}
	case errors.Is(err, oidc.ErrRefused):
		return &Error{
			Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Cause: err,
			Message: "this sign-in is not valid, or not any more: begin it anew",
		}
	case errors.Is(err, oidc.ErrDenied):
		return &Error{
			Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Cause: err,
			Message: "the identity provider did not sign you in",
		}
	case errors.Is(err, oidc.ErrProviderAway):
		return Unavailable("the identity provider does not answer as it should; try again in a moment", 2*time.Second, err)
	case errors.Is(err, auth.ErrUndecided), errors.Is(err, auth.ErrUnavailable):
		return Unavailable("the caller's permissions cannot be checked at the moment", 2*time.Second, err)
	case errors.Is(err, cluster.ErrNoKind), errors.Is(err, cluster.ErrNoDocument), errors.Is(err, cache.ErrNotServed):
		return &Error{
			Code:    http.StatusNotFound,
			Reason:  metav1.StatusReasonNotFound,
			Message: "the server could not find the requested resource",
			Details: &metav1.StatusDetails{}, // as at the API server
			Cause:   err,
		}
	case errors.Is(err, cache.ErrNotWatchable):
		return &Error{
			Code:    http.StatusMethodNotAllowed,
			Reason:  metav1.StatusReasonMethodNotAllowed,
			Message: "the cluster does not let this kind be listed and watched, so the gateway cannot serve it",
			Allow:   "OPTIONS",
			Cause:   err,
		}
	case errors.Is(err, cache.ErrVersions):
		return &Error{
			Code:    http.StatusMethodNotAllowed,
			Reason:  metav1.StatusReasonMethodNotAllowed,
			Message: "the resourceVersions of this kind are no numbers, so the gateway cannot serve it",
			Allow:   "OPTIONS",
			Cause:   err,
		}
	case errors.Is(err, cache.ErrRefused):
		return Unavailable("the gateway itself may not list and watch this kind: its operator has to grant it the verbs "+
			"list and watch", 30*time.Second, err)
	case errors.Is(err, cluster.ErrLogsRefused):
		return Unavailable("the gateway itself may not read logs: its operator has to grant it the verb get on pods/log", 30*time.Second, err)
	case errors.Is(err, cluster.ErrMeasurementsRefused):
		return Unavailable("the gateway itself may not read what nodes and pods use: its operator has to grant it the verb list on "+
			"nodes and pods of metrics.k8s.io", 30*time.Second, err)
	case errors.Is(err, cluster.ErrUnavailable), errors.Is(err, cache.ErrNotSynced), errors.Is(err, cache.ErrClosed):
		return Unavailable("the cluster cannot be reached, or its objects are not all read yet", 2*time.Second, err)
	case errors.Is(err, budget.ErrTooMuch):
		return TooManyRequests("too many requests of this user are being answered already: try again later", err)
	case errors.Is(err, cache.ErrTooManyKinds):
		return TooManyRequests("too many kinds are being read: end what needs them, or try again later", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Unavailable("the request was given up", time.Second, err)
	}
	return &Error{
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonInternalError,
		Message: "internal error; the gateway's log has the cause under the request's id",
		Cause:   err,
	}
}

// Level is the level at which a reply is logged. Faults of clients, and their leaving, are logged only at level
// debug. Failures of a cluster are warnings; only the gateway's own are errors.
func Level(r *http.Request, reply *Error) slog.Level {
	switch {
	case r.Context().Err() != nil, reply.Code < 500, reply.Code == http.StatusGatewayTimeout: // 504: a future version
		return slog.LevelDebug
	case reply.Code == http.StatusInternalServerError:
		return slog.LevelError
	}
	return slog.LevelWarn
}
