package eventstream

import (
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/scheduler"
)

// A wall clock may be set back, which must not put anything off; and forth, or stand still while a
// machine sleeps, which must not let a stream outlive its caller's token.
func TestDueTimesDoNotDependOnTheWallClock(t *testing.T) {
	hub := &Hub{alarm: scheduler.NewAlarm(), opts: Options{Times: Times{Heartbeat: time.Hour, MaxAge: time.Hour}}}
	ss := &session{hub: hub, id: auth.Identity{ExpiresAt: time.Now().Add(time.Hour).Round(0)}} // a token's end is a time of the wall clock
	ss.times = newSchedule(ss)
	defer ss.times.stop()
	for task, due := range ss.times.due {
		if !due.IsZero() && !strings.Contains(due.String(), " m=") {
			t.Errorf("task %d is due by the wall clock, at %v", task, due)
		}
	}
	now := time.Now()
	if reason := ss.onTime(now); reason != GoOn {
		t.Errorf("it ends before its time: %s", reason)
	}
	ss.times.ends = now.Add(-time.Second).Round(0) // as the clock says after it was set
	if reason := ss.onTime(now); reason != endExpired {
		t.Errorf("the stream outlives its token: %q", reason)
	}
}
