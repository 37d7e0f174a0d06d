package harness

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// fails is a test that fails without ending this one.
type fails struct {
	testing.TB
	failed bool
}

func (f *fails) Helper() {}

func (f *fails) Fatalf(string, ...any) {
	f.failed = true
	runtime.Goexit()
}

func TestAdvancingFailsOnceNothingArrivesAndAtAnEnd(t *testing.T) {
	for name, test := range map[string]struct {
		stops, succeeds time.Duration // after so long nothing is counted any more, and the check succeeds
		uncounted       bool
		fails           time.Duration // 0: it succeeds
	}{
		"slow, and it goes on":       {10 * time.Minute, 4 * time.Minute, false, 0},
		"it stops, and is over":      {time.Minute, 110 * time.Second, false, 0},
		"it stops":                   {time.Minute, 4 * time.Minute, false, 2 * time.Minute},
		"it goes on for ever":        {time.Hour, time.Hour, false, 5 * time.Minute},
		"nobody knows how much came": {time.Hour, 4 * time.Minute, true, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, f, over := time.Now(), &fails{TB: t}, make(chan struct{})
				go func() {
					defer close(over)
					Advancing(f, "all arrives", time.Minute, 5*time.Minute, func() (int, error) {
						if test.uncounted {
							return 1, errors.New("the database is away")
						}
						return int(min(time.Since(began), test.stops) / time.Millisecond), nil // more at each look
					}, func() error {
						if time.Since(began) < test.succeeds {
							return errors.New("not all")
						}
						return nil
					})
				}()
				<-over
				took := time.Since(began)
				if f.failed != (test.fails != 0) || !f.failed && took != test.succeeds || f.failed && (took < test.fails || took > test.fails+2*time.Second) {
					t.Errorf("it failed: %t, after %s", f.failed, took)
				}
			})
		})
	}
}
