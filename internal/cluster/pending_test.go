package cluster

import (
	"testing"
	"time"
)

// Whatever Kueue takes to answer, it is left alone for four times as long at most, and a quick answer is asked for again soon.
func TestKueueIsLeftAloneTheMoreTheLongerItTakes(t *testing.T) {
	for took, most := range map[time.Duration]time.Duration{
		10 * time.Millisecond: pendingFresh, 200 * time.Millisecond: pendingFresh, 300 * time.Millisecond: 400 * time.Millisecond, time.Second: 4 * time.Second, 2 * time.Second: 8 * time.Second,
	} {
		if pause := pauseOf(took); pause > most || took >= time.Second && pause < most {
			t.Errorf("after %v, it is left alone for %v", took, pause)
		}
	}
}
