package eventstream

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/scheduler"
)

// TestRetriesAreSpread, or all clients would come back at the same moment.
func TestRetriesAreSpread(t *testing.T) {
	low, high := time.Hour, time.Duration(0)
	for range 1000 {
		d := scheduler.Between(2*time.Second, 4*time.Second)
		low, high = min(low, d), max(high, d)
	}
	if low < 2*time.Second || low > 2100*time.Millisecond || high > 4*time.Second || high < 3900*time.Millisecond {
		t.Errorf("from %v to %v", low, high)
	}
	if scheduler.Between(5, 5) != 5 || scheduler.Between(7, 5) != 7 {
		t.Error("an empty range")
	}
}

// What were charged to nobody would be everybody's, and one user's streams could displace what others' share.
func TestWhatAStreamCompressesIsChargedToItsCaller(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
	ss := (&Hub{}).newSession(r, auth.Identity{Username: "ann"})
	if ss.out.body.QuotaOwner != "ann" {
		t.Errorf("it is charged to %q", ss.out.body.QuotaOwner)
	}
}
