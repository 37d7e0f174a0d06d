package outbox

import (
	"testing"

	"github.com/kubecast/kubecast/internal/history"
)

// What is a part of another job is not told beside it.
func TestOfPartsNothingIsSent(t *testing.T) {
	each(t, []Target{{Name: "all", States: history.States()}}, func(t *testing.T, p *past) {
		part := seen("part", 2, false, history.Running, history.Failed)
		for _, job := range part.After {
			job.Parent = history.Ref{Resource: "jobsets.jobset.x-k8s.io", Name: "set", UID: "set"}
		}
		p.write(part)
		p.write(seen("whole", 3, false, history.Failed))
		if told := p.waiting("all"); len(told) != 1 || told[0].UID != "whole" {
			t.Errorf("%+v", told)
		}
	})
}
