package jobs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// How long a job waited and ran is what was seen of it, and nothing else: a job that never ran has
// no run time, and one that was found late has waited for nobody knows how long.
func TestWhatWasNotSeenIsNoWaitAndNoRun(t *testing.T) {
	over := func(seconds int) *Elapsed { return &Elapsed{Over: time.Duration(seconds) * time.Second} }
	late := func(state State, claims Time) Seen {
		return Seen{Said: Said{State: state, At: claims}, Late: true, Observed: 500_000}
	}
	replayed := func(state State, claims Time) Seen {
		return Seen{Said: Said{State: state, At: claims}, Replayed: true, Observed: 500_000}
	}
	failing := says(Submitted, Pending, Retrying, Pending, Retrying, Running, Failed)
	for i := 2; i < len(failing); i++ {
		failing[i].Failures = int64(i)
	}
	tooSoon := append(failing[:5:5], says(Failed)...)
	tooSoon[5].Failures = 5
	ended := func(reason string) Seen {
		return Seen{Said: Said{State: Failed, Reason: reason, Counts: Counts{Failures: 1}}}
	}
	for name, test := range map[string]struct {
		seen        []Seen // a second apart, of a job that was created at 1 s
		waited, ran *Elapsed
	}{
		"waits":                        {says(Submitted, Pending), &Elapsed{Since: 1_000}, nil},
		"runs":                         {says(Submitted, Pending, Running), over(2), &Elapsed{Since: 3_000}},
		"ran once":                     {says(Pending, Running, Succeeded), over(1), over(1)},
		"ran twice":                    {says(Pending, Running, Retrying, Running, Failed), over(1), over(2)},
		"runs again":                   {says(Pending, Running, Retrying, Running), over(1), &Elapsed{Over: time.Second, Since: 4_000}},
		"failed without having run":    {says(Submitted, Pending, Failed), over(2), nil},
		"deleted without having run":   {says(Submitted, Pending, Deleted), over(2), nil},
		"failed so, and is deleted":    {says(Submitted, Failed, Pending, Failed, Deleted), over(3), nil},
		"succeeded, nobody saw it run": {says(Submitted, Pending, Succeeded), nil, nil},
		"the same, deleted":            {says(Submitted, Pending, Succeeded, Deleted), nil, nil},
		"found running":                {[]Seen{late(Running, 100_000)}, nil, &Elapsed{Since: 100_000}},
		"found running, then ended":    {append([]Seen{late(Running, 0)}, Seen{Said: Said{State: Failed}, Observed: 501_000}), nil, over(1)},
		"found running after a while":  {append(says(Submitted), late(Running, 100_000)), nil, &Elapsed{Since: 100_000}},
		"found ended":                  {append(says(Submitted), late(Failed, 100_000)), nil, nil},
		"found deleted":                {append(says(Submitted), Seen{Deleted: true, Late: true, Observed: 500_000}), nil, nil},
		"found waiting":                {[]Seen{late(Pending, 0)}, &Elapsed{Since: 1_000}, nil},
		"found waiting, then seen run": {append([]Seen{late(Pending, 0)}, Seen{Said: Said{State: Running}, Observed: 501_000}), over(500), &Elapsed{Since: 501_000}},
		"seen to run, then missed":     {append(says(Submitted, Running), late(Failed, 100_000)), over(1), over(98)},
		"seen to run, then found gone": {append(says(Submitted, Running), Seen{Deleted: true, Late: true, Observed: 500_000}), over(1), nil},
		"the same, read later":         {append(says(Submitted, Running), Seen{Deleted: true, Replayed: true, Observed: 500_000}), over(1), nil},
		"found ended, of no claim":     {append(says(Submitted, Running), late(Failed, 0)), over(1), nil},
		"the same, and runs again":     {append(says(Submitted, Running), late(Retrying, 0), Seen{Said: Said{State: Running}, Observed: 501_000}), over(1), nil},
		"ended, then found gone":       {append(says(Submitted, Running, Failed), Seen{Deleted: true, Late: true, Observed: 500_000}), over(1), over(1)},
		"found ended, waits again":     {append(says(Submitted), late(Failed, 0), Seen{Said: Said{State: Pending}, Observed: 501_000}), &Elapsed{Since: 1_000}, nil},
		"the same, and then runs":      {append(says(Submitted), late(Failed, 0), Seen{Said: Said{State: Pending}, Observed: 501_000}, Seen{Said: Said{State: Running}, Observed: 502_000}), nil, &Elapsed{Since: 502_000}},
		"found ended, runs again":      {append(says(Submitted), late(Failed, 0), Seen{Said: Said{State: Running}, Observed: 501_000}), nil, &Elapsed{Since: 501_000}},
		"ended, waits, then runs":      {says(Submitted, Failed, Pending, Running), over(3), &Elapsed{Since: 4_000}},
		"succeeded unseen, then runs":  {says(Submitted, Succeeded, Pending, Running), nil, &Elapsed{Since: 4_000}},
		"fails too soon to be seen":    {tooSoon, nil, nil},
		"fails so, and waits":          {failing[:4], nil, nil},
		"fails so, and then runs":      {failing, nil, over(1)},
		"fails so once, for all":       {append(says(Submitted, Pending), ended("BackoffLimitExceeded")), nil, nil},
		"waits until its deadline":     {append(says(Submitted, Pending), ended("DeadlineExceeded")), over(2), nil},
		"its pods were deleted":        {says(Submitted, Pending, Retrying, Pending, Failed), over(4), nil},
		"read later, with its time":    {append(says(Submitted), replayed(Running, 100_000)), over(99), &Elapsed{Since: 100_000}},
		"read later, without":          {append(says(Submitted), replayed(Running, 0)), nil, &Elapsed{Since: 500_000}},
	} {
		job, _ := life(t, test.seen...)
		if diff := cmp.Diff(test.waited, job.Waited()); diff != "" {
			t.Error(name, "waited:", diff)
		}
		if diff := cmp.Diff(test.ran, job.Ran()); diff != "" {
			t.Error(name, "ran:", diff)
		}
	}
}

// An answer that is looked at later says the same.
func TestWhatGoesOnIsToldBySinceWhen(t *testing.T) {
	going := Elapsed{Over: 1500 * time.Millisecond, Since: 10_000}
	if text, err := going.MarshalJSON(); string(text) != `{"seconds":1.5,"since":"1970-01-01T00:00:10Z"}` || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	if got := going.At(12_000); got != 3500*time.Millisecond {
		t.Error(got)
	}
	if got := going.At(9_000); got != 1500*time.Millisecond {
		t.Error(got)
	}
	if text, _ := (Elapsed{Over: time.Second}).MarshalJSON(); string(text) != `{"seconds":1,"since":null}` {
		t.Errorf("%s", text)
	}
}
