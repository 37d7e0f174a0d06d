package backoff

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// What failed for long is tried again now and then, and what failed once soon.
func TestWaitsDoubleUpToTheLongest(t *testing.T) {
	for range 100 {
		b := New(time.Second, 8*time.Second)
		for round := range 2 {
			for _, whole := range []time.Duration{1, 2, 4, 8, 8, 8, 8} {
				whole *= time.Second
				if got := b.Next(); got < whole/2 || got > whole {
					t.Fatalf("round %d: %s, not from %s to %s", round, got, whole/2, whole)
				}
			}
			b.Reset()
		}
		for range 5 {
			b.Next()
		}
		b.AtMost(2 * time.Second)
		for _, whole := range []time.Duration{2, 4, 8, 8} {
			if got := b.Next(); got > whole*time.Second {
				t.Fatalf("%s is longer than %d s", got, whole)
			}
		}
	}
}

// Replicas that lost the same database do not come back in the same moment.
func TestWaitsDiffer(t *testing.T) {
	least, most := time.Hour, time.Duration(0)
	for range 1000 {
		got := New(time.Second, time.Minute).Next()
		least, most = min(least, got), max(most, got)
	}
	if most-least < 400*time.Millisecond {
		t.Errorf("1,000 first waits are all from %s to %s", least, most)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b, began := New(10*time.Second, 10*time.Second), time.Now()
		if b.Wait(ctx) || time.Since(began) != time.Second {
			t.Errorf("it waited %s for a context of one second", time.Since(began))
		}
		if Pause(ctx, 0) {
			t.Error("nothing to wait for, and the context is over")
		}
		if !b.Wait(t.Context()) || time.Since(began) < 6*time.Second {
			t.Error("it did not wait to the end")
		}
	})
}

func TestNewsAreToldOnce(t *testing.T) {
	var n News
	a, b := errors.New("a"), errors.New("b")
	if n.Over() || !n.Is(a) || n.Is(errors.New("a")) || !n.Is(b) || !n.Is(a) || !n.Over() || n.Over() || !n.Is(a) {
		t.Error("an error was told twice, or not at all")
	}
	n.Over()
	for i, want := range []bool{true, false, true} { // from another port, and then from another database
		text := []string{"read tcp 10.0.0.1:40001->10.0.0.9:5432: reset", "read tcp 10.0.0.1:40002->10.0.0.9:5432: reset", "read tcp 10.0.0.1:40003->10.0.0.8:5432: reset"}[i]
		if n.Is(errors.New(text)) != want {
			t.Errorf("%s: news are %t", text, !want)
		}
	}
}

// What lasts is told again, ever more seldom, and errors that take turns are not told each time.
func TestTroubleThatLastsIsToldSeldom(t *testing.T) {
	for name, errs := range map[string][]error{"one": {errors.New("away")}, "in turns": {errors.New("refused"), errors.New("broken")}} {
		synctest.Test(t, func(t *testing.T) {
			var n News
			var told []time.Duration
			for began := time.Now(); time.Since(began) < 4*time.Hour; time.Sleep(time.Second) {
				if n.Is(errs[int(time.Since(began)/time.Second)%len(errs)]) {
					told = append(told, time.Since(began))
				}
			}
			if early := slices.IndexFunc(told, func(at time.Duration) bool { return at > 30*time.Second }); early > mostTurns || len(told) > mostTurns+10 || told[len(told)-1] < 3*time.Hour {
				t.Errorf("%s: told after %v", name, told)
			}
		})
	}
}
