package outbox

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// How a pod ended may be read after the end of its job was written for a target. An attempt after that says why.
func TestAnAttemptSaysWhatWasFoundOutSince(t *testing.T) {
	each(t, []Route{{Name: "single", States: ends}, {Name: "digest", States: ends, Digest: time.Minute}}, func(t *testing.T, p *history) {
		p.write(seen("u1", 2, false, jobs.Running, jobs.Failed))
		early := seen("u2", 3, false, jobs.Running, jobs.Failed)
		said := &jobs.Cause{Text: "BackoffLimitExceeded", Reason: "BackoffLimitExceeded"} // by the job, before its pod's end was read
		early.Transitions[1].Cause, early.After[1].Cause = said, said
		p.write(early)
		p.write(seen("u3", 4, false, jobs.Running, jobs.Succeeded))
		if !must[bool](t)(p.box.Compose(t.Context(), "digest", jobs.At(time.Now().Add(time.Hour)))) {
			t.Fatal("there is no digest")
		}
		causes := func(target string) (texts []string) {
			for _, m := range p.waiting(target) {
				before := m.ID
				if err := p.box.Explain(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				var body struct{ Transitions []Event }
				if !m.IsDigest() {
					body.Transitions = make([]Event, 1)
				}
				var into any = &body
				if !m.IsDigest() {
					into = &body.Transitions[0]
				}
				if err := json.Unmarshal([]byte(m.Body), into); err != nil || m.ID != before {
					t.Fatalf("%s: %v", m.Body, err)
				}
				for _, e := range body.Transitions {
					text := ""
					if e.Transition.Cause != nil && e.Job.Cause != nil && e.Job.Cause.Text == e.Transition.Cause.Text {
						text = e.Transition.Cause.Text
					}
					texts = append(texts, e.Transition.UID+" "+text)
				}
			}
			return texts
		}
		is := func(when string, want ...string) {
			t.Helper()
			for _, target := range []string{"single", "digest"} {
				if got := causes(target); !slices.Equal(got, want) {
					t.Errorf("%s, %s: %q, not %q", when, target, got, want)
				}
			}
		}
		is("at first", "u1 ", "u2 "+said.Text, "u3 ")
		oom := &jobs.Cause{Text: "trainer was OOM-killed (exit 137) on gpu-07", Reason: jobs.OOMKilled, Pods: 1}
		b := seen("u4", 5, false, jobs.Running)
		b.Causes = []store.KnownCause{{UID: "u1", Version: 2, To: jobs.Failed, Cause: oom}, {UID: "u2", Version: 3, To: jobs.Failed, Cause: oom}}
		p.write(b)
		is("when it is known", "u1 "+oom.Text, "u2 "+oom.Text, "u3 ")
		// Another cluster may have had the name, and have the same numbers.
		if err := p.db.Transact(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), "UPDATE transitions SET uid = ? WHERE uid = ?", "other", "u1")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		is("of another job of its number", "u1 ", "u2 "+oom.Text, "u3 ")
	})
}
