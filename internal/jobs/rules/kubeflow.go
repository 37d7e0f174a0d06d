package rules

import (
	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/jobs"
)

// kubeflowState is what the jobs of Kubeflow's training operator and of the MPI operator say. Running and Restarting
// remove each other. Restarting is True for a moment whenever a pod is replaced, whatever the others do; while some of
// them are active, the job runs on.
//
// A MPIJob is what its launcher is: while that waits for its next start, Running stays True and workers wait beside it.
func kubeflowState(r reading) jobs.Said {
	replicas := r.status.Get("replicaStatuses")
	active := sum(replicas, "active")
	launcher := replicas.Get("Launcher")
	said := jobs.Said{Counts: jobs.Counts{Failures: launcher.Get("failed").Int()}}
	if launcher.Exists() {
		active = launcher.Get("active").Int()
	}
	become := func(state jobs.State, why gjson.Result) jobs.Said {
		by := saidBy(state, why)
		by.Counts = said.Counts
		if state == jobs.Succeeded {
			if at := jobs.ParseTime(r.status.Get("completionTime").Str); at != 0 {
				by.At = at
			}
		}
		if state == jobs.Pending || state == jobs.Running || state == jobs.Retrying {
			by.At = 0
		}
		return by
	}
	created, running, restarting := r.condition("Created"), r.condition("Running"), r.condition("Restarting")
	switch succeeded, failed, suspended := r.condition("Succeeded"), r.condition("Failed"), r.condition("Suspended"); {
	case succeeded.Exists():
		return become(jobs.Succeeded, succeeded)
	case failed.Exists():
		return become(jobs.Failed, failed)
	case r.spec.Get("runPolicy.suspend").Bool(), suspended.Exists():
		return become(r.held(), suspended)
	case restarting.Exists() && (active == 0 || r.was.State == ""):
		return become(jobs.Retrying, restarting)
	case restarting.Exists():
		return said
	case running.Exists() && launcher.Exists() && active == 0 && said.Failures > r.was.Failures:
		return become(jobs.Retrying, gjson.Result{})
	case running.Exists() && r.was.State == jobs.Retrying && active == 0 && replicas.IsObject():
		return said
	case running.Exists():
		return become(jobs.Running, running)
	case created.Exists():
		return become(jobs.Pending, created)
	}
	said.State = jobs.Submitted
	return said
}
