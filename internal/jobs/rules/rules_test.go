package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// object is one with these members beside metadata.
func object(t testing.TB, members string) *cluster.Object {
	t.Helper()
	return objectWith(t, `"name":"j","namespace":"n","uid":"u","resourceVersion":"5"`, members)
}

func objectWith(t testing.TB, metadata, members string) *cluster.Object {
	t.Helper()
	text := `{"metadata":{` + metadata + `}`
	if members != "" {
		text += "," + members
	}
	text += "}"
	if !json.Valid([]byte(text)) {
		t.Fatalf("the test's object is no JSON: %s", text)
	}
	o, err := cluster.NewObject(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// readySet has the ready-made rules of all kinds.
var readySet = sync.OnceValues(func() (*Set, error) {
	opts := Options{Key: "history"}
	for _, name := range Ready() {
		opts.Kinds = append(opts.Kinds, KindRules{Resource: name})
	}
	return New(opts)
})

func rule(t testing.TB, resource string) *Rule {
	t.Helper()
	set, err := readySet()
	if err != nil {
		t.Fatal(err)
	}
	if set.For(resource) == nil {
		t.Fatalf("no rule for %s", resource)
	}
	return set.For(resource)
}

const noon = "2026-11-01T12:00:00Z"

var atNoon = jobs.At(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))

func conditions(all ...string) string {
	var texts []string
	for _, c := range all {
		kind, status, _ := strings.Cut(c, "=")
		status, reason, _ := strings.Cut(status, "/")
		texts = append(texts, fmt.Sprintf(`{"type":%q,"status":%q,"reason":%q,"message":%q,"lastTransitionTime":%q}`, kind, status, reason, "told of "+kind, noon))
	}
	return `"conditions":[` + strings.Join(texts, ",") + `]`
}

// The first that fits: an end before the suspension, a target before what its pods do, a ready pod before a failed one.
func TestABatchJobsState(t *testing.T) {
	r := rule(t, Jobs)
	for _, test := range []struct {
		members string
		was     jobs.State
		want    jobs.State
		reason  string
		at      jobs.Time
	}{
		{``, "", jobs.Submitted, "", 0},
		{`"status":{}`, "", jobs.Submitted, "", 0},
		{`"status":null,"spec":null`, "", jobs.Submitted, "", 0},
		{`"spec":{"suspend":true}`, "", jobs.Suspended, "", 0},
		{`"spec":{"suspend":true},"status":{"active":0,` + conditions("Suspended=True/JobSuspended") + `}`, jobs.Running, jobs.Suspended, "JobSuspended", atNoon},
		{`"spec":{"suspend":false},"status":{` + conditions("Suspended=False/JobResumed") + `}`, jobs.Suspended, "", "", 0},
		{`"status":{"startTime":"` + noon + `"}`, "", jobs.Pending, "", 0},
		{`"status":{"active":2,"ready":0}`, "", jobs.Pending, "", 0},
		{`"status":{"active":2,"ready":1}`, "", jobs.Running, "", 0},
		{`"status":{"active":2,"ready":1,"failed":3}`, "", jobs.Running, "", 0},
		{`"status":{"active":1,"ready":0,"failed":1}`, "", jobs.Retrying, "", 0},
		{`"status":{"active":null,"ready":null,"failed":null,"startTime":null,"conditions":null}`, "", jobs.Submitted, "", 0},
		// Since 1.31 the pods are ended first.
		{`"status":{"terminating":1,"failed":2,` + conditions("FailureTarget=True/BackoffLimitExceeded") + `}`, jobs.Running, "", "", 0},
		{`"status":{"terminating":1,"failed":2,` + conditions("FailureTarget=True/BackoffLimitExceeded") + `}`, "", jobs.Running, "", 0},
		{`"status":{"failed":1,` + conditions("SuccessCriteriaMet=True/SuccessPolicy") + `}`, jobs.Retrying, "", "", 0},
		{`"spec":{"suspend":true},"status":{"failed":1,` + conditions("SuccessCriteriaMet=True/SuccessPolicy") + `}`, jobs.Running, jobs.Suspended, "", 0},
		{`"status":{"failed":2,` + conditions("FailureTarget=True/BackoffLimitExceeded", "Failed=True/BackoffLimitExceeded") + `}`, jobs.Running, jobs.Failed, "BackoffLimitExceeded", atNoon},
		{`"status":{"failed":2,` + conditions("Failed=False/x") + `}`, jobs.Running, jobs.Retrying, "", 0},
		{`"spec":{"suspend":true},"status":{"completionTime":"2026-11-01T11:00:00Z",` + conditions("SuccessCriteriaMet=True/CompletionsReached", "Complete=True/CompletionsReached") + `}`,
			jobs.Running, jobs.Succeeded, "CompletionsReached", atNoon - 3600_000},
		{`"status":{` + conditions("Complete=True/CompletionsReached") + `}`, "", jobs.Succeeded, "CompletionsReached", atNoon},
	} {
		said, err := r.Read(object(t, test.members), jobIn(test.was))
		if err != nil || said.State != test.want || said.Reason != test.reason || said.At != test.at {
			t.Errorf("%s, which was %q: %+v, %v; not %s", test.members, test.was, said, err, test.want)
		}
	}
}

// Objects as their controllers write them, nulls included; each kind from its beginning to an end,
// and out of it where it can.
func TestReadyMadeRulesReadWhatControllersWrite(t *testing.T) {
	type step struct {
		members string
		want    jobs.State
		details string // reason/message where they say something
	}
	kubeflowSteps := []step{
		{`"spec":{"runPolicy":{"suspend":false}}`, jobs.Submitted, ""},
		{`"spec":{"runPolicy":{"suspend":true}},"status":{"conditions":null,"replicaStatuses":null}`, jobs.Suspended, ""},
		{`"status":{` + conditions("Created=True/PyTorchJobCreated", "Suspended=True/PyTorchJobSuspended") + `}`, jobs.Suspended, "PyTorchJobSuspended/told of Suspended"},
		{`"spec":{"runPolicy":{"suspend":false}},"status":{` + conditions("Created=True/PyTorchJobCreated", "Suspended=False/PyTorchJobResumed") + `}`, jobs.Pending, "PyTorchJobCreated/told of Created"},
		{`"status":{` + conditions("Created=True/C", "Running=True/PyTorchJobRunning") + `}`, jobs.Running, "PyTorchJobRunning/told of Running"},
		{`"status":{` + conditions("Created=True/C", "Restarting=True/PyTorchJobRestarting") + `}`, jobs.Retrying, "PyTorchJobRestarting/told of Restarting"},
		{`"status":{"completionTime":"` + noon + `",` + conditions("Created=True/C", "Running=False/R", "Succeeded=True/PyTorchJobSucceeded") + `}`, jobs.Succeeded, "PyTorchJobSucceeded/told of Succeeded"},
		{`"status":{"completionTime":null,` + conditions("Created=True/C", "Running=False/R", "Failed=True/PyTorchJobFailed") + `}`, jobs.Failed, "PyTorchJobFailed/told of Failed"},
	}
	ray := func(deployment, job string, more string) string {
		return `"status":{"jobDeploymentStatus":"` + deployment + `","jobStatus":"` + job + `","endTime":null,"message":null` + more + `}`
	}
	for kind, steps := range map[string][]step{
		"pytorchjobs.kubeflow.org": kubeflowSteps,
		"mpijobs.kubeflow.org":     kubeflowSteps,
		"trainjobs.trainer.kubeflow.org": {
			{`"spec":{"suspend":null}`, jobs.Submitted, ""},
			{`"spec":{"suspend":true},"status":{` + conditions("Suspended=True/Suspended") + `}`, jobs.Suspended, "Suspended/told of Suspended"},
			{`"status":{` + conditions("Suspended=False/Resumed") + `,"jobsStatus":[{"name":"node","ready":0,"active":1,"failed":0,"succeeded":0,"suspended":0}]}`, jobs.Pending, ""},
			{`"status":{"jobsStatus":[{"name":"node","ready":1,"active":1,"failed":0}]}`, jobs.Running, ""},
			{`"status":{"jobsStatus":[{"name":"node","ready":0,"active":0,"failed":1}]}`, jobs.Retrying, ""},
			{`"status":{"jobsStatus":null,` + conditions("Complete=True/AllJobsCompleted") + `}`, jobs.Succeeded, "AllJobsCompleted/told of Complete"},
			{`"status":{` + conditions("Failed=True/FailedJobs") + `}`, jobs.Failed, "FailedJobs/told of Failed"},
		},
		"rayjobs.ray.io": {
			{`"spec":{"suspend":true}`, jobs.Suspended, ""},
			{`"spec":{"suspend":false},"status":{}`, jobs.Submitted, ""},
			{ray("Initializing", "", ""), jobs.Pending, ""},
			{ray("Running", "PENDING", ""), jobs.Pending, ""},
			{ray("Running", "RUNNING", ""), jobs.Running, ""},
			{ray("Retrying", "FAILED", `,"failed":1`), jobs.Retrying, ""},
			{`"status":{"failed":1,"jobStatus":"","jobDeploymentStatus":""}`, jobs.Retrying, ""}, // a retry empties the rest
			{ray("Complete", "", ""), "", ""},
			{ray("Complete", "SUCCEEDED", ""), jobs.Succeeded, ""},
			{ray("Complete", "STOPPED", ""), jobs.Cancelled, ""},
			{`"status":{"jobDeploymentStatus":"ValidationFailed","reason":"ValidationFailed","message":"no such image"}`, jobs.Failed, "ValidationFailed/no such image"},
			{ray("Suspending", "RUNNING", ""), jobs.Suspended, ""},
			{ray("Tomorrow", "", ""), "", ""}, // what a later version may say
		},
		"workflows.argoproj.io": {
			{`"status":{"startedAt":null,"finishedAt":null}`, jobs.Submitted, ""},
			{`"spec":{"suspend":true},"status":{"phase":"Running","startedAt":"` + noon + `","finishedAt":null}`, jobs.Suspended, ""},
			{`"status":{"phase":"Pending","startedAt":null,"finishedAt":null}`, jobs.Pending, ""},
			{`"status":{"phase":"Running","startedAt":"` + noon + `","finishedAt":null}`, jobs.Running, ""},
			{`"status":{"phase":"Error","message":"pod deleted","finishedAt":"` + noon + `"}`, jobs.Failed, "Error/pod deleted"},
			{`"status":{"phase":"Running","finishedAt":null}`, jobs.Running, ""}, // argo retry
			{`"status":{"phase":"Succeeded","finishedAt":"` + noon + `"}`, jobs.Succeeded, ""},
		},
		"jobs.batch.volcano.sh": {
			{`"status":{"state":{"lastTransitionTime":null}}`, jobs.Submitted, ""},
			{`"status":{"state":{"phase":"Pending"},"pending":2}`, jobs.Pending, ""},
			{`"status":{"state":{"phase":"Running"},"pending":2,"running":null}`, jobs.Pending, ""},
			{`"status":{"state":{"phase":"Running"},"running":2}`, jobs.Running, ""},
			{`"status":{"state":{"phase":"Restarting","reason":"PodFailed","message":"worker-0"}}`, jobs.Retrying, "PodFailed/worker-0"},
			{`"status":{"state":{"phase":"Aborted"}}`, jobs.Suspended, ""},
			{`"status":{"state":{"phase":"Completing"}}`, "", ""},
			{`"status":{"state":{"phase":"Completed","lastTransitionTime":"` + noon + `"}}`, jobs.Succeeded, ""},
			{`"status":{"state":{"phase":"Terminated"}}`, jobs.Cancelled, ""},
		},
		"jobsets.jobset.x-k8s.io": {
			{`"spec":{}`, jobs.Submitted, ""},
			{`"spec":{"suspend":true},"status":{` + conditions("Suspended=True/SuspendedJobs") + `}`, jobs.Suspended, "SuspendedJobs/told of Suspended"},
			{`"status":{"restarts":0,"replicatedJobsStatus":[{"name":"w","ready":0,"active":1,"failed":0,"succeeded":0,"suspended":0}]}`, jobs.Pending, ""},
			{`"status":{"replicatedJobsStatus":[{"name":"w","ready":1,"active":1}]}`, jobs.Running, ""},
			{`"status":{"restarts":1,"replicatedJobsStatus":[{"name":"w","ready":0,"active":0}],` + conditions("RestartingJobSet=True/DefaultFailurePolicy") + `}`, jobs.Retrying, "DefaultFailurePolicy/told of RestartingJobSet"},
			{`"status":{"restarts":1,"terminalState":"Completed",` + conditions("Completed=True/AllJobsCompleted") + `}`, jobs.Succeeded, "AllJobsCompleted/told of Completed"},
			{`"status":{"terminalState":"Failed",` + conditions("Failed=True/ReachedMaxRestarts") + `}`, jobs.Failed, "ReachedMaxRestarts/told of Failed"},
		},
		"sparkapplications.sparkoperator.k8s.io": {
			{`"status":{"applicationState":{"state":""},"terminationTime":null,"lastSubmissionAttemptTime":null}`, jobs.Submitted, ""},
			{`"status":{"applicationState":{"state":"SUBMITTED"},"terminationTime":null}`, jobs.Pending, "SUBMITTED/"},
			{`"status":{"applicationState":{"state":"RUNNING","errorMessage":null},"terminationTime":null}`, jobs.Running, "RUNNING/"},
			{`"status":{"applicationState":{"state":"UNKNOWN"}}`, "", ""},
			{`"status":{"applicationState":{"state":"SUBMISSION_FAILED","errorMessage":"quota"},"terminationTime":null}`, jobs.Retrying, "SUBMISSION_FAILED/quota"},
			{`"status":{"applicationState":{"state":"SUCCEEDING"}}`, "", ""},
			{`"status":{"applicationState":{"state":"COMPLETED"},"terminationTime":"` + noon + `"}`, jobs.Succeeded, "COMPLETED/"},
			{`"status":{"applicationState":{"state":"FAILED","errorMessage":"driver"},"terminationTime":"` + noon + `"}`, jobs.Failed, "FAILED/driver"},
		},
		"pipelineruns.tekton.dev": {
			{`"spec":{}`, jobs.Submitted, ""},
			{`"spec":{"status":"PipelineRunPending"}`, jobs.Suspended, ""},
			{`"status":{"completionTime":null,` + conditions("Succeeded=Unknown/Started") + `}`, jobs.Pending, "Started/told of Succeeded"},
			{`"status":{` + conditions("Succeeded=Unknown/Running") + `}`, jobs.Running, "Running/told of Succeeded"},
			{`"status":{"completionTime":"` + noon + `",` + conditions("Succeeded=True/Completed") + `}`, jobs.Succeeded, "Completed/told of Succeeded"},
			{`"status":{"completionTime":"` + noon + `",` + conditions("Succeeded=False/PipelineRunTimeout") + `}`, jobs.Failed, "PipelineRunTimeout/told of Succeeded"},
		},
		"taskruns.tekton.dev": {
			{`"status":{` + conditions("Succeeded=Unknown/Pending") + `}`, jobs.Pending, "Pending/told of Succeeded"},
			{`"status":{` + conditions("Succeeded=Unknown/ToBeRetried") + `}`, jobs.Retrying, "ToBeRetried/told of Succeeded"},
		},
		"customruns.tekton.dev": {
			{`"spec":{"customRef":{"kind":"Approval"}}`, jobs.Submitted, ""},
			{`"status":{"startTime":null,` + conditions("Succeeded=Unknown/Waiting") + `}`, "", ""},
			{`"status":{"startTime":"` + noon + `",` + conditions("Succeeded=Unknown/Waiting") + `}`, jobs.Running, "Waiting/told of Succeeded"},
			{`"status":{"completionTime":"` + noon + `",` + conditions("Succeeded=False/CustomRunCancelled") + `}`, jobs.Cancelled, "CustomRunCancelled/told of Succeeded"},
			{`"status":{"completionTime":"` + noon + `",` + conditions("Succeeded=True/Approved") + `}`, jobs.Succeeded, "Approved/told of Succeeded"},
		},
		"leaderworkersets.leaderworkerset.x-k8s.io": {
			{`"spec":{"replicas":2}`, jobs.Submitted, ""},
			{`"spec":{"replicas":2},"status":{"replicas":2,"readyReplicas":0,` + conditions("Progressing=True/GroupsAreProgressing", "Available=False/x") + `}`, jobs.Pending, "GroupsAreProgressing/told of Progressing"},
			{`"spec":{"replicas":2},"status":{"replicas":2,"readyReplicas":1,` + conditions("Available=False/x") + `}`, jobs.Running, "Degraded/"},
			{`"spec":{"replicas":2},"status":{"replicas":2,"readyReplicas":2,` + conditions("Available=True/AllGroupsReady") + `}`, jobs.Running, ""},
			{`"status":{"replicas":1,"readyReplicas":1}`, jobs.Running, ""},
			{`"spec":{"replicas":0},"status":{"readyReplicas":0}`, jobs.Suspended, ""},
		},
		"rayclusters.ray.io": {
			{`"spec":{"suspend":true}`, jobs.Suspended, ""},
			{`"status":{"desiredWorkerReplicas":2,` + conditions("HeadPodReady=False/ContainersNotReady", "RayClusterProvisioned=False/RayClusterPodsProvisioning") + `}`, jobs.Pending, ""},
			{`"status":{"desiredWorkerReplicas":2,"readyWorkerReplicas":1,` + conditions("HeadPodReady=True/HeadPodRunningAndReady") + `}`, jobs.Running, "Degraded/"},
			{`"status":{"state":"ready","desiredWorkerReplicas":2,"availableWorkerReplicas":2}`, jobs.Running, ""},
			{`"status":{"state":"ready","desiredWorkerReplicas":2,"readyWorkerReplicas":2,` + conditions("HeadPodReady=True/HeadPodRunningAndReady", "ReplicaFailure=True/FailedCreateWorkerPod") + `}`, jobs.Running, "Degraded/told of ReplicaFailure"},
			{`"status":{"state":"failed","reason":"quota",` + conditions("HeadPodReady=False/x") + `}`, jobs.Pending, "/quota"},
		},
		"rayservices.ray.io": {
			{`"status":{"serviceStatus":"","pendingServiceStatus":{"rayClusterName":"s-1"},` + conditions("Ready=False/Initializing") + `}`, jobs.Pending, ""},
			{`"status":{"serviceStatus":"Running",` + conditions("Ready=True/NonZeroServeEndpoints") + `}`, jobs.Running, "NonZeroServeEndpoints/told of Ready"},
			{`"status":{"serviceStatus":"Running"}`, jobs.Running, ""}, // before there were conditions
			{`"status":{"serviceStatus":"Running",` + conditions("Ready=False/ZeroServeEndpoints") + `}`, jobs.Pending, ""},
		},
		"workloads.kueue.x-k8s.io": {
			{`"spec":{"queueName":"q","active":true}`, jobs.Submitted, ""},
			{`"status":{` + conditions("QuotaReserved=False/Pending") + `}`, jobs.Queued, "Pending/told of QuotaReserved"},
			{`"status":{` + conditions("QuotaReserved=True/QuotaReserved", "Admitted=True/Admitted") + `}`, jobs.Pending, ""},
			{`"status":{` + conditions("Admitted=True/Admitted", "PodsReady=False/WaitForStart") + `}`, jobs.Pending, ""},
			{`"status":{` + conditions("Admitted=True/Admitted", "PodsReady=True/Started") + `}`, jobs.Running, "Started/told of PodsReady"},
			{`"status":{` + conditions("Admitted=True/Admitted", "PodsReady=True/Started", "Evicted=True/Preempted") + `}`, jobs.Queued, "Preempted/told of Evicted"},
			{`"spec":{"active":false},"status":{` + conditions("Admitted=True/Admitted", "Evicted=True/DeactivatedDueToRequeuingLimitExceeded") + `}`, jobs.Suspended, "DeactivatedDueToRequeuingLimitExceeded/told of Evicted"},
			{`"spec":{"active":false}`, jobs.Suspended, "Deactivated/"},
			{`"status":{` + conditions("Admitted=True/Admitted", "Finished=True/Failed") + `}`, jobs.Failed, "Failed/told of Finished"},
			{`"status":{` + conditions("Finished=True/OutOfSync") + `}`, jobs.Cancelled, "OutOfSync/told of Finished"},
			{`"status":{` + conditions("Admitted=True/Admitted", "Finished=True/Succeeded") + `}`, jobs.Succeeded, "Succeeded/told of Finished"},
		},
		"appwrappers.workload.codeflare.dev": {
			{`"spec":{"suspend":true},"status":{"phase":""}`, jobs.Suspended, ""},
			{`"status":{"phase":"Resuming"}`, jobs.Pending, ""},
			{`"status":{"phase":"Running",` + conditions("PodsReady=False/InsufficientPodsReady") + `}`, jobs.Pending, ""},
			{`"status":{"phase":"Running",` + conditions("PodsReady=True/SufficientPodsReady") + `}`, jobs.Running, ""},
			{`"status":{"phase":"Resetting"}`, jobs.Retrying, ""},
			{`"status":{"phase":"Terminating"}`, "", ""},
			{`"status":{"phase":"Failed",` + conditions("Unhealthy=True/FoundFailedPods") + `}`, jobs.Failed, "FoundFailedPods/told of Unhealthy"},
			{`"status":{"phase":"Succeeded"}`, jobs.Succeeded, ""},
		},
	} {
		r := rule(t, kind)
		for _, s := range steps {
			said, err := r.Read(object(t, s.members), nil)
			if err != nil || said.State != s.want {
				t.Errorf("%s %s: %q, %v; not %q", kind, s.members, said.State, err, s.want)
				continue
			}
			if details := said.Reason + "/" + said.Message; s.details != "" && details != s.details || s.want != "" && s.details == "" && details != "/" {
				t.Errorf("%s %s: reason and message %q, not %q", kind, s.members, details, s.details)
			}
			if strings.Contains(s.members, noon) && said.State.Ended() && !strings.Contains(kind, "appwrapper") && said.At != atNoon {
				t.Errorf("%s %s: at %v, which the object claims to be %v", kind, s.members, said.At, atNoon)
			}
		}
	}
}

// Every rule gets along with an object of which nothing is there, and with one of which everything is null.
func TestNoReadyMadeRuleFailsOnWhatIsMissing(t *testing.T) {
	for _, kind := range Ready() {
		for _, members := range []string{``, `"spec":null,"status":null`, `"spec":{},"status":{}`, `"status":{"conditions":null,"state":null,"phase":null,"applicationState":null,"jobsStatus":null,"replicatedJobsStatus":null,"jobDeploymentStatus":null}`} {
			if said, err := rule(t, kind).Read(object(t, members), nil); err != nil || said.State != jobs.Submitted {
				t.Errorf("%s %s: %q, %v", kind, members, said.State, err)
			}
		}
	}
}

func TestOwnersAndQueues(t *testing.T) {
	const metadata = `"name":"j","namespace":"n","uid":"u","resourceVersion":"5"`
	own, err := New(Options{Key: "history", Owner: `object.metadata.annotations['example.org/user']`})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rule         *Rule
		metadata     string
		owner, queue string
		fails        bool
	}{
		{rule(t, Jobs), ``, "", "", false},
		{rule(t, Jobs), `,"labels":{"kubecast.io/owner":"ann"}`, "ann", "", false},
		{rule(t, Jobs), `,"labels":{"kubecast.io/owner":"ann"},"annotations":{"kubecast.io/owner":"ann@example.org"}`, "ann@example.org", "", false},
		{rule(t, Jobs), `,"labels":{"workflows.argoproj.io/creator":"ann","volcano.sh/queue-name":"v","kueue.x-k8s.io/queue-name":"k"}`, "", "k", false},
		{rule(t, Jobs), `,"labels":{"volcano.sh/queue-name":"v"}`, "", "v", false},
		{rule(t, "workflows.argoproj.io"), `,"labels":{"workflows.argoproj.io/creator":"ann"}`, "ann", "", false},
		{own.For(Jobs), `,"annotations":{"example.org/user":"bob","kubecast.io/owner":"ann"}`, "bob", "", false},
		{own.For(Jobs), `,"annotations":{"kubecast.io/owner":"ann"}`, "", "", true}, // nobody else than who was asked for
	} {
		said, err := test.rule.Read(objectWith(t, metadata+test.metadata, ""), nil)
		if said.Owner != test.owner || said.Queue != test.queue || (err != nil) != test.fails || said.State != jobs.Submitted {
			t.Errorf("%s: %+v, %v", test.metadata, said, err)
		}
	}
	// An owner's expression gets the state that the object says, of every kind.
	states, err := New(Options{Key: "history", Owner: `state`})
	if err != nil {
		t.Fatal(err)
	}
	said, err := states.For(Jobs).Read(object(t, `"spec":{"suspend":true}`), jobIn(jobs.Running))
	if err != nil || said.Owner != string(jobs.Suspended) {
		t.Errorf("an owner by state: %q, %v", said.Owner, err)
	}
	volcano, err := rule(t, "jobs.batch.volcano.sh").Read(object(t, `"spec":{"queue":"gpu"}`), nil)
	if err != nil || volcano.Queue != "gpu" {
		t.Errorf("Volcano's own queue: %q, %v", volcano.Queue, err)
	}
}

// A message at the start names the key that is wrong.
func TestWrongRulesAreNamed(t *testing.T) {
	for want, opts := range map[string]Options{
		"history.owner: ":                         {Owner: `object.`},
		"history.kinds[0].resource: is missing":   {Kinds: []KindRules{{}}},
		"history.kinds[0].resource: jobs.batch":   {Kinds: []KindRules{{Resource: Jobs}}},
		"history.kinds[1].resource: ":             {Kinds: []KindRules{{Resource: "rayjobs.ray.io"}, {Resource: "rayjobs.ray.io"}}},
		"history.kinds[0].state: is missing":      {Kinds: []KindRules{{Resource: "things.example.org"}}},
		"history.kinds[0].state: ERROR":           {Kinds: []KindRules{{Resource: "things.example.org", State: `phase`}}},
		"history.kinds[0].state: \"Runing\"":      {Kinds: []KindRules{{Resource: "things.example.org", State: `object.x ? 'Runing' : ''`}}},
		"history.kinds[0].state: \"Deleted\"":     {Kinds: []KindRules{{Resource: "things.example.org", State: `'Deleted'`}}},
		"history.kinds[0].reason: \"1 + 2\" give": {Kinds: []KindRules{{Resource: "rayjobs.ray.io", Reason: `1 + 2`}}},
		"history.kinds[0].queue: ":                {Kinds: []KindRules{{Resource: "rayjobs.ray.io", Queue: `object.condition(7)`}}},
	} {
		opts.Key = "history"
		if _, err := New(opts); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, not %s…", err, want)
		}
	}
}

// A configured kind gets objects without nulls, numbers that can be compared, and what the job was;
// what fails says nothing.
func TestConfiguredRules(t *testing.T) {
	set, err := New(Options{Key: "history", Kinds: []KindRules{
		{Resource: "things.example.org", State: `!has(object.status) ? '' : object.status.done == 3 ? 'Succeeded' : state == 'Suspended' ? 'Pending' : object.status.phase`,
			Reason: `object.status.reason`, Message: `state + '!'`, Queue: `object.spec.pool`},
		{Resource: "rayjobs.ray.io", Reason: `'mine'`},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := set.For("things.example.org")
	for _, test := range []struct {
		members string
		was     jobs.State
		want    jobs.Said
		wrong   string
	}{
		{`"spec":{"pool":"p"},"status":{"done":3,"reason":"ok"}`, "", jobs.Said{State: jobs.Succeeded, Reason: "ok", Message: "Succeeded!", Queue: "p"}, ""},
		{`"spec":{"pool":"p"},"status":{"done":2.5,"phase":"Running"}`, "", jobs.Said{State: jobs.Running, Message: "Running!", Queue: "p"}, "reason: no such key: reason"},
		{`"status":null`, jobs.Running, jobs.Said{}, ""},
		{`"spec":{"pool":"p"},"status":{"done":1,"reason":"x"}`, jobs.Suspended, jobs.Said{State: jobs.Pending, Reason: "x", Message: "Pending!", Queue: "p"}, ""},
		{`"status":{"done":1,"phase":"running"}`, jobs.Running, jobs.Said{}, `state: no state: "running"`},
		{`"status":{"done":1,"phase":7}`, jobs.Running, jobs.Said{}, "state: it is of type int"},
		{`"status":{}`, jobs.Running, jobs.Said{}, "state: no such key: done"},
	} {
		said, err := r.Read(object(t, test.members), jobIn(test.was))
		if diff := cmp.Diff(test.want, said); diff != "" {
			t.Errorf("%s: %s", test.members, diff)
		}
		if test.wrong == "" && err != nil || test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) {
			t.Errorf("%s: error %v, not %q", test.members, err, test.wrong)
		}
	}
	if said, err := set.For("rayjobs.ray.io").Read(object(t, `"status":{"jobDeploymentStatus":"Failed","reason":"theirs"}`), nil); err != nil || said.State != jobs.Failed || said.Reason != "mine" {
		t.Errorf("a ready-made rule with a reason of one's own: %+v, %v", said, err)
	}
}

// A user who can write objects cannot keep the recorder busy with one of them.
func TestEvaluationsAreBounded(t *testing.T) {
	set, err := New(Options{Key: "history", Kinds: []KindRules{{Resource: "things.example.org",
		State: `object.spec.all.all(a, object.spec.all.exists(b, object.condition(string(a + b)).status == 'x')) ? 'Running' : 'Failed'`}}})
	if err != nil {
		t.Fatal(err)
	}
	numbers := strings.TrimSuffix(strings.Repeat("1,", 20_000), ",")
	members := `"spec":{"all":[` + numbers + `]},"status":{"conditions":[` + strings.TrimSuffix(strings.Repeat(`{"type":"t"},`, 20_000), ",") + `]}`
	began := time.Now()
	said, err := set.For("things.example.org").Read(object(t, members), nil)
	if err == nil || !strings.Contains(err.Error(), "cost") || said.State != "" {
		t.Errorf("%+v, %v", said, err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Requests are those of all pods that run at once, with limits where there are no requests.
func TestRequestsAreThoseOfAllPodsTogether(t *testing.T) {
	const pod = `"spec":{"initContainers":[{"name":"i","resources":{"requests":{"cpu":"3"}}},{"name":"s","restartPolicy":"Always","resources":{"requests":{"cpu":"500m"}}}],
		"containers":[{"name":"c","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"4","memory":"1Gi","nvidia.com/gpu":1}}},{"name":"d","resources":null}]}`
	gpus := func(n int) string {
		return fmt.Sprintf(`"template":{"spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"%d"}}}]}}`, n)
	}
	for _, test := range []struct {
		spec string
		want map[string]string
	}{
		{`{}`, nil},
		{`{"template":{"spec":{"containers":[{"name":"c"}]}}}`, nil},
		{`{"template":{` + pod + `}}`, map[string]string{"cpu": "3", "memory": "1Gi", "nvidia.com/gpu": "1"}},
		{`{"parallelism":8,"completions":4,"template":{` + pod + `}}`, map[string]string{"cpu": "12", "memory": "4Gi", "nvidia.com/gpu": "4"}},
		{`{"parallelism":3,"completions":null,"template":{` + pod + `}}`, map[string]string{"cpu": "9", "memory": "3Gi", "nvidia.com/gpu": "3"}},
		{`{"parallelism":0,` + gpus(1) + `}`, map[string]string{"nvidia.com/gpu": "0"}},
		// PyTorchJob, RayJob, JobSet, Volcano.
		{`{"pytorchReplicaSpecs":{"Master":{"replicas":1,` + gpus(1) + `},"Worker":{"replicas":3,` + gpus(8) + `}}}`, map[string]string{"nvidia.com/gpu": "25"}},
		{`{"rayClusterSpec":{"headGroupSpec":{` + gpus(0) + `},"workerGroupSpecs":[{"replicas":2,` + gpus(4) + `},{"replicas":1,` + gpus(2) + `}]}}`, map[string]string{"nvidia.com/gpu": "10"}},
		{`{"replicatedJobs":[{"name":"w","replicas":2,"template":{"spec":{"parallelism":4,"completions":4,` + gpus(8) + `}}}]}`, map[string]string{"nvidia.com/gpu": "64"}},
		{`{"tasks":[{"replicas":2,` + gpus(1) + `},{"replicas":-1,` + gpus(1) + `}]}`, map[string]string{"nvidia.com/gpu": "2"}},
		{`{"template":{"spec":{"containers":["what a CRD may take"]}}}`, nil},
	} {
		got := requestsOf(object(t, `"spec":`+test.spec))
		if !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, not %v", test.spec, got, test.want)
		}
	}
}

// Whatever an object holds, a rule says a state or nothing, and does not fail otherwise than by an error.
func FuzzRulesTakeAnyObject(f *testing.F) {
	f.Add(`{"phase":"Running"}`, `{"suspend":1}`)
	f.Add(`{"conditions":[{"type":"Failed","status":"True"}],"jobsStatus":[{"ready":"x"}]}`, `{"template":{"spec":{"containers":[{}]}},"parallelism":1e300}`)
	f.Add(`{"conditions":{"a":1},"state":[1],"applicationState":"x"}`, `[]`)
	set, err := readySet()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, status, spec string) {
		if !json.Valid([]byte(status)) || !json.Valid([]byte(spec)) {
			return
		}
		o := object(t, `"status":`+status+`,"spec":`+spec)
		for _, kind := range set.Kinds() {
			said, _ := set.For(kind).Read(o, nil)
			if said.State != "" && !said.State.Valid() || said.State == jobs.Deleted {
				t.Errorf("%s: %q", kind, said.State)
			}
		}
	})
}

// jobIn is a job in a state; nil for one that was never seen.
func jobIn(state jobs.State) *jobs.Job {
	if state == "" {
		return nil
	}
	return &jobs.Job{State: state}
}

func TestDeadlinesAreWhereKindsHaveThem(t *testing.T) {
	for spec, want := range map[string]time.Duration{
		`"activeDeadlineSeconds":90`:                  90 * time.Second,
		`"runPolicy":{"activeDeadlineSeconds":8}`:     8 * time.Second,
		`"timeout":"1h30m"`:                           90 * time.Minute,
		`"timeouts":{"pipeline":"8s"}`:                8 * time.Second,
		`"activeDeadlineSeconds":9223372036854775807`: 0,
		`"timeout":"-1h","activeDeadlineSeconds":-3`:  0,
		`"timeout":{}`:                                0,
	} {
		o, err := cluster.NewObject(`{"metadata":{"name":"x","resourceVersion":"1"},"spec":{` + spec + `}}`)
		if err != nil {
			t.Fatal(err)
		}
		if deadline := Deadline(o); deadline != want {
			t.Errorf("%s: %s, not %s", spec, deadline, want)
		}
	}
}
