package rules

import (
	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/history"
)

// kubeflowState is what the jobs of Kubeflow's training operator and of the MPI operator say. Running and Restarting
// remove each other. Restarting is True for a moment whenever a pod is replaced, whatever the others do; while some of
// them are active, the job runs on.
//
// A MPIJob is what its launcher is: while that waits for its next start, Running stays True and workers wait beside it.
func kubeflowState(r reading) history.Said {
	replicas := r.status.Get("replicaStatuses")
	active := sum(replicas, "active")
	launcher := replicas.Get("Launcher")
	said := history.Said{Counts: history.Counts{Failures: launcher.Get("failed").Int()}}
	if launcher.Exists() {
		active = launcher.Get("active").Int()
	}
	become := func(state history.State, why gjson.Result) history.Said {
		by := saidBy(state, why)
		by.Counts = said.Counts
		if state == history.Succeeded {
			if at := history.ParseTime(r.status.Get("completionTime").Str); at != 0 {
				by.At = at
			}
		}
		if state == history.Pending || state == history.Running || state == history.Retrying {
			by.At = 0
		}
		return by
	}
	created, running, restarting := r.condition("Created"), r.condition("Running"), r.condition("Restarting")
	switch succeeded, failed, suspended := r.condition("Succeeded"), r.condition("Failed"), r.condition("Suspended"); {
	case succeeded.Exists():
		return become(history.Succeeded, succeeded)
	case failed.Exists():
		return become(history.Failed, failed)
	case r.spec.Get("runPolicy.suspend").Bool(), suspended.Exists():
		return become(r.held(), suspended)
	case restarting.Exists() && (active == 0 || r.was.State == ""):
		return become(history.Retrying, restarting)
	case restarting.Exists():
		return said
	case running.Exists() && launcher.Exists() && active == 0 && said.Failures > r.was.Failures:
		return become(history.Retrying, gjson.Result{})
	case running.Exists() && r.was.State == history.Retrying && active == 0 && replicas.IsObject():
		return said
	case running.Exists():
		return become(history.Running, running)
	case created.Exists():
		return become(history.Pending, created)
	}
	said.State = history.Submitted
	return said
}
