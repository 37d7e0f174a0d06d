package cluster

import (
	"net/http"
	"testing"
	"time"
)

// A gateway's clock is set right by the API server's answers to within what these say, whatever
// they are late by; clocks that agree are left alone; and one that is set is noticed by the next
// answer.
func TestAPIServersTimeIsKnownFromItsAnswers(t *testing.T) {
	var c clock
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	answer := func(ahead, there, back time.Duration) {
		sent := now
		now = now.Add(there + back)
		date := sent.Add(there + ahead).Truncate(time.Second)
		c.learn(sent, now, http.Header{"Date": {date.Format(http.TimeFormat)}})
		now = now.Add(137 * time.Millisecond)
	}
	check := func(ahead, within time.Duration) {
		t.Helper()
		if got := c.ahead(); (got - ahead).Abs() > within {
			t.Errorf("%v ahead, not %v", got, ahead)
		}
	}
	c.learn(now, now, http.Header{"Date": {"soon"}})
	check(0, 0)
	for range 20 {
		answer(0, time.Millisecond, time.Second)
		check(0, 0)
	}
	for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		answer(ahead, 2*time.Second, time.Millisecond)
		check(ahead, 3*time.Second+time.Millisecond)
		for range 20 {
			answer(ahead, time.Millisecond, time.Millisecond)
		}
		check(ahead, 150*time.Millisecond)
	}
	now = now.Add(keepBounds)
	for range 20 { // drift
		answer(-10*time.Minute-200*time.Millisecond, time.Millisecond, time.Millisecond)
	}
	check(-10*time.Minute-200*time.Millisecond, 150*time.Millisecond)
}
