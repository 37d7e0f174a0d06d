package ratelimit

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/http/reply"
)

func TestRequestDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(1, New(0))
		release, err := turns.Take(t.Context(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		began := time.Now()
		_, err = turns.Take(t.Context(), "alice")
		if code := reply.To(err).Code; code != http.StatusTooManyRequests || time.Since(began) != turnLongestWait {
			t.Errorf("%d after %v, want 429 after %v", code, time.Since(began), turnLongestWait)
		}
	})
}
