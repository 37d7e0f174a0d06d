package reply

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// CheckOptions returns a 422 for options of a list or a watch that contradict each other, by the
// API server's own rules and in its words.
func CheckOptions(options *internalversion.ListOptions) error {
	faults := validation.ValidateListOptions(options, true)
	if len(faults) == 0 {
		return nil
	}
	status := apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", faults).Status()
	return &Error{Code: int(status.Code), Reason: status.Reason, Message: status.Message, Details: status.Details}
}

// Number reads an option that is a number, and not less than zero. What is none is a 400 in the API server's own words.
func Number(option, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return 0, BadRequest("%s", err)
	case n < 0:
		return 0, BadRequest("%s: %d is less than zero", option, n)
	}
	return n, nil
}

// CheckTimeout returns a 400 for a `timeout` that is no duration, in the API server's own words. A
// good one is the client's own: answers do not take as long.
func CheckTimeout(text string) error {
	if text == "" {
		return nil
	}
	if _, err := time.ParseDuration(text); err != nil {
		return BadRequest("invalid timeout specified in the request URL - %s", err)
	}
	return nil
}

// InvalidVersion is a 400 for a resourceVersion that is none, in the API server's own words.
func InvalidVersion(text string, err error) error {
	if _, number := strconv.ParseUint(text, 10, 64); number != nil {
		err = number
	}
	return BadRequest("invalid resource version: resourceVersion: Invalid value: %q: %s", text, err)
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

// BadSelector is a 400 for a selector in the API server's own words, which do not say whether it is
// of labels or of fields.
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
