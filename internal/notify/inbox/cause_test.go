package inbox

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/store"
)

// A title says why a job ended as its cause does, in few words whatever the controller wrote, and
// what waits in a digest has its cause, too. What was written before there were causes says what it
// said.
func TestATitleSaysWhyAJobEnded(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		log := r.begun(t, "jobs.batch")
		if _, err := r.Choose(t.Context(), "eva", Choice{States: []history.State{history.Failed, history.Cancelled, history.Queued, history.Succeeded}}); err != nil {
			t.Fatal(err)
		}
		because := map[string]*history.Cause{
			"oom":     {Text: "trainer was OOM-killed (exit 137) on gpu-07; 3 of 8 workers likewise", Reason: history.OOMKilled, Pods: 3},
			"stopped": {Text: "cancelled: PipelineRun was cancelled", Reason: "Cancelled"}, "stopped silently": {Text: "cancelled", Reason: "Cancelled"},
			"back": {Text: "preempted by team/urgent", Reason: history.Preempted}, "given up": {Text: "given up by its queue: too often", Reason: history.GivenUp}, "good": nil, "unknown": nil,
		}
		r.write(t, log, func(b *store.Batch) {
			end(b, "eva", "oom", "Running", "Failed")
			end(b, "eva", "stopped", "Running", "Cancelled")
			end(b, "eva", "stopped silently", "Running", "Cancelled")
			end(b, "eva", "back", "Running", "Queued")
			end(b, "eva", "given up", "Running", "Queued")
			end(b, "eva", "good", "Running", "Succeeded")
			end(b, "eva", "unknown", "Running", "Failed")
			for _, tr := range b.Transitions {
				if tr.To != history.Running {
					tr.Cause = because[tr.Name]
				}
			}
		})
		want := []string{
			"unknown failed: Because", "good succeeded", "given up was given up by its queue: too often", "back is queued: preempted by team/urgent", "stopped silently was cancelled", "stopped was cancelled: PipelineRun was cancelled",
			"oom failed: trainer was OOM-killed (exit 137) on gpu-07; 3 of 8 workers likewise",
		}
		if got := r.titles(t, "eva", all); !slices.Equal(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
		found, _, err := r.Page(t.Context(), "eva", all, 0, false, 10)
		if err != nil {
			t.Fatal(err)
		}
		var told struct{ Cause *history.Cause }
		if err := json.Unmarshal(found[6].Transition, &told); err != nil || told.Cause == nil || told.Cause.Pods != 3 {
			t.Errorf("%s: %v", found[6].Transition, err)
		}
		if err := r.store.Transact(t.Context(), func(tx *store.Tx) error {
			var body string
			if err := tx.QueryRow(t.Context(), "SELECT body FROM inbox WHERE owner = ? AND name = ?", "eva", "unknown").Scan(&body); err != nil || !strings.Contains(body, `,"cause":null`) {
				t.Errorf("%s: %v", body, err)
			}
			_, err := tx.Exec(t.Context(), "UPDATE inbox SET body = ? WHERE owner = ? AND name = ?", strings.Replace(body, `,"cause":null`, "", 1), "eva", "unknown")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if got := r.titles(t, "eva", all); !slices.Equal(got, want) {
			t.Errorf("of before: %q, not %q", got, want)
		}
	})
}

// A job that its queue has given up does not go on by itself. Its owner is told who wants to be
// told of failures, as everybody does who has not chosen otherwise.
func TestThatAJobWasGivenUpIsToldAsAFailureIs(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		log := r.begun(t, "jobs.batch")
		if _, err := r.Choose(t.Context(), "eva", Choice{States: []history.State{history.Succeeded}}); err != nil {
			t.Fatal(err)
		}
		r.write(t, log, func(b *store.Batch) {
			for _, owner := range []string{"ann", "eva"} {
				end(b, owner, "taken back from "+owner, "Running", "Queued")
				end(b, owner, "job of "+owner, "Running", "Queued")
			}
			for _, tr := range b.Transitions {
				if strings.HasPrefix(tr.Name, "job of") && tr.To == history.Queued {
					tr.Cause = &history.Cause{Text: "given up by its queue: too often", Reason: history.GivenUp}
				}
			}
		})
		if got, want := r.titles(t, "ann", all), []string{"job of ann was given up by its queue: too often"}; !slices.Equal(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
		if got := r.titles(t, "eva", all); len(got) != 0 {
			t.Errorf("who wants none is told %q", got)
		}
	})
}
