package reply

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Error is an error that is written for the client, and sent as it is.
type Error struct {
	Code       int
	Reason     metav1.StatusReason
	Message    string
	RetryAfter time.Duration // of 429 and 503
	Challenge  string        // of 401
	Allow      string        // of 405
	Details    *metav1.StatusDetails
	List       metav1.ListMeta // of 410: has a fresh continue token
	Close      bool            // the connection is closed after this answer
	Cause      error           // only for the log
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Cause }

// Why is all that is known of an error that is answered with e, for the log's one key for that: what is answered need not
// say the cause.
func (e *Error) Why(err error) error {
	if e.Cause == nil || strings.Contains(err.Error(), e.Cause.Error()) {
		return err
	}
	return fmt.Errorf("%w: %w", err, e.Cause)
}

// BadRequest is a 400 with a message made by fmt.Sprintf.
func BadRequest(format string, args ...any) error {
	return &Error{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: fmt.Sprintf(format, args...)}
}

// NoResource is a 404 in the API server's own words: the path names nothing.
func NoResource() error {
	return &Error{
		Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource",
		Details: &metav1.StatusDetails{},
	}
}

// NotFound is a 404.
func NotFound(message string) error {
	return &Error{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: message}
}

// Reasons of a 404 that Kubernetes does not have.
const (
	ReasonNotEnabled  metav1.StatusReason = "NotEnabled"  // this gateway is configured without it
	ReasonNotRecorded metav1.StatusReason = "NotRecorded" // there is a history, and none of this kind
	ReasonNotKept     metav1.StatusReason = "NotKept"     // of this job there is no such text
)

// NotFoundFor is a 404 with a reason of its own, for clients that do something else than where nothing is found.
func NotFoundFor(reason metav1.StatusReason, message string) error {
	return &Error{Code: http.StatusNotFound, Reason: reason, Message: message}
}

// NotAcceptable is a 406: the client accepts none of the forms that there are.
func NotAcceptable(message string) error {
	return &Error{Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable, Message: message}
}

// TooManyRequests is a 429; the client may try again after a second.
func TooManyRequests(message string, cause error) *Error {
	return &Error{
		Code:       http.StatusTooManyRequests,
		Reason:     metav1.StatusReasonTooManyRequests,
		Message:    message,
		RetryAfter: time.Second,
		Cause:      cause,
	}
}

// Unavailable is a 503; the client may try again after retryAfter.
func Unavailable(message string, retryAfter time.Duration, cause error) *Error {
	return &Error{
		Code:       http.StatusServiceUnavailable,
		Reason:     metav1.StatusReasonServiceUnavailable,
		Message:    message,
		RetryAfter: retryAfter,
		Cause:      cause,
	}
}

// Shortened is a client's own text as an error repeats it.
func Shortened(text string) string {
	const most = 60 // bytes
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
