package inbox

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// A title says why a job ended as its cause does, in few words whatever the controller wrote, and
// what waits in a digest has its cause, too. What was written before there were causes says what it
// said.
func TestATitleSaysWhyAJobEnded(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		log := r.begun(t, "jobs.batch")
		if _, err := r.Choose(t.Context(), "eva", Choice{States: []jobs.State{jobs.Failed, jobs.Cancelled, jobs.Queued, jobs.Succeeded}}); err != nil {
			t.Fatal(err)
		}
		because := map[string]*jobs.Cause{
			"oom":     {Text: "trainer was OOM-killed (exit 137) on gpu-07; 3 of 8 workers likewise", Reason: jobs.OOMKilled, Pods: 3},
			"stopped": {Text: "cancelled: PipelineRun was cancelled", Reason: "Cancelled"}, "stopped silently": {Text: "cancelled", Reason: "Cancelled"},
			"back": {Text: "preempted by team/urgent", Reason: jobs.Preempted}, "given up": {Text: "given up by its queue: too often", Reason: jobs.GivenUp}, "good": nil, "unknown": nil,
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
				if tr.To != jobs.Running {
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
		var told struct{ Cause *jobs.Cause }
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

// How a pod ended may be read after its job's end was told. An inbox then says why, on each page that is read and to whoever
// follows it from then on, and in digests; it says what it said of what is kept no more.
func TestWhatIsFoundOutLaterOfAnEndIsInItsNotification(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		log := r.begun(t, "jobs.batch")
		soon := 10 * time.Millisecond
		if _, err := r.Choose(t.Context(), "ann", Choice{Digest: &soon}); err != nil {
			t.Fatal(err)
		}
		log = r.write(t, log, func(b *store.Batch) {
			end(b, "eva", "train", "Running", "Failed")
			end(b, "ann", "other", "Running", "Failed")
			end(b, "ann", "another", "Running", "Failed")
		})
		if got, want := r.titles(t, "eva", all), []string{"train failed: Because"}; !slices.Equal(got, want) {
			t.Fatalf("%q, not %q", got, want)
		}
		digested := func() []Notification {
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
				if err := r.makeDigest(t.Context(), "ann"); err != nil {
					t.Fatal(err)
				}
				found, _, err := r.Page(t.Context(), "ann", all, 0, false, 10)
				if err != nil {
					t.Fatal(err)
				}
				if len(found) > 0 || time.Now().After(deadline) {
					return found
				}
			}
		}
		if found := digested(); len(found) != 1 {
			t.Fatalf("there are %d digests", len(found))
		}
		oom := &jobs.Cause{Text: "trainer was OOM-killed (exit 137) on gpu-07", Reason: jobs.OOMKilled, Pods: 1}
		version := log.Version
		r.write(t, log, func(b *store.Batch) {
			for _, uid := range []string{"u-train", "u-other"} {
				b.Causes = append(b.Causes, store.KnownCause{UID: uid, Version: version, To: jobs.Failed, Cause: oom})
			}
		})
		if got, want := r.titles(t, "eva", all), []string{"train failed: trainer was OOM-killed (exit 137) on gpu-07"}; !slices.Equal(got, want) {
			t.Errorf("a page: %q, not %q", got, want)
		}
		state, err := r.Snapshot(t.Context(), "eva", all, 1)
		if err != nil || len(state.Newest) != 1 || !strings.Contains(state.Newest[0].Title, "OOM-killed") {
			t.Errorf("who begins to follow is told %v, %v", state.Newest, err)
		}
		changes, err := r.After(t.Context(), "eva", all, state.Seq-1, 10)
		if err != nil || len(changes) != 1 || !strings.Contains(changes[0].Notification.Title, "OOM-killed") {
			t.Errorf("who follows is told %v, %v", changes, err)
		}
		if found := digested(); len(found) != 1 || len(found[0].Digest) != 2 || !strings.Contains(string(found[0].Digest[0])+string(found[0].Digest[1]), "OOM-killed") {
			t.Errorf("a digest says %v", found)
		}
		if err := r.store.Transact(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), "DELETE FROM transitions WHERE name = ?", "train")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if got, want := r.titles(t, "eva", all), []string{"train failed: Because"}; !slices.Equal(got, want) {
			t.Errorf("of what is kept no more: %q, not %q", got, want)
		}
	})
}

// A job that its queue has given up does not go on by itself. Its owner is told who wants to be
// told of failures, as everybody does who has not chosen otherwise.
func TestThatAJobWasGivenUpIsToldAsAFailureIs(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		log := r.begun(t, "jobs.batch")
		if _, err := r.Choose(t.Context(), "eva", Choice{States: []jobs.State{jobs.Succeeded}}); err != nil {
			t.Fatal(err)
		}
		r.write(t, log, func(b *store.Batch) {
			for _, owner := range []string{"ann", "eva"} {
				end(b, owner, "taken back from "+owner, "Running", "Queued")
				end(b, owner, "job of "+owner, "Running", "Queued")
			}
			for _, tr := range b.Transitions {
				if strings.HasPrefix(tr.Name, "job of") && tr.To == jobs.Queued {
					tr.Cause = &jobs.Cause{Text: "given up by its queue: too often", Reason: jobs.GivenUp}
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
