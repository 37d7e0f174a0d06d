package scheduler

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Ten thousand idle streams must not wake the process for each of their heartbeats.
func TestHeartbeatsOfManyStreamsAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams, interval = 5000, 15 * time.Second
		a := NewAlarm()
		var mu sync.Mutex
		rings, wakes := map[time.Time]int{}, 0
		for range streams {
			e := &AlarmEntry{}
			e.Wake = func() {
				mu.Lock()
				defer mu.Unlock()
				rings[time.Now()]++
				wakes++
				a.Set(e, a.Gathered(interval))
			}
			a.Set(e, a.Gathered(interval/2+rand.N(interval/2)))
			time.Sleep(time.Millisecond)
			defer a.Remove(e)
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

// Each rings at the time that was set last, and at no other, whichever others have the same; and what was taken off leaves
// nothing that would wake the process. What happens comes from a seed.
func TestEachRingsAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		a := NewAlarm()
		entries := make([]*AlarmEntry, 30)
		var mu sync.Mutex
		due := map[*AlarmEntry]time.Time{}
		for i := range entries {
			e := &AlarmEntry{}
			e.Wake = func() {
				mu.Lock()
				defer mu.Unlock()
				if at, is := due[e]; !is || !time.Now().Equal(at) || !e.rang.Load() {
					t.Errorf("%d rings at %v, not at %v", i, time.Now(), at)
				}
				delete(due, e)
			}
			entries[i] = e
		}
		for range 5000 {
			e := entries[random.IntN(len(entries))]
			mu.Lock()
			if random.IntN(3) == 0 {
				a.Remove(e)
				delete(due, e)
			} else {
				at := time.Now().Add(time.Duration(1+random.IntN(8)) * tick)
				a.Set(e, at)
				if due[e] = at; e.rang.Load() {
					t.Fatal("it is set, and seems to have rung")
				}
			}
			mu.Unlock()
			if random.IntN(4) == 0 {
				time.Sleep(time.Duration(random.IntN(3)) * tick)
				synctest.Wait()
			}
			mu.Lock()
			for e, at := range due {
				if at.Before(time.Now()) {
					t.Fatalf("%v: has not rung since %v", e, at)
				}
			}
			if moments := len(a.heap); moments != len(a.moments) || moments > 9 || len(due) == 0 && moments > 0 {
				t.Fatalf("%d moments, %d by time, for %d that are set", moments, len(a.moments), len(due))
			}
			mu.Unlock()
		}
		for _, e := range entries {
			a.Remove(e)
		}
		if len(a.heap)+len(a.moments) > 0 {
			t.Errorf("%d moments are left", len(a.heap))
		}
	})
}

// A time that rang before it had come, whatever the reason, rings again: a stream whose alarm is
// lost has no heartbeat, and does not end with its caller's token.
func TestAlarmThatRangEarlyRingsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAlarm()
		var rang atomic.Int32
		e := &AlarmEntry{Wake: func() { rang.Add(1) }}
		at := time.Now().Add(time.Minute)
		a.Keep(e, at)
		a.Keep(e, at)
		e.moment.at = time.Now()
		a.ring()
		a.Keep(e, at)
		time.Sleep(time.Hour)
		if rang := rang.Load(); rang != 2 {
			t.Errorf("it rang %d times", rang)
		}
	})
}
