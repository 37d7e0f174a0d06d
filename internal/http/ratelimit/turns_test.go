package ratelimit

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
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

// Another gateway asks at once for all who are behind it.
func TestAnotherGatewayWaitsForNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, turns, gateway := time.Now(), NewTurns(1, New(0)), auth.Identity{Username: "edge", Gateway: true}
		for range 50 {
			if _, err := turns.Take(t.Context(), gateway.QuotaOwner()); err != nil || !began.Equal(time.Now()) {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
		}
	})
}
