package cluster_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/apitest"
)

// Once the API server is back, changes are known soon, however long and however often it was away. client-go by
// itself would wait for up to a minute.
func TestChangesAreKnownSoonAfterEachOutage(t *testing.T) {
	for name, fault := range map[string]*apitest.Fault{
		"nobody listens":        {Err: syscall.ECONNREFUSED},
		"connections break":     {Err: syscall.ECONNRESET},
		"a load balancer's 502": {Status: &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadGateway}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := apitest.New(apitest.Pods)
				api.Put("pods", "n/a")
				r, stop := inform(t, api, apitest.Pods)
				defer stop()
				for _, outage := range []time.Duration{2 * time.Second, 10 * time.Minute, 5 * time.Second, 40 * time.Second, time.Hour} {
					time.Sleep(3 * time.Minute) // client-go resets its backoff after two
					r.take()
					api.Intercept(func(*http.Request) *apitest.Fault { return fault })
					api.CutWatches()
					time.Sleep(outage)
					api.Intercept(nil)
					api.Put("pods", "n/a")
					back := time.Now()
					for known := false; !known && time.Since(back) < time.Hour; {
						time.Sleep(100 * time.Millisecond)
						synctest.Wait()
						told, _ := r.take()
						known = strings.Contains(strings.Join(told, " "), "update n/a@")
					}
					// The wait is neither longer than the outage was nor than eight seconds; lists may have to come
					// first.
					if late, most := time.Since(back), min(outage, 8*time.Second)+4*time.Second; late > most {
						t.Errorf("after %s without an API server a change was known after %s", outage, late)
					}
				}
			})
		})
	}
}
