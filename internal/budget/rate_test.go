package budget

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhoComesTooOftenWaitsAndNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perSecond, burst, patience, coming = 10, 20, 2 * time.Second, 1000
		r := NewRate(perSecond, burst, patience)
		var done, refused atomic.Int64
		var asking sync.WaitGroup
		for range coming {
			asking.Go(func() {
				switch err := r.Wait(t.Context(), "mallory"); {
				case err == nil:
					done.Add(1)
				case errors.Is(err, ErrTooMuch):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if done.Load() != burst || refused.Load() != coming-burst-perSecond*2 {
			t.Errorf("at once %d were done and %d refused, want %d and %d", done.Load(), refused.Load(), burst, coming-burst-perSecond*2)
		}
		began := time.Now()
		if err := r.Wait(t.Context(), "alice"); err != nil || time.Since(began) > 0 {
			t.Errorf("somebody else: %v after %v", err, time.Since(began))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if done.Load() != burst+perSecond {
			t.Errorf("within a second %d were done, want %d", done.Load(), burst+perSecond)
		}
		asking.Wait()
		if done.Load() != burst+perSecond*2 {
			t.Errorf("in the end %d were done, want %d", done.Load(), burst+perSecond*2)
		}
	})
}

// Or a client that comes and goes would keep the user's others out.
func TestWhoStopsWaitingGivesTheTimeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRate(1, 1, 10*time.Second)
		if err := r.Wait(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if err := r.Wait(ctx, "alice"); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
		}
		began := time.Now()
		if err := r.Wait(t.Context(), "alice"); err != nil || time.Since(began) > time.Second {
			t.Errorf("%v after %v, want none within a second", err, time.Since(began))
		}
	})
}

func TestWhoHasRestedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRate(10, 20, time.Second)
		for i := range 100 * leastSweep {
			if err := r.Wait(t.Context(), fmt.Sprint("user-", i)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if len(r.users) > 2*leastSweep {
			t.Errorf("%d users are remembered, a dozen of whom have come within their rest", len(r.users))
		}
	})
}

func TestRateOfNoneIsNoLimit(t *testing.T) {
	r := NewRate(0, 0, 0)
	for range 1000 {
		if err := r.Wait(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
	}
}

// Who is known with the old rate has the new one, too.
func TestARateCanBeChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRate(1, 1, time.Minute)
		tries := func(what string, want ...time.Duration) {
			t.Helper()
			for _, wanted := range want {
				began := time.Now()
				if err := r.Wait(t.Context(), "alice"); err != nil || time.Since(began) != wanted {
					t.Errorf("%s: %v after %v, want %v", what, err, time.Since(began), wanted)
				}
			}
		}
		tries("one a second", 0, time.Second)
		r.Set(10, 3)
		tries("ten a second", 100*time.Millisecond, 100*time.Millisecond)
		time.Sleep(time.Hour)
		tries("after a rest", 0, 0, 0, 100*time.Millisecond)
		r.Set(0, 0)
		tries("any number", 0, 0, 0, 0, 0)
		r.Set(2, 1)
		tries("two a second", 0, 500*time.Millisecond)
	})
}
