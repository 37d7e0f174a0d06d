package rules

import (
	"time"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history"
)

// jobConditions are the conditions of a batch/v1 Job that say something of its state, if their status is True.
type jobConditions struct{ complete, failed, suspended, successCriteriaMet, failureTarget gjson.Result }

// readJob is what a batch/v1 Job says of itself: the first of the following that applies.
//
// Since Kubernetes 1.31, Complete and Failed come only after all pods have ended. SuccessCriteriaMet and FailureTarget
// come before them. So these are looked at before a failed pod counts as a retry.
func readJob(o *cluster.Object, was history.State) history.Said {
	values := gjson.GetMany(o.JSON(), "spec.suspend", "status")
	suspend, status := values[0].Bool(), values[1]
	var conditions jobConditions
	var ready, failed, active int64
	var started, completed string
	status.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "conditions":
			conditions = readJobConditions(value)
		case "ready":
			ready = value.Int()
		case "failed":
			failed = value.Int()
		case "active":
			active = value.Int()
		case "startTime":
			started = value.Str
		case "completionTime":
			completed = value.Str
		}
		return true
	})
	switch {
	case conditions.complete.Exists():
		said := saidBy(history.Succeeded, conditions.complete)
		if at := moment(completed); at != 0 {
			said.At = at
		}
		return said
	case conditions.failed.Exists():
		return saidBy(history.Failed, conditions.failed)
	case suspend:
		return saidBy(history.Suspended, conditions.suspended)
	case conditions.successCriteriaMet.Exists(), conditions.failureTarget.Exists():
		if was != "" {
			return history.Said{}
		}
		return history.Said{State: history.Running}
	case ready > 0:
		return history.Said{State: history.Running}
	case failed > 0:
		return history.Said{State: history.Retrying}
	case active > 0, started != "":
		return history.Said{State: history.Pending}
	}
	return history.Said{State: history.Submitted}
}

func readJobConditions(all gjson.Result) (found jobConditions) {
	all.ForEach(func(_, condition gjson.Result) bool {
		if condition.Get("status").Str != "True" {
			return true
		}
		switch condition.Get("type").Str {
		case "Complete":
			found.complete = condition
		case "Failed":
			found.failed = condition
		case "Suspended":
			found.suspended = condition
		case "SuccessCriteriaMet":
			found.successCriteriaMet = condition
		case "FailureTarget":
			found.failureTarget = condition
		}
		return true
	})
	return found
}

// saidBy is a state with what its condition says. A condition that does not exist says nothing.
func saidBy(state history.State, condition gjson.Result) history.Said {
	return history.Said{
		State: state, Reason: condition.Get("reason").Str, Message: condition.Get("message").Str,
		At: moment(condition.Get("lastTransitionTime").Str),
	}
}

// moment reads a time as Kubernetes writes it; 0 if the text is no time.
func moment(s string) history.Time {
	if s == "" {
		return 0
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.Unix() <= 0 {
		return 0
	}
	return history.At(t)
}
