package jobs

import (
	"fmt"
	"strings"
	"testing"
)

// explain lets others say why a job waits, one after another, as "source reason message", or "" for nobody.
func explain(t *testing.T, job *Job, all ...string) (_ *Job, changes int) {
	t.Helper()
	for i, text := range all {
		var why Reason
		if text != "" {
			parts := strings.SplitN(text, " ", 3)
			why = Reason{At: Time(1_000 * (i + 1)), Source: parts[0], Reason: parts[1], Message: parts[2]}
		}
		before := *job
		before.Reasons = append([]Reason(nil), job.Reasons...)
		if next := Explained(job, why); next != nil {
			if fmt.Sprint(before.Reasons) != fmt.Sprint(job.Reasons) || before.Reason != job.Reason {
				t.Fatal("the job before was modified")
			}
			job, changes = next, changes+1
		}
	}
	return job, changes
}

func reasons(j *Job) string {
	var all []string
	for _, r := range j.Reasons {
		all = append(all, fmt.Sprintf("%d %s %s %s", r.At/1_000, r.Source, r.Reason, r.Message))
	}
	return j.Reason + ": " + strings.Join(all, ", ")
}

// Reasons that alternate push out no others, the same one in other words is no other, and what is
// said twice changes nothing.
func TestAReasonIsKeptOnce(t *testing.T) {
	job, _ := life(t, says(Pending)...)
	got, changes := explain(t, job, "Workload Pending none", "Pod Unschedulable 0/1", "Pod Unschedulable 0/2", "Pod Unschedulable 0/2",
		"Pod ErrImagePull x", "Pod ImagePullBackOff y", "Pod ErrImagePull x", "")
	if want := ": 1 Workload Pending none, 2 Pod Unschedulable 0/2, 6 Pod ImagePullBackOff y, 7 Pod ErrImagePull x"; reasons(got) != want || changes != 7 {
		t.Errorf("%s after %d changes", reasons(got), changes)
	}
	if again, changes := explain(t, got, ""); changes != 0 || again != got {
		t.Error("nobody says anything, twice")
	}
	for i := range 30 {
		job, _ = explain(t, job, fmt.Sprintf("Pod R%d %s", i, strings.Repeat("ä", 2000)))
	}
	if len(job.Reasons) != maxReasons || job.Reason != "R29" || len(job.Message) > maxReason {
		t.Errorf("%s", reasons(job))
	}
}

// A reason goes on while the job waits, whatever waiting is called, and does not outlive that.
func TestAReasonLastsAsLongAsTheJobWaits(t *testing.T) {
	job, _ := life(t, says(Suspended)...)
	job, _ = explain(t, job, "Workload Pending none")
	job, _ = Next(job, Seen{Said: Said{State: Pending}, Version: 50})
	if job.Reason != "Pending" || job.Message != "none" {
		t.Errorf("waiting on: %s", reasons(job))
	}
	if _, changes := explain(t, job, "Workload Pending none"); changes != 0 {
		t.Error("what still holds was written again")
	}
	job, transition := Next(job, Seen{Said: Said{State: Running}, Version: 51})
	if job.Reason != "" || transition.Reason != "" || len(job.Reasons) != 1 {
		t.Errorf("running: %s", reasons(job))
	}
	inPart, changes := explain(t, job, "Pod Unschedulable 1 of 2 pods")
	if changes != 1 || inPart.Reason != "Unschedulable" {
		t.Errorf("a part of what runs waits: %s", reasons(inPart))
	}
	if after, _ := Next(inPart, Seen{Said: Said{State: Pending}, Version: 52}); after.Reason != "" {
		t.Errorf("a reason of a part outlives that the job runs: %s", reasons(after))
	}
	if ended, _ := Next(inPart, Seen{Said: Said{State: Failed}, Version: 52}); ended.Reason != "" {
		t.Errorf("a reason of a part outlives the job: %s", reasons(ended))
	} else if _, changes := explain(t, ended, "Pod OOMKilled m"); changes != 0 {
		t.Error("what has ended waits for something")
	}
	job, _ = Next(job, Seen{Said: Said{State: Suspended, Reason: "JobSuspended"}, Version: 52})
	if _, changes := explain(t, job, ""); changes != 0 || job.Reason != "JobSuspended" {
		t.Errorf("nobody says more than the job: %s", reasons(job))
	}
}
