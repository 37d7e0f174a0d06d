package rules

import (
	"maps"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
)

// builtin is the rule of a kind whose controller this package knows.
type builtin struct {
	// state reads the state, why and since when the job is in it, and what the controller counts. A
	// Said without a state says that the job is what it was.
	state    func(reading) jobs.Said
	progress func(reading) jobs.Progress // nil: the kind says nothing of it
	queue    string                      // gjson path
	owner    []string                    // gjson paths
}

// builtins are the rules of kinds, by resource.
var builtins = map[string]builtin{
	Jobs:                                        {state: batchJobState, progress: batchJobProgress},
	"pytorchjobs.kubeflow.org":                  {state: kubeflowState},
	"tfjobs.kubeflow.org":                       {state: kubeflowState},
	"mpijobs.kubeflow.org":                      {state: kubeflowState},
	"xgboostjobs.kubeflow.org":                  {state: kubeflowState},
	"paddlejobs.kubeflow.org":                   {state: kubeflowState},
	"jaxjobs.kubeflow.org":                      {state: kubeflowState},
	"trainjobs.trainer.kubeflow.org":            {state: trainJobState, progress: trainJobProgress},
	"rayjobs.ray.io":                            {state: rayJobState},
	"workflows.argoproj.io":                     {state: workflowState, progress: workflowProgress, owner: workflowOwners},
	"jobs.batch.volcano.sh":                     {state: volcanoJobState, queue: "spec.queue"},
	"jobsets.jobset.x-k8s.io":                   {state: jobSetState, progress: jobSetProgress},
	"sparkapplications.sparkoperator.k8s.io":    {state: sparkState},
	"taskruns.tekton.dev":                       {state: tektonState},
	"pipelineruns.tekton.dev":                   {state: tektonState, progress: pipelineRunProgress},
	"customruns.tekton.dev":                     {state: customRunState},
	"appwrappers.workload.codeflare.dev":        {state: appWrapperState},
	"workloads.kueue.x-k8s.io":                  {state: workloadState, queue: "spec.queueName"},
	"leaderworkersets.leaderworkerset.x-k8s.io": {state: leaderWorkerSetState, progress: leaderWorkerSetProgress},
	"rayclusters.ray.io":                        {state: rayClusterState, progress: rayClusterProgress},
	"rayservices.ray.io":                        {state: rayServiceState},
}

// Ready are the kinds with built-in rules that are recorded only if they are configured.
func Ready() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(builtins)), func(kind string) bool { return kind == Jobs })
}

// StateOf returns what reads the state of a kind's objects by its built-in rule, as of a job that was
// never seen before; nil for a kind without such a rule. The state is "" where an object says nothing
// of it.
func StateOf(kind string) func(*cluster.Object) string {
	rule, known := builtins[kind]
	if !known {
		return nil
	}
	return func(o *cluster.Object) string { return string(rule.read(o, nil).State) }
}

// reading is an object as built-in rules see it.
type reading struct {
	object       *cluster.Object
	deleting     bool
	spec, status gjson.Result
	was          *jobs.Job // of a job that was never seen: the zero Job
}

// readingOf walks an object once: of most that come, nothing but the state is read.
func readingOf(o *cluster.Object, was *jobs.Job) reading {
	r := reading{object: o, was: was}
	if was == nil {
		r.was = &jobs.Job{}
	}
	gjson.Parse(o.JSON()).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "metadata":
			r.deleting = value.Get("deletionTimestamp").Str != ""
		case "spec":
			r.spec = value
		case "status":
			r.status = value
		}
		return true
	})
	return r
}

// condition is the condition of a type, as long as its status is True. One that is not says nothing of the present: its
// time and reason are those of when it ceased to hold.
func (r reading) condition(of string) (found gjson.Result) {
	r.status.Get("conditions").ForEach(func(_, c gjson.Result) bool {
		if c.Get("type").Str == of && c.Get("status").Str == "True" {
			found = c
		}
		return !found.Exists()
	})
	return found
}

// queueLabel names the queue of Kueue that an object waits in. Kueue suspends what it has not admitted.
const queueLabel = "kueue.x-k8s.io/queue-name"

// held is what a suspension means: the object waits for quota, or somebody has told it to wait.
func (r reading) held() jobs.State {
	if r.object.Get(queueLabel) != "" {
		return jobs.Queued
	}
	return jobs.Suspended
}

// sum adds a number that each element of a list, or each member of an object, has.
func sum(of gjson.Result, member string) (total int64) {
	of.ForEach(func(_, one gjson.Result) bool {
		total += one.Get(member).Int()
		return true
	})
	return total
}

// saidBy is a state with what its condition says. A condition that does not exist says nothing.
func saidBy(state jobs.State, condition gjson.Result) jobs.Said {
	return jobs.Said{
		State: state, Reason: condition.Get("reason").Str, Message: condition.Get("message").Str,
		At: jobs.ParseTime(condition.Get("lastTransitionTime").Str),
	}
}

// untimed is what a condition says of a state that began later than the condition, or before it.
func untimed(state jobs.State, condition gjson.Result) jobs.Said {
	said := saidBy(state, condition)
	said.At = 0
	return said
}

// isTriedAgain reports whether the next attempt of a job that is Retrying has begun, with this
// version or before, and this version does not say that it has failed, or is over by a suspension.
func (r reading) isTriedAgain(said jobs.Said, begins, fails bool) bool {
	return r.was.State == jobs.Retrying && !said.State.Held() && !fails && (begins || r.was.Active)
}

// read is what a built-in rule says.
func (b builtin) read(o *cluster.Object, was *jobs.Job) jobs.Said {
	r := readingOf(o, was)
	said := b.news(r)
	if b.progress != nil {
		said.Progress = b.progress(r)
	}
	return said
}

// news is what a built-in rule says of the state, as far as that is news. These hold for all kinds:
//
//  1. A deletion under way is no new state: what its controller writes meanwhile is about taking the job apart.
//  2. A job that runs does so until it ends, is suspended or fails as a whole, even if for a while none of its pods does.
//  3. Retrying lasts until something runs again. What is made anew meanwhile waits, but it waits because something failed.
//  4. No job goes back to Submitted from a state in which somebody had begun with it.
func (b builtin) news(r reading) jobs.Said {
	said := b.state(r)
	if r.was.State == "" || said.State == "" {
		return said
	}
	waits := said.State == jobs.Submitted || said.State == jobs.Pending
	switch {
	case r.deleting && !said.State.Ended(),
		waits && (r.was.State == jobs.Running || r.was.State == jobs.Retrying),
		said.State == jobs.Submitted && r.was.State != jobs.Retrying && !r.was.State.Ended():
		return jobs.Said{Counts: said.Counts}
	}
	return said
}
