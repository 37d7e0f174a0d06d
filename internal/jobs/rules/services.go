package rules

import (
	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/pods"
)

// Services have no end of their own: they run until somebody deletes them. Ready is Running. One of
// which only a part is ready runs, too: Degraded is the reason, and how many of its replicas are
// ready is its progress.

// degraded is the reason of a service that runs in part.
const degraded = "Degraded"

// serving is what a service says of which so many replicas are ready, of so many that it should have.
func serving(ready, of int64) jobs.Said {
	said := jobs.Said{State: jobs.Running}
	if ready < of {
		said.Reason = degraded
	}
	return said
}

// leaderWorkerSetState is what a LeaderWorkerSet says, whose replicas are groups of pods.
func leaderWorkerSetState(r reading) jobs.Said {
	of, ready := leaderWorkerSetReplicas(r), r.status.Get("readyReplicas").Int()
	switch {
	case of == 0:
		return jobs.Said{State: jobs.Suspended}
	case ready > 0:
		return serving(ready, of)
	case r.status.Get("replicas").Int() > 0, r.status.Get("conditions.#").Int() > 0:
		return untimed(jobs.Pending, r.condition("Progressing"))
	}
	return jobs.Said{State: jobs.Submitted}
}

// leaderWorkerSetReplicas is how many it should have.
func leaderWorkerSetReplicas(r reading) int64 {
	if of := r.spec.Get("replicas"); of.Type == gjson.Number {
		return of.Int()
	}
	return 1
}

func leaderWorkerSetProgress(r reading) jobs.Progress {
	return done(r.status.Get("readyReplicas").Int(), leaderWorkerSetReplicas(r))
}

// rayClusterState is what a RayCluster says. Provisioned says that all of it was ready once; the
// state says the same, and is not written any more in time.
func rayClusterState(r reading) jobs.Said {
	state, failure := r.status.Get("state").Str, r.condition("ReplicaFailure")
	ready, of := rayWorkers(r)
	switch {
	case r.spec.Get("suspend").Bool():
		return jobs.Said{State: r.held()}
	case r.condition("HeadPodReady").Exists(), state == "ready" && !failure.Exists():
		said := serving(ready, of)
		if failure.Exists() {
			said.Reason, said.Message = degraded, failure.Get("message").Str
		}
		return said
	case r.was.State == jobs.Running && (failure.Exists() || state == "failed"):
		return untimed(jobs.Retrying, failure) // its head is gone, and is made anew
	case state != "", r.status.Get("conditions.#").Int() > 0:
		said := untimed(jobs.Pending, failure)
		if said.Message == "" {
			said.Message = r.status.Get("reason").Str
		}
		return said
	}
	return jobs.Said{State: jobs.Submitted}
}

// rayWorkers are how many workers a RayCluster has, of how many.
func rayWorkers(r reading) (ready, of int64) {
	workers := r.status.Get("readyWorkerReplicas")
	if !workers.Exists() {
		workers = r.status.Get("availableWorkerReplicas")
	}
	return workers.Int(), r.status.Get("desiredWorkerReplicas").Int()
}

func rayClusterProgress(r reading) jobs.Progress { return done(rayWorkers(r)) }

// rayServiceState is what a RayService says: it is Ready as soon as something of it answers.
func rayServiceState(r reading) jobs.Said {
	ready := r.condition("Ready")
	switch {
	case r.spec.Get("suspend").Bool():
		return jobs.Said{State: r.held()}
	case ready.Exists(), !pods.Condition(r.status, "Ready").Exists() && r.status.Get("serviceStatus").Str == "Running":
		return untimed(jobs.Running, ready)
	case r.was.State == jobs.Running:
		return jobs.Said{}
	case r.status.Get("serviceStatus").Str != "", r.status.Get("pendingServiceStatus.rayClusterName").Str != "", r.status.Get("activeServiceStatus.rayClusterName").Str != "":
		return jobs.Said{State: jobs.Pending}
	}
	return jobs.Said{State: jobs.Submitted}
}
