package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

var ends = []jobs.State{jobs.Succeeded, jobs.Failed}

func TestWhatATargetWantsIsAMessageAndNothingElseIs(t *testing.T) {
	each(t, []Route{
		{Name: "ends", States: ends},
		{Name: "elsewhere", States: ends, Namespaces: []string{"other"}},
		{Name: "east", States: ends, Clusters: []string{"east"}},
		{Name: "west", States: ends, Clusters: []string{"west"}},
	}, func(t *testing.T, p *history) {
		p.write(seen("u1", 2, false, jobs.Submitted, jobs.Running, jobs.Failed, jobs.Running, jobs.Succeeded))
		p.write(seen("u2", 3, true, jobs.Failed, jobs.Running, jobs.Succeeded)) // late: only where it stands now
		p.write(seen("u3", 4, true, jobs.Succeeded, jobs.Deleted))
		got, ids := map[string][]string{}, map[string]bool{}
		for _, target := range []string{"ends", "elsewhere", "east", "west"} {
			for _, m := range p.waiting(target) {
				var event Event
				if err := json.Unmarshal([]byte(m.Body), &event); err != nil {
					t.Fatal(err)
				}
				tr, job := event.Transition, event.Job
				if tr.Seq != fmt.Sprint(m.Seq) || tr.To != job.State || job.UID != m.UID || job.Cluster != "east" || job.Message != "<ä'\"\\>" || tr.Resource != "jobs.batch" {
					t.Errorf("the message %d says %+v", m.Seq, event)
				}
				if m.Due != 0 || m.Attempts != 0 || ids[m.ID] {
					t.Errorf("%+v", m)
				}
				ids[m.ID] = true
				got[target] = append(got[target], m.UID+" "+string(tr.To))
			}
		}
		want := []string{"u1 Failed", "u1 Succeeded", "u2 Succeeded"}
		if !slices.Equal(got["ends"], want) || !slices.Equal(got["east"], want) || len(got["elsewhere"])+len(got["west"]) > 0 {
			t.Errorf("got %v, want %v for the targets ends and east, and nothing for others", got, want)
		}
	})
}

// A job whose first message is refused must not be found again and again by what comes behind it.
func TestMessagesBehindAFailureAreNotDueBeforeIt(t *testing.T) {
	each(t, []Route{{Name: "a", States: ends}}, func(t *testing.T, p *history) {
		const now = 1000
		p.write(seen("u1", 2, false, jobs.Failed, jobs.Running, jobs.Failed, jobs.Running, jobs.Succeeded))
		p.write(seen("u2", 3, false, jobs.Failed))
		job := OrderingKey{p.log.ID, "u1"}
		first := must[*Message](t)(p.box.Oldest(t.Context(), "a", job))
		outcome := AttemptResult{Target: "a", MessageKey: first.MessageKey, Attempts: 1, Due: now + 500, Answer: "503"}
		if err := p.box.Record(t.Context(), []AttemptResult{outcome}, nil); err != nil {
			t.Fatal(err)
		}
		first = must[*Message](t)(p.box.Oldest(t.Context(), "a", job))
		if first.Attempts != 1 || first.Due != now+500 || first.Answer != "503" {
			t.Fatalf("%+v", first)
		}
		due := func(at jobs.Time) (found []string) {
			jobList, _, err := p.box.Due(t.Context(), "a", "n", at, MessageKey{}, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, j := range jobList {
				found = append(found, j.UID)
			}
			return found
		}
		if got := due(now); !slices.Equal(got, []string{"u1", "u1", "u2"}) {
			t.Errorf("due before what is behind was postponed: %v", got)
		}
		if err := p.box.Postpone(t.Context(), "a", first); err != nil {
			t.Fatal(err)
		}
		if got := due(now); !slices.Equal(got, []string{"u2"}) {
			t.Errorf("due: %v", got)
		}
		if got := due(now + 500); !slices.Equal(got, []string{"u1", "u1", "u1", "u2"}) {
			t.Errorf("due later: %v", got)
		}
		if err := p.box.Record(t.Context(), []AttemptResult{{Target: "a", MessageKey: first.MessageKey, Delivered: true}}, nil); err != nil {
			t.Fatal(err)
		}
		if second := must[*Message](t)(p.box.Oldest(t.Context(), "a", job)); second.Seq <= first.Seq {
			t.Errorf("after the first came %+v", second)
		}
	})
}

func TestADigestStaysAsItWasComposed(t *testing.T) {
	each(t, []Route{{Name: "a", States: ends, Digest: time.Minute}}, func(t *testing.T, p *history) {
		many := store.Batch{To: 2}
		for i := range 1200 {
			one := seen(fmt.Sprintf("u%04d", i), 2, false, jobs.Failed)
			many.Transitions, many.After, many.Jobs = append(many.Transitions, one.Transitions...), append(many.After, one.After...), append(many.Jobs, one.Jobs...)
		}
		p.write(many)
		now := jobs.At(time.Now())
		if must[bool](t)(p.box.Compose(t.Context(), "a", now)) {
			t.Fatal("composed before its time")
		}
		later := now + 61_000
		if !must[bool](t)(p.box.Compose(t.Context(), "a", later)) {
			t.Fatal("not composed in its time")
		}
		first := must[*Message](t)(p.box.Oldest(t.Context(), "a", Digests))
		var body struct{ Transitions []Event }
		if err := json.Unmarshal([]byte(first.Body), &body); err != nil {
			t.Fatal(err)
		}
		if n, rest := len(body.Transitions), len(p.waiting("a"))-1; n > digestMost || n+rest != int(p.log.Seq)-1 || len(first.Body) > digestBytes+1024 {
			t.Errorf("%d in %d bytes, and %d wait, of %d", n, len(first.Body), rest, p.log.Seq-1)
		}
		for i, e := range body.Transitions {
			if e.Transition.Seq != fmt.Sprint(i+2) {
				t.Fatalf("at %d stands %s", i, e.Transition.Seq)
			}
		}
		p.write(seen("after", 5000, false, jobs.Failed))
		again := must[*Message](t)(p.box.Oldest(t.Context(), "a", Digests))
		if *again != *first || !again.IsDigest() {
			t.Error("the digest is another one")
		}
		if err := p.box.Record(t.Context(), []AttemptResult{{Target: "a", MessageKey: first.MessageKey, Delivered: true}}, nil); err != nil {
			t.Fatal(err)
		}
		if !must[bool](t)(p.box.Compose(t.Context(), "a", later+61_000)) {
			t.Fatal("no second digest")
		}
		if second := must[*Message](t)(p.box.Oldest(t.Context(), "a", Digests)); second.ID == first.ID {
			t.Error("two digests with one id")
		}
	})
}

func TestDeadLettersAreSentAgainOnRequestAndRemovedInTheEnd(t *testing.T) {
	each(t, []Route{{Name: "a", States: ends}, {Name: "b", States: ends}}, func(t *testing.T, p *history) {
		p.write(seen("u1", 2, false, jobs.Failed))
		p.write(seen("u2", 3, false, jobs.Failed))
		for _, m := range p.waiting("a") {
			if err := p.box.Record(t.Context(), []AttemptResult{{Target: "a", MessageKey: m.MessageKey, Attempts: 10, Dead: true, Answer: "no"}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, target := range []string{"a", "b"} {
			must[TargetState](t)(p.box.Take(t.Context(), target, "url", "me", time.Minute))
		}
		dead := must[[]*Message](t)(p.box.Dead(t.Context(), "a", 10))
		if c := must[Counts](t)(p.box.Counts(t.Context(), "a")); c.Dead != 2 || c.Waiting != 0 || len(dead) != 2 || dead[0].Answer != "no" {
			t.Fatalf("%+v, %d", c, len(dead))
		}
		if n := must[int64](t)(p.box.Resend(t.Context(), "a", dead[0].ID, 0, 0)); n != 1 {
			t.Errorf("by id: %d", n)
		}
		if n := must[int64](t)(p.box.Resend(t.Context(), "a", "", dead[1].At, dead[1].At+1)); n != 1 {
			t.Errorf("by time: %d", n)
		}
		if c := must[Counts](t)(p.box.Counts(t.Context(), "a")); c.Dead != 0 || c.Waiting != 2 || c.Oldest == 0 {
			t.Errorf("%+v", c)
		}
		if n := must[int](t)(p.box.Expire(t.Context(), time.Now().Add(-time.Minute), 10)); n != 0 {
			t.Errorf("%d were removed too early", n)
		}
		if n := must[int](t)(p.box.Expire(t.Context(), time.Now().Add(time.Minute), 10)); n != 4 {
			t.Errorf("%d were removed, want 2 of each", n)
		}
	})
}

func TestOneReplicaSendsAndATargetThatIsOffStaysOff(t *testing.T) {
	each(t, nil, func(t *testing.T, p *history) {
		off := Switch{Off: 5, Reason: "410 Gone", Hold: 7}
		must[TargetState](t)(p.box.Take(t.Context(), "a", "url1", "me", time.Minute))
		if _, err := p.box.Take(t.Context(), "a", "url1", "you", time.Minute); !errors.Is(err, ErrHeld) {
			t.Errorf("you: %v", err)
		}
		if err := p.box.Record(t.Context(), nil, map[string]Switch{"a": off}); err != nil {
			t.Fatal(err)
		}
		if err := p.box.Release(t.Context(), "a", "me"); err != nil {
			t.Fatal(err)
		}
		if s := must[TargetState](t)(p.box.Take(t.Context(), "a", "url1", "you", time.Minute)); s.Switch != off || s.Holder != "you" || !s.Held {
			t.Errorf("%+v", s)
		}
		answers := map[string]LastAnswer{"a": {9, "said"}}
		if held := must[map[string]Switch](t)(p.box.Renew(t.Context(), "you", time.Minute, answers)); len(held) != 1 || held["a"] != off {
			t.Errorf("you have %v", held)
		}
		if held := must[map[string]Switch](t)(p.box.Renew(t.Context(), "me", time.Minute, nil)); len(held) != 0 {
			t.Errorf("I have %v", held)
		}
		if s := must[TargetState](t)(p.box.Take(t.Context(), "a", "url2", "you", time.Minute)); s.Switch != (Switch{}) || s.At != 9 {
			t.Errorf("with another URL: %+v", s)
		}
		if err := p.box.Record(t.Context(), nil, map[string]Switch{"a": off}); err != nil {
			t.Fatal(err)
		}
		if err := p.box.Enable(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if s := must[TargetState](t)(p.box.State(t.Context(), "a")); s.Switch != (Switch{}) {
			t.Errorf("enabled: %+v", s)
		}
	})
}
