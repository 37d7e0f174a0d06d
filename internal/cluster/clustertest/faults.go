package clustertest

import (
	"net/http"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Intercept is what happens to a request instead of an answer.
type Intercept struct {
	Status *metav1.Status // answered, unless it is nil
	Err    error          // breaks the connection
	Body   string         // answered as the whole body, with status 200
}

// Intercept lets a function decide what happens to each request. A nil function, or a nil result, lets the request
// pass.
func (a *API) Intercept(f func(*http.Request) *Intercept) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.intercept = f
}

// Away makes the API server refuse connections, or accept them again.
func (a *API) Away(away bool) {
	if !away {
		a.Intercept(nil)
		return
	}
	a.Intercept(func(*http.Request) *Intercept { return &Intercept{Err: syscall.ECONNREFUSED} })
	a.CutWatches()
}

// Refuse answers that the request is forbidden.
func Refuse() *Intercept {
	return &Intercept{Status: status(http.StatusForbidden, metav1.StatusReasonForbidden)}
}

func status(code int32, reason metav1.StatusReason) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  string(reason),
		Reason:   reason,
		Code:     code,
	}
}

// CutWatches breaks off the connections of all watches, in the middle of an event.
func (a *API) CutWatches() { a.end(endCut) }

// EndWatches ends all watches as their time-out does.
func (a *API) EndWatches() { a.end(endClean) }

// EndWatchesWithin ends all watches as their time-out does, after one more event. If others share that event's
// revision, the watches end in the midst of it.
func (a *API) EndWatchesWithin() { a.end(endWithin) }

// ExpireWatches ends all watches with the error 410.
func (a *API) ExpireWatches() { a.end(endExpired) }

func (a *API) end(how ending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.watches {
		w.ending = how
	}
	a.tell()
}

// Watches returns how many watches are open.
func (a *API) Watches() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.watches)
}

// Paged sets whether the limits of lists are heeded, as when the API server's own cache is off.
func (a *API) Paged(paged bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paged = paged
}

// Stale makes the discovery of a group fail, or succeed again.
func (a *API) Stale(group string, stale bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stale[group] = stale
}

// Unknown answers that the API server does not have the path.
func Unknown() *Intercept {
	return &Intercept{Status: status(http.StatusNotFound, metav1.StatusReasonNotFound)}
}
