package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// life plays what is seen of one job, a second apart, and gives its transitions and what it is at the end.
func life(t *testing.T, seen ...Seen) (*Job, []Transition) {
	t.Helper()
	var job *Job
	var all []Transition
	for i, s := range seen {
		s.ObjectID = ObjectID{UID: "u", Namespace: "n", Name: "j"}
		s.Version, s.Created = uint64(10+i), 1_000
		if s.Observed == 0 {
			s.Observed = Time(1_000 * (i + 1))
		}
		before := *cloneOf(job)
		next, transition := Next(job, s)
		if (next == nil) != (transition == nil) {
			t.Fatalf("%d: a job without a transition, or the reverse: %v, %v", i, next, transition)
		}
		if job != nil && cmp.Diff(before, *job) != "" {
			t.Fatalf("%d: the job before was modified", i)
		}
		if next != nil {
			job, all = next, append(all, *transition)
		}
	}
	return job, all
}

func cloneOf(j *Job) *Job {
	if j == nil {
		return &Job{}
	}
	clone := *j
	clone.Spent = map[State]time.Duration{}
	for k, v := range j.Spent {
		clone.Spent[k] = v
	}
	if j.Spent == nil {
		clone.Spent = nil
	}
	return &clone
}

func says(states ...State) (seen []Seen) {
	for _, s := range states {
		if s == Deleted {
			seen = append(seen, Seen{Deleted: true})
			continue
		}
		seen = append(seen, Seen{Said: Said{State: s}})
	}
	return seen
}

// Attempts count what leaves an end or a failure for what is no end; neither a deletion nor giving up is a new attempt.
func TestAttemptsCountWhatIsOpenedAgain(t *testing.T) {
	for _, test := range []struct {
		states []State
		want   string
	}{
		{[]State{Pending, Running, Succeeded, Deleted}, "Pending 1, Running 1, Succeeded 1, Deleted 1"},
		{[]State{Running, Retrying, Running, Retrying, Failed}, "Running 1, Retrying 1, Running 2, Retrying 2, Failed 2"},
		{[]State{Running, Retrying, Pending, Succeeded, Deleted}, "Running 1, Retrying 1, Pending 2, Succeeded 2, Deleted 2"},
		{[]State{Failed, Running, Succeeded, Suspended}, "Failed 1, Running 2, Succeeded 2, Suspended 3"},
		{[]State{Succeeded, Failed}, "Succeeded 1, Failed 1"},
		{[]State{Suspended, Suspended, "", Pending}, "Suspended 1, Pending 1"},
		{[]State{"", "", Running, ""}, "Submitted 1, Running 1"},
		{[]State{Deleted}, ""},
		{[]State{Running, Deleted, Deleted}, "Running 1, Deleted 1"},
	} {
		_, transitions := life(t, says(test.states...)...)
		var got []string
		from := State("")
		for _, tr := range transitions {
			if tr.From != from {
				t.Errorf("%v: %s comes from %q, not from %q", test.states, tr.To, tr.From, from)
			}
			from = tr.To
			got = append(got, fmt.Sprintf("%s %d", tr.To, tr.Attempt))
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%v: %v, not %s", test.states, got, test.want)
		}
	}
}

// A controller may tell only after it has suspended a job what of it had succeeded before. The job goes on with that.
func TestWhatIsToldToBeDoneWhileAJobIsHeldIsKept(t *testing.T) {
	for _, held := range []State{Queued, Suspended} {
		for done, want := range map[int64]int{0: 2, 3: 1} {
			var job *Job
			for i, said := range []Said{{State: Pending}, {State: Running}, {State: held}, {State: held, Counts: Counts{Done: done}}, {State: Pending, Counts: Counts{Done: done}}} {
				seen := Seen{ObjectID: ObjectID{UID: "u", Namespace: "n", Name: "j"}, Said: said, Version: uint64(10 + i), Observed: Time(1_000 * (i + 1))}
				if next, _ := Next(job, seen); next != nil {
					job = next
				}
			}
			if job.State != Pending || job.Attempt != want {
				t.Errorf("%s, %d done: %s, attempt %d", held, done, job.State, job.Attempt)
			}
		}
	}
}

// A job's times and durations are those of the log, whatever objects claim: no state begins before the one before it.
func TestTimesNeverGoBack(t *testing.T) {
	job, all := life(t,
		Seen{Observed: 500}, // by a clock that is behind: a job is not there before it was created
		Seen{Said: Said{State: Pending}, Observed: 2_000},
		Seen{Said: Said{State: Running}, Observed: 5_000},
		Seen{Said: Said{State: Failed, At: 4_000}, Observed: 9_000, Late: true}, // before it was seen to run
		Seen{Said: Said{State: Running}, Observed: 10_000},
		Seen{Said: Said{State: Succeeded, At: 12_000}, Observed: 13_000, Replayed: true},
		Seen{Deleted: true, Observed: 20_000, Said: Said{Reason: "of the state before", At: 13_000}},
	)
	var at []Time
	for _, tr := range all {
		at = append(at, tr.At)
	}
	if want := []Time{1_000, 2_000, 5_000, 5_000, 10_000, 12_000, 20_000}; cmp.Diff(want, at) != "" {
		t.Errorf("transitions at %v, not %v", at, want)
	}
	want := &Job{
		ObjectID: ObjectID{"u", "n", "j"}, State: Deleted, Since: 20_000, Attempt: 2, Version: 16, Requests: map[string]string{},
		Created: 1_000, Started: 5_000, RanUntil: 12_000, Ended: 12_000, Deleted: 20_000,
		Spent: map[State]time.Duration{Submitted: time.Second, Pending: 3 * time.Second, Running: 2 * time.Second, Failed: 5 * time.Second, Succeeded: 8 * time.Second},
	}
	if diff := cmp.Diff(want, job); diff != "" {
		t.Error(diff)
	}
}

// A controller whose clock is behind, or ahead, does not decide how long a job ran: what is seen as
// it happens is dated by one clock. What is found after the fact is dated by claims, and none is
// later than when it was found.
func TestClocksOfControllersAreNotBelieved(t *testing.T) {
	const minute = 60_000
	for _, skew := range []Time{-10 * minute, 10 * minute} {
		for _, late := range []bool{false, true} {
			job, all := life(t,
				Seen{Said: Said{State: Pending, At: 20*minute + skew}, Observed: 20 * minute},
				Seen{Said: Said{State: Running, At: 21*minute + skew}, Observed: 21 * minute, Late: late},
				Seen{Said: Said{State: Succeeded, At: 22*minute + skew}, Observed: 22 * minute, Late: late},
				Seen{Deleted: true, Observed: 23 * minute},
			)
			var whole Time
			for _, spent := range job.Spent {
				if spent < 0 {
					t.Errorf("clock %d: a span is negative: %v", skew, job.Spent)
				}
				whole += Time(spent.Milliseconds())
			}
			if whole != job.Deleted-all[0].At {
				t.Errorf("clock %d: spans are %d together, of %d", skew, whole, job.Deleted-all[0].At)
			}
			for _, tr := range all {
				if tr.At > tr.Observed {
					t.Errorf("clock %d: %s is dated %d, and was seen at %d", skew, tr.To, tr.At, tr.Observed)
				}
			}
			if ran := job.Spent[Running].Milliseconds(); !late && ran != minute {
				t.Errorf("clock %d: it ran for %d ms", skew, ran)
			}
		}
	}
	// A gateway whose clock is behind takes over from one whose clock is ahead.
	job, all := life(t, Seen{Said: Said{State: Running}, Observed: 20 * minute}, Seen{Said: Said{State: Failed}, Observed: 15 * minute}, Seen{Deleted: true, Observed: 21 * minute})
	if job.Spent[Running] != 0 || job.Ended != 20*minute || all[1].Observed < all[1].At || job.Spent[Failed].Milliseconds() != minute {
		t.Errorf("%+v, %+v", job, all)
	}
}

// An end that was opened again is no end.
func TestAJobThatIsOpenedAgainHasNotEnded(t *testing.T) {
	job, _ := life(t, says(Running, Succeeded, Running)...)
	if job.Ended != 0 || job.Started != 1_000 {
		t.Errorf("ended %v, started %v", job.Ended, job.Started)
	}
	if job, _ = life(t, says(Running, Deleted)...); job.Ended != 0 || job.Deleted == 0 {
		t.Errorf("a job that was deleted before its end: ended %v, deleted %v", job.Ended, job.Deleted)
	}
}

// A deletion says nothing of whose the job was: it stays theirs.
func TestADeletedJobStaysItsOwners(t *testing.T) {
	job, all := life(t, Seen{Said: Said{State: Running, Owner: "ann", Queue: "q", Requests: map[string]string{"cpu": "1"}}}, Seen{Deleted: true})
	if last := all[1]; job.Owner != "ann" || job.Queue != "q" || job.Requests["cpu"] != "1" || last.Owner != "ann" || last.Queue != "q" {
		t.Errorf("%+v, %+v", job, last)
	}
}

// What strangers write into objects fits any database, and no name becomes another one's.
func FuzzTextsFitDatabases(f *testing.F) {
	f.Add("a\x00b", strings.Repeat("ä", 600))
	f.Add("\xff", "x")
	f.Fuzz(func(t *testing.T, one, other string) {
		_, transition := Next(nil, Seen{Said: Said{State: Failed, Reason: one, Message: other, Owner: one, Queue: other, Requests: map[string]string{one: other}}})
		for _, s := range []string{transition.Reason, transition.Message, transition.Owner, transition.Queue} {
			if !utf8.ValidString(s) || strings.ContainsRune(s, 0) || len(s) > maxMessage {
				t.Errorf("%q", s)
			}
		}
		if transition.Owner != "" && transition.Owner != one || transition.Queue != "" && transition.Queue != other {
			t.Errorf("%q became %q, %q became %q", one, transition.Owner, other, transition.Queue)
		}
	})
}

// What was told twice makes no second transition, attempts and times only grow, and no time is counted twice.
func FuzzWhatIsToldTwiceMakesOneTransition(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, log []byte) {
		var job *Job
		for i, b := range log {
			s := Seen{Version: uint64(i), Observed: Time(i)}
			if n := int(b) % 9; n < 8 {
				s.State = States()[n]
				s.Deleted = s.State == Deleted
			}
			next, transition := Next(job, s)
			if next == nil {
				continue
			}
			if transition.To == transition.From {
				t.Fatalf("a transition from %s to itself", transition.To)
			}
			if again, _ := Next(next, s); again != nil {
				t.Fatalf("seen twice, %v makes two transitions", s)
			}
			if job != nil && (next.Since < job.Since || next.Attempt < job.Attempt || next.Attempt > job.Attempt+1) {
				t.Fatalf("%+v became %+v", job, next)
			}
			var spent time.Duration
			for _, d := range next.Spent {
				spent += d
			}
			if first := Time(0); job != nil && spent > time.Duration(next.Since-first)*time.Millisecond {
				t.Fatalf("%v in states until %v", spent, next.Since)
			}
			job = next
		}
	})
}
