package feed

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errAway = errors.New("away")

// asked runs a poller in virtual time, and returns when it asked, since it began.
func asked(t *testing.T, during time.Duration, isWanted func() bool, ask func(ctx context.Context) error, meanwhile func(p Poller)) (at []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, stop := context.WithTimeout(t.Context(), during)
		defer stop()
		p := NewPoller()
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.Run(ctx, isWanted, func(ctx context.Context) error {
				at = append(at, time.Since(began))
				return ask(ctx)
			})
		}()
		meanwhile(p)
		<-done
	})
	return at
}

func always() bool { return true }

func fine(context.Context) error { return nil }

// What this replica wrote is asked for at once, and what others wrote soon.
func TestANudgeIsAskedForAtOnce(t *testing.T) {
	at := asked(t, 600*time.Millisecond, always, fine, func(p Poller) {
		time.Sleep(100 * time.Millisecond)
		p.Nudge()
	})
	if len(at) != 4 || at[0] != 0 || at[1] != 100*time.Millisecond || at[2] != at[1]+pollEach || at[3] != at[2]+pollEach {
		t.Error(at)
	}
}

// A database that is away is asked less often.
func TestADatabaseThatIsAwayIsAskedLessOften(t *testing.T) {
	at := asked(t, AwayAfter/2, always, func(context.Context) error { return errAway }, func(Poller) {})
	if len(at) != 2 || at[1] != AwayAfter/3 {
		t.Error(at)
	}
}

// While nobody follows, nothing is asked; the first who does is answered at once.
func TestNothingIsAskedWhileNobodyFollows(t *testing.T) {
	var wanted atomic.Bool
	at := asked(t, time.Minute, wanted.Load, func(context.Context) error {
		wanted.Store(false)
		return nil
	}, func(p Poller) {
		time.Sleep(30 * time.Second)
		wanted.Store(true)
		p.Nudge()
	})
	if len(at) != 1 || at[0] != 30*time.Second {
		t.Error(at)
	}
}

// A failure that passes is told to nobody. One that lasts is told once, and so is its end.
func TestAShortOutageIsToldToNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o Outage
		if o.Take(time.Now(), errAway, true) || o.Err() != nil {
			t.Error("at once:", o.Err())
		}
		time.Sleep(AwayAfter / 2)
		if o.Take(time.Now(), nil, true) || o.Take(time.Now(), errAway, true) {
			t.Error("it has passed:", o.Err())
		}
		time.Sleep(AwayAfter / 2)
		if o.Take(time.Now(), errAway, true) || o.Err() != nil {
			t.Error("two failures that passed are not one that lasts:", o.Err())
		}
		time.Sleep(AwayAfter / 2)
		if !o.Take(time.Now(), errAway, true) || !errors.Is(o.Err(), errAway) {
			t.Error("it lasts:", o.Err())
		}
		if o.Take(time.Now(), errAway, true) {
			t.Error("it is told twice")
		}
		if !o.Take(time.Now(), nil, true) || o.Err() != nil {
			t.Error("it is over:", o.Err())
		}
	})
}

// Who is told nothing yet is told at once that nothing can be.
func TestAFirstQuestionThatFailsIsTold(t *testing.T) {
	var o Outage
	if !o.Take(time.Now(), errAway, false) || !errors.Is(o.Err(), errAway) {
		t.Error(o.Err())
	}
}
