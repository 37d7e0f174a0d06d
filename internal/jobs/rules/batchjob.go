package rules

import (
	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/jobs"
)

// batchJob is what the status of a batch/v1 Job says. Conditions exist only while they are True.
type batchJob struct {
	complete, failure, suspended, successCriteriaMet, failureTarget gjson.Result

	active, ready, terminating int64
	failed, succeeded          int64 // also pods that are not in the status' own numbers yet
	started, completed         string
}

// batchJobState is what a batch/v1 Job says of itself. Since Kubernetes 1.31, Complete and Failed
// come only after all pods have ended; SuccessCriteriaMet and FailureTarget come before them, and
// say that nothing of what happens meanwhile counts.
//
// The controller looks about once a second. So a pod's end is told before its successor is there,
// and a Job that does one completion after another has no active pod in between: it runs on.
// Nothing of it runs since something failed if no pod is active and a failure came, or no pod is
// any more and none has succeeded: pods that podFailurePolicy ignores are counted nowhere, and
// those on a node that died only at last.
//
// A pod that fails at once is never told to be ready. What is tried again has begun once a pod of
// it is active, until none is, unless one of them has succeeded meanwhile.
func batchJobState(r reading) jobs.Said {
	j := readBatchJob(r.status)
	said := jobs.Said{Counts: jobs.Counts{
		Failures: j.failed, Done: j.succeeded,
		Active: j.active > 0 || r.was.Active && j.succeeded > r.was.Done,
		Unmade: j.active+j.failed+j.succeeded == 0 && (r.was.State == "" || r.was.Unmade),
	}}
	become := func(state jobs.State, why gjson.Result) jobs.Said {
		by := saidBy(state, why)
		by.Counts = said.Counts
		return by
	}
	was := r.was.State
	switch {
	case j.complete.Exists():
		ended := become(jobs.Succeeded, j.complete)
		if at := jobs.ParseTime(j.completed); at != 0 {
			ended.At = at
		}
		return ended
	case j.failure.Exists():
		return become(jobs.Failed, j.failure)
	case r.spec.Get("suspend").Bool():
		return become(r.held(), j.suspended)
	case j.successCriteriaMet.Exists(), j.failureTarget.Exists():
		if was == "" {
			said.State = jobs.Running
		}
	case j.ready > 0, was == jobs.Retrying && j.active > 0 && j.succeeded > r.was.Done:
		said.State = jobs.Running
	case j.lost(r):
		said.State = jobs.Retrying
	case j.suspended.Exists() && was == "":
		said.State = r.held()
	case j.suspended.Exists() && was.Held(): // it is resumed, and its controller has not looked at it yet
	case j.active > 0, j.started != "":
		said.State, said.Due = jobs.Pending, j.active == 0
		if was == "" && j.succeeded > 0 {
			said.State = jobs.Running
		}
	default:
		said.State = jobs.Submitted
	}
	return said
}

// lost reports whether nothing runs since something failed.
func (j *batchJob) lost(r reading) bool {
	if j.active > 0 {
		return r.was.State == "" && j.failed > 0 && j.succeeded == 0
	}
	if parallelism := r.spec.Get("parallelism"); parallelism.Exists() && parallelism.Int() == 0 {
		return false
	}
	began := r.was.State == jobs.Running || r.was.State == jobs.Pending && r.was.Active
	return j.failed > r.was.Failures || began && (j.succeeded <= r.was.Done || r.was.State == jobs.Running && j.terminating > 0)
}

func readBatchJob(status gjson.Result) (j batchJob) {
	status.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "conditions":
			j.readConditions(value)
		case "active":
			j.active = value.Int()
		case "ready":
			j.ready = value.Int()
		case "terminating":
			j.terminating = value.Int()
		case "failed":
			j.failed += value.Int()
		case "succeeded":
			j.succeeded += value.Int()
		case "uncountedTerminatedPods":
			j.failed += value.Get("failed.#").Int()
			j.succeeded += value.Get("succeeded.#").Int()
		case "startTime":
			j.started = value.Str
		case "completionTime":
			j.completed = value.Str
		}
		return true
	})
	return j
}

func (j *batchJob) readConditions(all gjson.Result) {
	all.ForEach(func(_, condition gjson.Result) bool {
		if condition.Get("status").Str != "True" {
			return true
		}
		switch condition.Get("type").Str {
		case "Complete":
			j.complete = condition
		case "Failed":
			j.failure = condition
		case "Suspended":
			j.suspended = condition
		case "SuccessCriteriaMet":
			j.successCriteriaMet = condition
		case "FailureTarget":
			j.failureTarget = condition
		}
		return true
	})
}
