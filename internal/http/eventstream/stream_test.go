package eventstream

import (
	"testing"
	"time"
)

// TestRetriesAreSpread, or all clients would come back at the same moment.
func TestRetriesAreSpread(t *testing.T) {
	low, high := time.Hour, time.Duration(0)
	for range 1000 {
		d := between(2*time.Second, 4*time.Second)
		low, high = min(low, d), max(high, d)
	}
	if low < 2*time.Second || low > 2100*time.Millisecond || high > 4*time.Second || high < 3900*time.Millisecond {
		t.Errorf("from %v to %v", low, high)
	}
	if between(5, 5) != 5 || between(7, 5) != 7 {
		t.Error("an empty range")
	}
}
