package inbox

import (
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// What is a part of another job is not told beside it, whosever it is; others of the same batch are.
func TestOfPartsNobodyIsTold(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		log := r.begun(t, "jobs.batch")
		r.write(t, log, func(b *store.Batch) {
			end(b, "ann", "part", "Running", "Failed")
			for _, job := range b.After {
				job.Parent = jobs.Ref{Resource: "jobsets.jobset.x-k8s.io", Name: "set", UID: "set"}
			}
			end(b, "ann", "whole", "Running", "Failed")
		})
		if titles := r.titles(t, "ann", all); len(titles) != 1 || titles[0] != "whole failed: Because" {
			t.Errorf("%q", titles)
		}
	})
}
