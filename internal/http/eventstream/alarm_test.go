package eventstream

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// Ten thousand idle streams must not wake the process for each of their heartbeats.
func TestHeartbeatsOfManyStreamsAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams, interval = 5000, 15 * time.Second
		a := newAlarm()
		var mu sync.Mutex
		rings, wakes := map[time.Time]int{}, 0
		for range streams {
			e := &entry{index: -1}
			e.wake = func() {
				mu.Lock()
				defer mu.Unlock()
				rings[time.Now()]++
				wakes++
				a.set(e, a.gathered(interval))
			}
			a.set(e, a.gathered(between(interval/2, interval)))
			time.Sleep(time.Millisecond)
			defer a.remove(e)
		}
		began := time.Now()
		time.Sleep(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		took := time.Since(began)
		if most := int(took/tick) + 200; len(rings) > most || wakes < streams*int(took/interval) {
			t.Errorf("%d heartbeats woke the process %d times in %v", wakes, len(rings), took)
		}
		for at, n := range rings { // they stay spread
			if n > streams/10 {
				t.Fatalf("%d at once, at %v", n, at)
			}
		}
	})
}

// A time that rang before it had come, whatever the reason, rings again: a stream whose alarm is
// lost has no heartbeat, and does not end with its caller's token.
func TestAlarmThatRangEarlyRingsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAlarm()
		var rang atomic.Int32
		s := &schedule{alarm: a, entry: entry{wake: func() { rang.Add(1) }, index: -1}}
		at := time.Now().Add(time.Minute)
		s.set(at)
		s.set(at)
		s.entry.at = time.Now()
		a.ring()
		s.set(at)
		time.Sleep(time.Hour)
		if rang := rang.Load(); rang != 2 {
			t.Errorf("it rang %d times", rang)
		}
	})
}

// A wall clock may be set back, which must not put anything off; and forth, or stand still while a
// machine sleeps, which must not let a stream outlive its caller's token.
func TestDueTimesDoNotDependOnTheWallClock(t *testing.T) {
	hub := &Hub{alarm: newAlarm(), opts: Options{Times: Times{Heartbeat: time.Hour, MaxAge: time.Hour, Reauthorize: time.Hour}}}
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
