package rest

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/reply"
)

func TestRequestDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{RequestsPerUser: 1, Memory: budget.NewMemory(0)})
		release, err := h.takeRequest(t.Context(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		began := time.Now()
		err = h.Resource(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/pods", nil),
			auth.Identity{Username: "alice"}, access.Target{Version: "v1", Resource: "pods"}, reply.FormJSON)
		if code := reply.To(err).Code; code != http.StatusTooManyRequests || time.Since(began) != requestPatience {
			t.Errorf("%d after %v, want 429 after %v", code, time.Since(began), requestPatience)
		}
	})
}
