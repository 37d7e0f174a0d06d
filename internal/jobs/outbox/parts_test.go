package outbox

import (
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
)

// What is a part of another job is not told beside it.
func TestOfPartsNothingIsSent(t *testing.T) {
	each(t, []Route{{Name: "all", States: jobs.States()}}, func(t *testing.T, p *history) {
		part := seen("part", 2, false, jobs.Running, jobs.Failed)
		for _, job := range part.After {
			job.Parent = jobs.Ref{Resource: "jobsets.jobset.x-k8s.io", Name: "set", UID: "set"}
		}
		p.write(part)
		p.write(seen("whole", 3, false, jobs.Failed))
		if told := p.waiting("all"); len(told) != 1 || told[0].UID != "whole" {
			t.Errorf("%+v", told)
		}
	})
}
