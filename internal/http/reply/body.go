package reply

import (
	"errors"
	"fmt"
	"net/http"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TooLong is the error for a part of a request that is larger than most, in bytes.
func TooLong(code int, what string, most int) error {
	return &Error{
		Code:    code,
		Reason:  metav1.StatusReasonRequestEntityTooLarge,
		Message: fmt.Sprintf("%s is larger than the %d bytes that are allowed", what, most),
	}
}

// Unreadable is the error for a request's body that could not be read.
func Unreadable(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return TooLong(http.StatusRequestEntityTooLarge, "the request's body", int(tooLarge.Limit))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Error{Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout, Message: "the request's body did not come in time", Cause: err}
	}
	return &Error{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: "the request's body cannot be read", Cause: err}
}
