package rules

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/pods"
)

// workloadFinished are the states that the reasons of a Workload's condition Finished mean; all
// others are successes. One that is out of sync is replaced.
var workloadFinished = map[string]jobs.State{
	"Failed":                  jobs.Failed,
	"AdmissionChecksRejected": jobs.Failed,
	"OutOfSync":               jobs.Cancelled,
	"OwnerNotFound":           jobs.Cancelled,
}

// deactivated is how the reasons begin with which Kueue gives a Workload up.
const deactivated = "Deactivated"

// workloadState is what Kueue says of what it manages, whatever kind that is of. A Workload stays
// admitted until the pods of an evicted one are gone. That pods run is said where Kueue waits for
// them (waitForPodsReady); elsewhere an admitted Workload is Pending until it has finished.
func workloadState(r reading) jobs.Said {
	evicted, podsReady := r.condition("Evicted"), r.condition("PodsReady")
	switch finished, admitted := r.condition("Finished"), r.condition("Admitted"); {
	case finished.Exists():
		state := jobs.Succeeded
		if other := workloadFinished[finished.Get("reason").Str]; other != "" {
			state = other
		}
		return saidBy(state, finished)
	case r.spec.Get("active").Type == gjson.False:
		if strings.HasPrefix(evicted.Get("reason").Str, deactivated) {
			return saidBy(jobs.Suspended, evicted)
		}
		return jobs.Said{State: jobs.Suspended, Reason: deactivated}
	case evicted.Exists():
		return saidBy(jobs.Queued, evicted)
	case admitted.Exists() && podsReady.Exists():
		return untimed(jobs.Running, podsReady)
	case admitted.Exists():
		return jobs.Said{State: jobs.Pending}
	}
	if why := pods.Condition(r.status, "QuotaReserved"); why.Get("status").Str == "False" {
		return untimed(jobs.Queued, why)
	}
	return jobs.Said{State: jobs.Submitted}
}
