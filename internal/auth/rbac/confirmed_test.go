package rbac

import (
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
)

func answer(code int32, reason metav1.StatusReason) func(*http.Request) *apitest.Fault {
	return func(*http.Request) *apitest.Fault {
		return &apitest.Fault{Status: &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason}}
	}
}

func (w *world) logged() string {
	synctest.Wait()
	return w.log.String()
}

// unconfirmedSeconds returns the metric's value.
func (w *world) unconfirmedSeconds() float64 {
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.Authorizer)
	families, err := registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "kubecast_rbac_unconfirmed_seconds" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	w.t.Fatal("there is no such metric")
	return 0
}

// A permission that was taken away while only bindings cannot be read, whatever the reason, counts for a minute and
// no longer.
func TestPermissionsThatCannotBeConfirmedDoNotCountForLong(t *testing.T) {
	for name, failure := range map[string]func(*http.Request) *apitest.Fault{
		"500":               answer(500, metav1.StatusReasonInternalError),
		"503":               answer(503, metav1.StatusReasonServiceUnavailable),
		"429":               answer(429, metav1.StatusReasonTooManyRequests),
		"403":               answer(403, metav1.StatusReasonForbidden),
		"404":               answer(404, metav1.StatusReasonNotFound),
		"connections break": func(*http.Request) *apitest.Fault { return &apitest.Fault{Err: syscall.ECONNRESET} },
		"it cannot be read": func(*http.Request) *apitest.Fault {
			return &apitest.Fault{Body: `{"items":[{"metadata":7}]}`}
		},
		"it is no Kubernetes": func(*http.Request) *apitest.Fault { return &apitest.Fault{Body: "<html>"} },
		"no answer at all": func(r *http.Request) *apitest.Fault {
			select { // the longest that an API server lets a request take
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
			return &apitest.Fault{Err: syscall.ECONNRESET}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world) {
				w.role("reader", readPods())
				w.bind("a", "b", "reader", user("jane"))
				told := make(chan struct{}, 8)
				defer w.Changes(joe, func() { told <- struct{}{} })()
				w.api.Intercept(func(r *http.Request) *apitest.Fault {
					if strings.HasSuffix(r.URL.Path, "/rolebindings") {
						return failure(r)
					}
					return nil
				})
				w.api.CutWatches()
				synctest.Wait()
				w.unbind("a", "b")
				began := time.Now()
				time.Sleep(45 * time.Second)
				w.must(jane, true)
				for len(told) == 0 && time.Since(began) < 75*time.Second {
					time.Sleep(time.Second)
				}
				if len(told) == 0 {
					t.Errorf("nobody who has a stream was told")
				}
				w.mustNot("rolebindings")
				if _, err := w.Authorize(w.t.Context(), jane, watch); !errors.Is(err, auth.ErrUnconfirmed) {
					t.Errorf("streams are not ended by %v", err)
				}
				if seconds := w.unconfirmedSeconds(); seconds < 60 {
					t.Errorf("the metric tells of %v s", seconds)
				}
				if !strings.Contains(w.logged(), "permissions do not count any more") {
					t.Error("the log does not tell")
				}
				w.api.Intercept(nil)
				time.Sleep(2 * time.Minute)
				w.must(jane, false)
				if err := w.Ready("test"); err != nil {
					t.Error(err)
				}
				w.bind("a", "b", "reader", user("jane"))
				w.must(jane, true)
			})
		})
	}
}

// While the API server is away, nobody can take a permission away there, and a restart must not lock all users out. A
// proxy may answer for the API server in the meantime. After a break the time counts from the beginning.
func TestPermissionsCountWhileTheClusterIsAway(t *testing.T) {
	for name, failure := range map[string]func(*http.Request) *apitest.Fault{
		"no connection":     func(*http.Request) *apitest.Fault { return &apitest.Fault{Err: syscall.ECONNREFUSED} },
		"a proxy says 503":  answer(503, metav1.StatusReasonServiceUnavailable),
		"a proxy says 502":  answer(502, metav1.StatusReasonInternalError),
		"its etcd is away":  answer(500, metav1.StatusReasonInternalError),
		"it has no time":    answer(429, metav1.StatusReasonTooManyRequests),
		"its answers break": func(*http.Request) *apitest.Fault { return &apitest.Fault{Err: syscall.ECONNRESET} },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(w *world) {
				w.role("reader", readPods())
				w.bind("a", "b", "reader", user("jane"))
				for range 3 {
					w.api.Intercept(failure)
					w.api.CutWatches()
					synctest.Wait()
					time.Sleep(10 * time.Minute)
					w.must(jane, true)
					w.api.Intercept(nil)
					time.Sleep(20 * time.Second) // until it is asked again
					w.must(jane, true)
				}
				if strings.Contains(w.logged(), "do not count") {
					t.Error(w.logged())
				}
			})
		})
	}
}

// If the API server comes and goes all the time, and bindings cannot be read whenever it is there, permissions count
// for a minute of the times when it is there.
func TestTimesWithoutTheClusterDoNotConfirmAnything(t *testing.T) {
	in(t, func(w *world) {
		w.role("reader", readPods())
		w.bind("a", "b", "reader", user("jane"))
		began := time.Now()
		w.api.Intercept(func(r *http.Request) *apitest.Fault {
			switch {
			case strings.HasSuffix(r.URL.Path, "/rolebindings"):
				return answer(500, metav1.StatusReasonInternalError)(r)
			case time.Since(began)%(20*time.Second) < 10*time.Second:
				return &apitest.Fault{Err: syscall.ECONNREFUSED}
			}
			return nil
		})
		w.api.CutWatches()
		synctest.Wait()
		w.unbind("a", "b")
		time.Sleep(45 * time.Second)
		w.must(jane, true)
		time.Sleep(3 * time.Minute)
		w.mustNot("rolebindings")
	})
}
