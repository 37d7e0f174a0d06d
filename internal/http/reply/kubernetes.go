package reply

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Expired is a 410: what was asked for no longer exists. With the fresh continue token, unless it is "", the client
// can go on with a list.
func Expired(message, fresh string) error {
	return &Error{
		Code:    http.StatusGone,
		Reason:  metav1.StatusReasonExpired,
		Message: message,
		List:    metav1.ListMeta{Continue: fresh},
	}
}

// InvalidOption is a 422 for a list option, in the API server's own words.
func InvalidOption(field string, cause metav1.CauseType, message string) error {
	text := message
	if cause == metav1.CauseTypeForbidden {
		text = "Forbidden: " + message
	}
	return &Error{
		Code:    http.StatusUnprocessableEntity,
		Reason:  metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("ListOptions.meta.k8s.io \"\" is invalid: %s: %s", field, text),
		Details: &metav1.StatusDetails{
			Group: metav1.GroupName, Kind: "ListOptions",
			Causes: []metav1.StatusCause{{Type: cause, Message: text, Field: field}},
		},
	}
}

// TooLarge is Kubernetes' answer for a version that is yet to come. client-go's informers know how to handle it.
func TooLarge(asked, have uint64) error {
	return &Error{
		Code:       http.StatusGatewayTimeout,
		Reason:     metav1.StatusReasonTimeout,
		Message:    fmt.Sprintf("Timeout: Too large resource version: %d, current: %d", asked, have),
		RetryAfter: time.Second,
		Details: &metav1.StatusDetails{
			RetryAfterSeconds: 1,
			Causes:            []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}},
		},
	}
}

// BadSelector is a 400 for a selector in the API server's own words, which do not say whether it is of labels or of fields.
func BadSelector(err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	return BadRequest("%s", err)
}

// Warn repeats what the API server says to each request for a kind, such as that it is deprecated. kubectl shows it.
func Warn(w http.ResponseWriter, texts []string) {
	for _, text := range texts {
		if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			w.Header().Add("Warning", header)
		}
	}
}
