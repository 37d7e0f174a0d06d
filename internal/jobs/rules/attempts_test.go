package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
)

// Pods that fail within a second are never told to be ready, so that their job stays Retrying;
// failures that a policy ignores are counted nowhere. Each time that all of it began was an attempt
// all the same, also one that ended in the failure of the job, or in its suspension.
func TestARetryThatFailsBeforeItIsSeenRunningIsAnAttempt(t *testing.T) {
	const one, two, cluster = `"parallelism":1,"completions":1`, `"parallelism":2,"completions":2`, `"shutdownAfterJobFinishes":true`
	for name, test := range map[string]struct {
		kind, spec, told string
		statuses         []string
	}{
		"a Job whose third pod succeeds": {Jobs, one, "Pending 1, Retrying 1, Running 3, Succeeded 3", []string{
			`{"active":1,"ready":0}`,
			`{"uncountedTerminatedPods":{"failed":["a"]}}`,
			`{"failed":1}`,
			`{"active":1,"ready":0,"failed":1}`,
			`{"failed":1,"uncountedTerminatedPods":{"failed":["b"]}}`,
			`{"failed":2}`,
			`{"active":1,"ready":0,"failed":2}`,
			`{"active":1,"ready":1,"failed":2}`,
			`{"failed":2,"succeeded":1,"conditions":[{"type":"Complete","status":"True"}]}`,
		}},
		"one whose second pod succeeds before it is ready": {Jobs, one, "Pending 1, Retrying 1, Succeeded 2", []string{
			`{"active":1,"ready":0}`,
			`{"failed":1}`,
			`{"active":1,"ready":0,"failed":1}`,
			`{"failed":1,"uncountedTerminatedPods":{"succeeded":["b"]},"conditions":[{"type":"SuccessCriteriaMet","status":"True"}]}`,
			`{"failed":1,"succeeded":1,"conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}`,
		}},
		"one that fails with its second pod": {Jobs, one, "Pending 1, Running 1, Retrying 1, Failed 2", []string{
			`{"active":1,"ready":0}`,
			`{"active":1,"ready":1}`,
			`{"failed":1}`,
			`{"active":1,"ready":0,"failed":1}`,
			`{"failed":1,"uncountedTerminatedPods":{"failed":["b"]},"conditions":[{"type":"FailureTarget","status":"True"}]}`,
			`{"failed":2,"conditions":[{"type":"FailureTarget","status":"True"},{"type":"Failed","status":"True"}]}`,
		}},
		"one whose second pod is removed, which is no failure yet": {Jobs, one, "Pending 1, Retrying 1, Running 3", []string{
			`{"active":1,"ready":0}`,
			`{"failed":1}`,
			`{"active":1,"ready":0,"failed":1}`,
			`{"failed":1,"terminating":1}`,
			`{"failed":1}`,
			`{"failed":2}`,
			`{"active":1,"ready":1,"failed":2}`,
		}},
		"one of two pods, of which one after the other fails": {Jobs, two, "Pending 1, Retrying 1, Running 3", []string{
			`{"active":2,"ready":0}`,
			`{"failed":2}`,
			`{"active":2,"ready":0,"failed":2}`,
			`{"active":1,"ready":0,"failed":3}`,
			`{"active":2,"ready":0,"failed":3}`,
			`{"failed":5}`,
			`{"failed":5,"uncountedTerminatedPods":{"failed":["f"]}}`,
			`{"active":2,"ready":0,"failed":6}`,
			`{"active":2,"ready":1,"failed":6}`,
		}},
		"one that has a completion to keep": {Jobs, two, "Pending 1, Running 1, Retrying 1, Running 1", []string{
			`{"active":2,"ready":0}`,
			`{"active":1,"ready":1,"succeeded":1}`,
			`{"succeeded":1,"failed":1}`,
			`{"active":1,"ready":0,"succeeded":1,"failed":1}`,
			`{"succeeded":1,"failed":2}`,
			`{"active":1,"ready":0,"succeeded":1,"failed":2}`,
			`{"active":1,"ready":1,"succeeded":1,"failed":2}`,
		}},
		"one whose second attempt had a completion, and failed": {Jobs, two, "Pending 1, Retrying 1, Running 2", []string{
			`{"active":2,"ready":0}`,
			`{"failed":2}`,
			`{"active":2,"ready":0,"failed":2}`,
			`{"succeeded":1,"failed":3}`,
			`{"active":1,"ready":0,"succeeded":1,"failed":3}`,
		}},
		"a JobSet": {"jobsets.jobset.x-k8s.io", "", "Pending 1, Retrying 1, Running 3", []string{
			`{"replicatedJobsStatus":[{"name":"w","active":2}]}`,
			`{"restarts":1,"replicatedJobsStatus":[{"name":"w","active":1,"failed":1}]}`,
			`{"restarts":1,"replicatedJobsStatus":[{"name":"w"}]}`,
			`{"restarts":1,"replicatedJobsStatus":[{"name":"w","active":2}]}`,
			`{"restarts":2,"replicatedJobsStatus":[{"name":"w","active":1,"failed":1}]}`,
			`{"restarts":2,"replicatedJobsStatus":[{"name":"w","active":2}]}`,
			`{"restarts":2,"replicatedJobsStatus":[{"name":"w","active":2,"ready":2}]}`,
		}},
		"a JobSet that is suspended after one of its Jobs has succeeded": {"jobsets.jobset.x-k8s.io", `"managedBy":"m"`, "Running 1, Suspended 1, Pending 1, Running 1, Retrying 1, Running 2", []string{
			`{"replicatedJobsStatus":[{"name":"w","active":1,"ready":2}]}`,
			`{"replicatedJobsStatus":[{"name":"w","active":1,"ready":1,"succeeded":1}]} suspended`,
			`{"replicatedJobsStatus":[{"name":"w","suspended":1,"succeeded":1}]} suspended`,
			`{"replicatedJobsStatus":[{"name":"w","suspended":1,"succeeded":1}]}`,
			`{"replicatedJobsStatus":[{"name":"w","active":1,"ready":1,"succeeded":1}]}`,
			`{"restarts":1,"replicatedJobsStatus":[{"name":"w","failed":1,"succeeded":1}]}`,
			`{"restarts":1,"replicatedJobsStatus":[{"name":"w","active":2,"ready":2}]}`,
		}},
		"one that is suspended before any has": {"jobsets.jobset.x-k8s.io", `"managedBy":"m"`, "Running 1, Suspended 1, Pending 2", []string{
			`{"replicatedJobsStatus":[{"name":"w","active":1,"ready":2}]}`,
			`{"replicatedJobsStatus":[{"name":"w","active":1,"ready":2}]} suspended`,
			`{"replicatedJobsStatus":[{"name":"w","suspended":2}]} suspended`,
			`{"replicatedJobsStatus":[{"name":"w","suspended":2}]}`,
		}},
		"one that is suspended before any pod of it was made": {"jobsets.jobset.x-k8s.io", `"managedBy":"m"`, "Submitted 1, Pending 1, Suspended 1, Pending 1, Running 1", []string{
			`{}`,
			`{"replicatedJobsStatus":[{"name":"w"}]}`,
			`{"replicatedJobsStatus":[{"name":"w"}]} suspended`,
			`{"replicatedJobsStatus":[{"name":"w","suspended":1}]} suspended`,
			`{"replicatedJobsStatus":[{"name":"w","suspended":1}]}`,
			`{"replicatedJobsStatus":[{"name":"w","active":1,"ready":1}]}`,
		}},
		"one that is made anew while it is suspended, and still tells what had succeeded before": {"jobsets.jobset.x-k8s.io", `"managedBy":"m"`, "Running 1, Suspended 1, Pending 2, Running 2", []string{
			`{"replicatedJobsStatus":[{"name":"w","active":2,"ready":2}]}`,
			`{"replicatedJobsStatus":[{"name":"w","active":1,"ready":1}]} suspended`,
			`{"replicatedJobsStatus":[{"name":"w","succeeded":1}]} suspended`,
			`{"restarts":1,"replicatedJobsStatus":[{"name":"w","succeeded":1}]} suspended`,
			`{"restarts":1,"replicatedJobsStatus":[{"name":"w","succeeded":1}]}`,
			`{"restarts":1,"replicatedJobsStatus":[{"name":"w"}]}`,
			`{"restarts":1,"replicatedJobsStatus":[{"name":"w","active":2,"ready":2}]}`,
		}},
		"a TrainJob that is suspended after one of its Jobs has succeeded": {"trainjobs.trainer.kubeflow.org", `"managedBy":"m"`, "Running 1, Suspended 1, Pending 1, Running 1", []string{
			`{"jobsStatus":[{"name":"node","active":1,"ready":1}]}`,
			`{"jobsStatus":[{"name":"data","succeeded":1},{"name":"node","active":1,"ready":1}]} suspended`,
			`{"jobsStatus":[{"name":"data","succeeded":1},{"name":"node","suspended":1}]} suspended`,
			`{"jobsStatus":[{"name":"data","succeeded":1},{"name":"node","suspended":1}]}`,
			`{"jobsStatus":[{"name":"data","succeeded":1},{"name":"node","active":1,"ready":1}]}`,
		}},
		"a TrainJob": {"trainjobs.trainer.kubeflow.org", "", "Pending 1, Retrying 1, Failed 2", []string{
			`{"jobsStatus":[{"name":"node","active":1}]}`,
			`{"jobsStatus":[{"name":"node","failed":1}]}`,
			`{"jobsStatus":[{"name":"node","active":1}]}`,
			`{"jobsStatus":[{"name":"node","active":0}]}`,
			`{"jobsStatus":[{"name":"node","failed":1}]}`,
			`{"jobsStatus":[{"name":"node","failed":1}],"conditions":[{"type":"Failed","status":"True"}]}`,
		}},
		"a RayJob": {"rayjobs.ray.io", cluster, "Pending 1, Retrying 1, Failed 3", []string{
			`{"jobDeploymentStatus":"Initializing"}`,
			`{"jobDeploymentStatus":"Retrying","failed":1}`,
			`{"failed":1}`,
			`{"jobDeploymentStatus":"Initializing","failed":1}`,
			`{"jobDeploymentStatus":"Running","failed":1}`,
			`{"jobDeploymentStatus":"Retrying","failed":2}`,
			`{"failed":2}`,
			`{"jobDeploymentStatus":"Initializing","failed":2}`,
			`{"jobDeploymentStatus":"Failed","failed":3}`,
		}},
		"a RayJob that is suspended while it is tried again": {"rayjobs.ray.io", cluster, "Pending 1, Retrying 1, Suspended 2, Pending 3", []string{
			`{"jobDeploymentStatus":"Initializing"}`,
			`{"jobDeploymentStatus":"Retrying","failed":1}`,
			`{"jobDeploymentStatus":"Initializing","failed":1}`,
			`{"jobDeploymentStatus":"Suspending","failed":1} suspended`,
			`{"jobDeploymentStatus":"Initializing","failed":1}`,
		}},
		"a Job that is suspended while it is tried again": {Jobs, one, "Pending 1, Retrying 1, Suspended 2, Pending 3", []string{
			`{"active":1}`,
			`{"failed":1}`,
			`{"active":1,"failed":1}`,
			`{"active":1,"failed":1} suspended`,
			`{"failed":1} suspended`,
			`{"active":1,"failed":1}`,
		}},
		"one that is resumed before its controller has seen that it was suspended": {Jobs, one, "Pending 1, Running 1, Suspended 1, Pending 1, Running 1", []string{
			`{"active":1}`,
			`{"active":1,"ready":1}`,
			`{"active":1,"ready":1} suspended`,
			`{"active":1}`,
			`{"active":1,"ready":1}`,
		}},
		"one whose pod was made as it was suspended": {Jobs, one, "Submitted 1, Suspended 1, Pending 2", []string{
			`{}`,
			`{} suspended`,
			`{"failed":1,"conditions":[{"type":"Suspended","status":"True"}]} suspended`,
			`{"failed":1,"conditions":[{"type":"Suspended","status":"True"}]}`,
			`{"failed":1,"active":1,"conditions":[{"type":"Suspended","status":"False"}]}`,
		}},
		"one that is suspended again before its pods are made": {Jobs, one, "Pending 1, Suspended 1, Pending 1, Suspended 1, Pending 1, Running 2", []string{
			`{"active":1,"startTime":"2026-01-01T00:00:00Z"}`,
			`{"active":1} suspended`,
			`{"failed":1,"conditions":[{"type":"Suspended","status":"True"}]} suspended`,
			`{"failed":1,"startTime":"2026-01-01T00:00:00Z"}`,
			`{"failed":1,"conditions":[{"type":"Suspended","status":"True"}]} suspended`,
			`{"failed":1,"startTime":"2026-01-01T00:00:00Z"}`,
			`{"failed":1,"active":1,"startTime":"2026-01-01T00:00:00Z"}`,
			`{"failed":1,"active":1,"ready":1,"startTime":"2026-01-01T00:00:00Z"}`,
		}},
		"one that is suspended again before its first pod is made": {Jobs, one, "Pending 1, Suspended 1, Pending 1, Running 1", []string{
			`{"startTime":"2026-01-01T00:00:00Z"}`,
			`{"conditions":[{"type":"Suspended","status":"True"}]} suspended`,
			`{"startTime":"2026-01-01T00:00:00Z"}`,
			`{"active":1,"startTime":"2026-01-01T00:00:00Z"}`,
			`{"active":1,"ready":1,"startTime":"2026-01-01T00:00:00Z"}`,
		}},
		"one that runs, or fails, with the version that tells that its pods were made": {Jobs, one, "Pending 1, Suspended 1, Pending 1, Retrying 2, Suspended 2, Pending 2, Running 3", []string{
			`{"active":1,"startTime":"2026-01-01T00:00:00Z"}`,
			`{"active":1} suspended`,
			`{"failed":1} suspended`,
			`{"failed":1,"startTime":"2026-01-01T00:00:00Z"}`,
			`{"failed":2,"startTime":"2026-01-01T00:00:00Z"}`,
			`{"failed":2} suspended`,
			`{"failed":2,"startTime":"2026-01-01T00:00:00Z"}`,
			`{"failed":2,"active":1,"ready":1,"startTime":"2026-01-01T00:00:00Z"}`,
		}},
		"one whose failures a policy ignores, so that nothing counts them": {Jobs, one, "Pending 1, Retrying 1, Running 2, Retrying 2, Running 3, Succeeded 3", []string{
			`{"active":1,"startTime":"2026-01-01T00:00:00Z"}`,
			`{"startTime":"2026-01-01T00:00:00Z"}`,
			`{"active":1,"startTime":"2026-01-01T00:00:00Z"}`,
			`{"active":1,"ready":1,"startTime":"2026-01-01T00:00:00Z"}`,
			`{"startTime":"2026-01-01T00:00:00Z"}`,
			`{"active":1,"startTime":"2026-01-01T00:00:00Z"}`,
			`{"active":1,"ready":1,"startTime":"2026-01-01T00:00:00Z"}`,
			`{"succeeded":1,"conditions":[{"type":"Complete","status":"True"}]}`,
		}},
		"one of completions one after another, between which no pod is active": {Jobs, `"parallelism":1,"completions":3`, "Pending 1, Running 1", []string{
			`{"startTime":"2026-01-01T00:00:00Z"}`,
			`{"active":1,"startTime":"2026-01-01T00:00:00Z"}`,
			`{"active":1,"ready":1}`,
			`{"uncountedTerminatedPods":{"succeeded":["a"]}}`,
			`{"active":1,"succeeded":1}`,
			`{"succeeded":2}`,
			`{"active":1,"succeeded":2}`,
		}},
	} {
		r := rule(t, test.kind)
		var job *jobs.Job
		var told []string
		for i, status := range test.statuses {
			spec := test.spec
			if rest, suspended := strings.CutSuffix(status, " suspended"); suspended {
				status, spec = rest, spec+`,"suspend":true`
			}
			said, err := r.Read(object(t, `"spec":{`+spec+`},"status":`+status), job)
			if err != nil {
				t.Fatal(err)
			}
			seen := jobs.Seen{ObjectID: jobs.ObjectID{UID: "u", Namespace: "n", Name: "j"}, Said: said, Version: uint64(10 + i), Observed: jobs.Time(1_000 * (i + 1))}
			next, transition := jobs.Next(job, seen)
			if next != nil {
				job = next
			}
			if transition != nil {
				told = append(told, fmt.Sprintf("%s %d", transition.To, transition.Attempt))
			}
		}
		if text := strings.Join(told, ", "); text != test.told {
			t.Errorf("%s: told as\n%s, not as\n%s", name, text, test.told)
		}
	}
}
