// Package objectstatus says in a word what an object is doing, the value at the path $status, and
// how much it requests, those at $requests.NAME; of pods also how many containers are ready, and how
// often they were started again, at $ready and $restarts.
//
// All are functions of the object alone. So it can be selected, sorted and counted by them, and what a
// stream has told of it changes with an event of that object only.
package objectstatus

import (
	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs/rules"
	"github.com/kubecast/kubecast/internal/table"
)

// Of returns what derives the status of a kind's objects:
//
//   - of built-in kinds for which kubectl prints a column STATUS, that text;
//   - of jobs of all kinds with a built-in rule, the state in which their history has them;
//   - of all others, what conventional says.
func Of(kind schema.GroupResource) func(*cluster.Object) string {
	if printed := table.Status(kind); printed != nil {
		return printed
	}
	state := rules.StateOf(kind.String())
	if state == nil {
		return conventional
	}
	return func(o *cluster.Object) string {
		if text := state(o); text != "" {
			return text
		}
		return conventional(o)
	}
}

// conventional reads what API conventions have for all kinds. An object that is being deleted is
// Terminating. Else its condition Ready decides, or if there is none, Available. Kinds without
// either often have a phase or a state. The status is "" if an object has none of these.
//
// Source: "Typical status properties" of Kubernetes' API conventions.
func conventional(o *cluster.Object) string {
	if o.Path("metadata.deletionTimestamp").Exists() {
		return "Terminating"
	}
	status := o.Path("status")
	var ready, available string
	status.Get("conditions").ForEach(func(_, c gjson.Result) bool {
		switch c.Get("type").Str {
		case "Ready":
			ready = byCondition(c.Get("status").Str, "Ready", "NotReady")
		case "Available":
			available = byCondition(c.Get("status").Str, "Available", "Unavailable")
		}
		return ready == ""
	})
	for _, text := range []string{ready, available, status.Get("phase").Str, status.Get("state").Str} {
		if text != "" {
			return text
		}
	}
	return ""
}

func byCondition(status, holds, fails string) string {
	switch status {
	case "True":
		return holds
	case "False":
		return fails
	}
	return "Unknown"
}
