package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// attempts are those of one request. While an API server answers "try again later" (429, or 5xx with a Retry-After),
// client-go repeats a request by itself, up to ten times, and tells nobody. A caller whose time is up meanwhile is left
// with a time-out, and an operator with an API server that seems not to answer. So the transport notes in the request's
// context what became of the newest attempt.
type attempts struct {
	mu     sync.Mutex
	status int       // of the newest answer; 0: there is none, or a later attempt failed without one
	of     string    // the history of which the newest answer is, as it says; see HistoryHeader
	began  time.Time // when the attempt began that is under way; zero: none is
}

type attemptsKey struct{}

// noteAttempts returns a context whose one request is noted.
func noteAttempts(ctx context.Context) (context.Context, *attempts) {
	a := &attempts{}
	return context.WithValue(ctx, attemptsKey{}, a), a
}

// attemptsOf returns those that are noted in a context, or nil, which notes nothing.
func attemptsOf(ctx context.Context) *attempts {
	a, _ := ctx.Value(attemptsKey{}).(*attempts)
	return a
}

func (a *attempts) begin() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began = time.Now()
}

// end takes the outcome of an attempt. One that ended with its request says nothing of the API server.
func (a *attempts) end(ctx context.Context, response *http.Response, err error) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began = time.Time{}
	switch {
	case err == nil:
		a.status, a.of = response.StatusCode, response.Header.Get(HistoryHeader)
	case ctx.Err() == nil:
		a.status = 0
	}
}

// history is what the newest answer says of the history that it is of; "" if it says nothing.
func (a *attempts) history() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of
}

// late says what is known of a request that takes longer than it should: the API server answers, but not as it should,
// or it does not answer.
func (a *attempts) late(after time.Duration) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status < 400 || !a.began.IsZero() && time.Since(a.began) >= after {
		return errLate
	}
	return &answerError{status: a.status}
}

// explain adds the newest answer to the error of a request that says no more than that the caller's time was up, and the
// status to one that is an answer.
func (a *attempts) explain(err error) error {
	if _, answered := err.(apierrors.APIStatus); answered {
		return withStatus(err)
	}
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status < 400 {
		return err
	}
	return &answerError{a.status, err}
}

// answerError says what the API server answers, besides what is known of it.
type answerError struct {
	status int
	err    error // may be nil
}

func (e *answerError) Error() string {
	text := fmt.Sprintf("the API server answers %d %s", e.status, http.StatusText(e.status))
	if e.err != nil {
		text += ": " + e.err.Error()
	}
	return text
}

func (e *answerError) Unwrap() error { return e.err }

// withStatus adds the status code to an error that is an answer of the API server: the text of such an answer often
// says neither that it is one nor which.
func withStatus(err error) error {
	var status apierrors.APIStatus
	var told *answerError
	if errors.As(err, &told) || !errors.As(err, &status) || status.Status().Code < 400 {
		return err
	}
	return &answerError{int(status.Status().Code), err}
}
