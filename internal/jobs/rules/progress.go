package rules

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/pods"
)

// done is so much of something, if it is known of how much. No more than all of it is done, whatever strangers write.
func done(n, of int64) jobs.Progress {
	if of <= 0 {
		return jobs.Progress{}
	}
	return jobs.Progress{Done: min(max(n, 0), of), Of: of}
}

// batchJobProgress counts completions. A Job without a number of them is a queue of work, of which
// nobody knows how much there is. An elastic Job has as many as its spec says now.
func batchJobProgress(r reading) jobs.Progress {
	of := r.spec.Get("completions")
	if !of.Exists() {
		return jobs.Progress{}
	}
	return done(r.status.Get("succeeded").Int()+r.status.Get("uncountedTerminatedPods.succeeded.#").Int(), of.Int())
}

// jobSetProgress counts Jobs.
func jobSetProgress(r reading) jobs.Progress {
	of := int64(0)
	r.spec.Get("replicatedJobs").ForEach(func(_, job gjson.Result) bool {
		if replicas := job.Get("replicas"); replicas.Type == gjson.Number {
			of += max(replicas.Int(), 0)
		} else {
			of++
		}
		return true
	})
	return done(sum(r.status.Get("replicatedJobsStatus"), "succeeded"), of)
}

// trainJobProgress is what the training itself says, in percent, where Trainer lets it
// (trainerStatus is alpha), else how many of its Jobs are done, of which each replicated one is
// one.
func trainJobProgress(r reading) jobs.Progress {
	if percent := r.status.Get("trainerStatus.progressPercentage"); percent.Type == gjson.Number {
		return done(percent.Int(), 100)
	}
	statuses := r.status.Get("jobsStatus")
	return done(sum(statuses, "succeeded"), statuses.Get("#").Int())
}

// workflowProgress is Argo's own: "3/7" nodes.
func workflowProgress(r reading) jobs.Progress {
	before, after, _ := strings.Cut(r.status.Get("progress").Str, "/")
	n, err := strconv.ParseInt(before, 10, 64)
	if err != nil {
		return jobs.Progress{}
	}
	of, _ := strconv.ParseInt(after, 10, 64)
	return done(n, of)
}

// tektonTasks is how Tekton counts the tasks of a PipelineRun, in the message of its condition
// only: "Tasks Completed: 1 (Failed: 0, Cancelled 0), Incomplete: 1, Skipped: 0". At the end
// nothing is incomplete.
var tektonTasks = regexp.MustCompile(`^Tasks Completed: (\d{1,9}) \([^)]*\)(?:, Incomplete: (\d{1,9}))?, Skipped: (\d{1,9})$`)

// pipelineRunProgress counts tasks, of which those that are skipped are no work.
func pipelineRunProgress(r reading) jobs.Progress {
	found := tektonTasks.FindStringSubmatch(pods.Condition(r.status, "Succeeded").Get("message").Str)
	if found == nil {
		return jobs.Progress{}
	}
	completed, _ := strconv.ParseInt(found[1], 10, 64)
	incomplete, _ := strconv.ParseInt(found[2], 10, 64)
	return done(completed, completed+incomplete)
}
