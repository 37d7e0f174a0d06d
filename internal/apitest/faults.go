package apitest

import (
	"net/http"
	"slices"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is what happens to a request instead of an answer.
type Fault struct {
	Hang   bool           // nothing, until there is another fault or none, or the client has gone
	Status *metav1.Status // answered, unless it is nil
	Later  int            // with Status: after how many seconds the client shall try again; 0: that is not said
	Err    error          // breaks the connection
	Body   string         // answered as the whole body, with status 200
}

// Interception decides what happens to a request. Nil lets it pass. It may be asked more than once of one that hangs.
type Interception func(*http.Request) *Fault

// Everything names all requests. What is said of a resource or an endpoint goes before it.
const Everything = ""

// SecretDetail is part of the text of every error that the API server answers. No client may ever see it.
const SecretDetail = "detail-of-the-inside"

// Intercept lets a function decide what happens to each request. A nil function lets all of them pass.
func (a *API) Intercept(f Interception) { a.intercept(Everything, f) }

// Answer is Intercept for a resource, or another endpoint.
func (a *API) Answer(what string, f Interception) { a.intercept(what, f) }

// Fail answers the requests for a resource, for another endpoint (discovery, reviews, logs,
// documents), or for Everything with a status; 0 ends that. Open watches go on; see CutWatches.
func (a *API) Fail(what string, code int) {
	if code == 0 {
		a.intercept(what, nil)
		return
	}
	a.intercept(what, func(*http.Request) *Fault { return Refuse(code) })
}

// Hang leaves requests without an answer until Fail is called with 0, or the client has gone.
func (a *API) Hang(what string) {
	a.intercept(what, func(*http.Request) *Fault { return &Fault{Hang: true} })
}

// Away makes the API server refuse connections, or accept them again.
func (a *API) Away(away bool) {
	if !away {
		a.Intercept(nil)
		return
	}
	a.Intercept(func(*http.Request) *Fault { return &Fault{Err: syscall.ECONNREFUSED} })
	a.CutWatches()
}

func (a *API) intercept(what string, f Interception) {
	a.change(func() {
		if a.faults[what] = f; f == nil {
			delete(a.faults, what)
		}
	})
}

// Refuse answers with an error.
func Refuse(code int) *Fault { return &Fault{Status: failure(code)} }

// Busy answers as an API server that has too much to do.
func Busy() *Fault { return &Fault{Status: failure(429), Later: 1} }

var reasons = map[int]metav1.StatusReason{
	400: metav1.StatusReasonBadRequest, 401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden,
	404: metav1.StatusReasonNotFound, 405: metav1.StatusReasonMethodNotAllowed, 410: metav1.StatusReasonExpired,
	422: metav1.StatusReasonInvalid, 429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError, 503: metav1.StatusReasonServiceUnavailable,
	504: metav1.StatusReasonTimeout,
}

func failure(code int) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  string(reasons[code]) + ": " + SecretDetail,
		Reason:   reasons[code],
		Code:     int32(code),
	}
}

// CutWatches breaks off the connections of all watches, or of those of one kind, in the middle of an event.
func (a *API) CutWatches(resource ...string) { a.endWatches(endCut, resource...) }

// EndWatches ends all watches as their time-out does.
func (a *API) EndWatches() { a.endWatches(endClean) }

// EndWatchesWithin ends all watches as their time-out does, after one more event. If others share that event's
// revision, the watches end in the midst of it.
func (a *API) EndWatchesWithin() { a.endWatches(endWithin) }

// ExpireWatches ends all watches with the error 410.
func (a *API) ExpireWatches() { a.endWatches(endExpired) }

func (a *API) endWatches(how ending, resources ...string) {
	a.change(func() {
		var kinds []*kind
		for _, name := range resources {
			kinds = append(kinds, a.find(name))
		}
		a.end(how, kinds...)
	})
}

// end ends the watches of some kinds, or all if none is named.
func (a *API) end(how ending, kinds ...*kind) {
	for w := range a.watches {
		if len(kinds) == 0 || slices.Contains(kinds, w.kind) {
			w.ending = how
		}
	}
}

// Watches returns how many watches are open.
func (a *API) Watches() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.watches)
}

// AwaitWatches waits until a kind has exactly so many watches, or done is closed. It reports whether it has them.
func (a *API) AwaitWatches(resource string, n int, done <-chan struct{}) bool {
	for {
		a.mu.Lock()
		k, changed, open := a.find(resource), a.changed, 0
		for w := range a.watches {
			if w.kind == k {
				open++
			}
		}
		a.mu.Unlock()
		if open == n {
			return true
		}
		select {
		case <-changed:
		case <-done:
			return false
		}
	}
}
