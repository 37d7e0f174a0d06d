package reasons

import (
	"fmt"
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
)

// What objects say, as their controllers write them; most say nothing for most of their lives.
func TestObjectsSayWhyTheirJobWaits(t *testing.T) {
	conditions := func(texts ...string) string {
		all := ""
		for i := 0; i < len(texts); i += 4 {
			all += fmt.Sprintf(`,{"type":%q,"status":%q,"reason":%q,"message":%q,"lastTransitionTime":"2026-01-02T03:04:05Z"}`, texts[i], texts[i+1], texts[i+2], texts[i+3])
		}
		return `"conditions":[` + all[1:] + `]`
	}
	ended := func(name, reason string, code int, at string) string {
		return fmt.Sprintf(`{"name":%q,"state":{"terminated":{"exitCode":%d,"reason":%q,"finishedAt":"2026-01-02T03:04:%sZ"}}}`, name, code, reason, at)
	}
	for _, test := range []struct{ kind, status, want string }{
		{"pods", `"phase":"Pending",` + conditions("PodScheduled", "False", "Unschedulable", "0/3 nodes"), "Pod Unschedulable 0/3 nodes 1767323045000"},
		{"pods", `"phase":"Pending",` + conditions("PodScheduled", "False", "SchedulingGated", "gates"), "Pod SchedulingGated gates 1767323045000"},
		{"pods", `"phase":"Pending",` + conditions("PodScheduled", "True", "", "") + `,"containerStatuses":[{"state":{"waiting":{"reason":"ContainerCreating"}}}]`, ""},
		{"pods", `"phase":"Pending","containerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff","message":"of x"}}}]`, "Pod ImagePullBackOff of x 0"},
		{"pods", `"phase":"Pending","initContainerStatuses":[{"state":{"waiting":{"reason":"CrashLoopBackOff","message":"i"}}}],"containerStatuses":[{"state":{"waiting":{"reason":"PodInitializing"}}}]`, "Pod CrashLoopBackOff i 0"},
		{"pods", `"phase":"Running","containerStatuses":[{"state":{"running":{}}}]`, ""},
		{"pods", `"phase":"Failed","containerStatuses":[{"name":"main","state":{"terminated":{"exitCode":137,"reason":"OOMKilled","finishedAt":"2026-01-02T03:04:05Z"}}}]`,
			"Pod OOMKilled container main ended with exit code 137 1767323045000"},
		{"pods", `"phase":"Failed","reason":"Evicted","message":"disk"`, "Pod Evicted disk 0"},
		// The kubelet ends sidecars once the work is over: how they end hides nothing.
		{"pods", `"phase":"Failed","initContainerStatuses":[` + ended("sidecar", "Error", 143, "06") + `],"containerStatuses":[` + ended("main", "OOMKilled", 137, "05") + `]`,
			"Pod OOMKilled container main ended with exit code 137 1767323045000"},
		{"pods", `"phase":"Failed","initContainerStatuses":[` + ended("sidecar", "Error", 143, "06") + `],"containerStatuses":[` + ended("main", "Completed", 0, "05") + `]`,
			"Pod Error container sidecar ended with exit code 143 1767323046000"},
		{"pods", `"phase":"Failed","initContainerStatuses":[` + ended("sidecar", "Error", 143, "06") + "," + ended("first", "Error", 2, "05") + `],"containerStatuses":[{"name":"main","state":{"waiting":{"reason":"PodInitializing"}}}]`,
			"Pod Error container first ended with exit code 2 1767323045000"},
		{"pods", `"phase":"Failed","containerStatuses":[` + ended("proxy", "Error", 143, "07") + "," + ended("main", "OOMKilled", 137, "05") + `]`,
			"Pod OOMKilled container main ended with exit code 137 1767323045000"},
		{"pods", `"phase":"Failed","initContainerStatuses":[` + ended("first", "Error", 2, "05") + `],"containerStatuses":[` + ended("main", "ContainerStatusUnknown", 137, "04") + `]`,
			"Pod Error container first ended with exit code 2 1767323045000"},
		{"pods", `"phase":"Pending","initContainerStatuses":[{"name":"sidecar","state":{"waiting":{"reason":"CrashLoopBackOff","message":"s"}}}],"containerStatuses":[{"name":"main","state":{"waiting":{"reason":"ImagePullBackOff","message":"m"}}}]`,
			"Pod ImagePullBackOff m 0"},
		{"pods", `"phase":"Succeeded","containerStatuses":[{"state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]`, ""},
		{"workloads.kueue.x-k8s.io", conditions("QuotaReserved", "False", "Pending", "insufficient quota"), "Workload Pending insufficient quota 1767323045000"},
		{"workloads.kueue.x-k8s.io", conditions("Evicted", "True", "Preempted", "by w", "QuotaReserved", "False", "Pending", "by w"), "Workload Preempted by w 1767323045000"},
		{"workloads.kueue.x-k8s.io", conditions("Evicted", "True", "Preempted", "by w", "QuotaReserved", "False", "NoMatchingFlavor", "none"), "Workload NoMatchingFlavor none 1767323045000"},
		{"workloads.kueue.x-k8s.io", conditions("QuotaReserved", "True", "QuotaReserved", "q", "Admitted", "True", "Admitted", "a"), ""},
		{"workloads.kueue.x-k8s.io", conditions("QuotaReserved", "True", "QuotaReserved", "q") + `,"admissionChecks":[{"name":"a","state":"Ready"},{"name":"prov","state":"Pending","message":"m"}]`,
			"Workload AdmissionCheckPending prov: m 0"},
		{"workloads.kueue.x-k8s.io", conditions("QuotaReserved", "True", "QuotaReserved", "q") + `,"admissionChecks":[{"name":"a","state":"Pending"},{"name":"b","state":"Retry","message":"m"},{"name":"c","state":"Retry"},{"name":"d","state":"Ready"}]`,
			"Workload AdmissionCheckRetry b: m 0"},
		{"workloads.kueue.x-k8s.io", conditions("QuotaReserved", "True", "QuotaReserved", "q") + `,"admissionChecks":[{"name":"b","state":"Retry"},{"name":"c","state":"Rejected"}]`, "Workload AdmissionCheckRejected c 0"},
		{"workloads.kueue.x-k8s.io", conditions("QuotaReserved", "True", "QuotaReserved", "q", "Admitted", "True", "Admitted", "a", "Evicted", "True", "Preempted", "by w"), "Workload Preempted by w 1767323045000"},
		{"workloads.kueue.x-k8s.io", conditions("QuotaReserved", "True", "QuotaReserved", "q", "Admitted", "True", "Admitted", "a", "Evicted", "False", "QuotaReserved", "Previously: by w"), ""},
		{"workloads.kueue.x-k8s.io", conditions("QuotaReserved", "True", "QuotaReserved", "q", "Finished", "True", "Succeeded", "", "Evicted", "True", "Preempted", "by w"), ""},
		{"workloads.kueue.x-k8s.io", conditions("QuotaReserved", "True", "QuotaReserved", "q", "Admitted", "False", "PendingDelayedTopologyRequests", "not all"), "Workload PendingDelayedTopologyRequests not all 1767323045000"},
		{"workloads.kueue.x-k8s.io", conditions("QuotaReserved", "True", "QuotaReserved", "q", "Admitted", "False", "UnsatisfiedChecks", "u") + `,"admissionChecks":[{"name":"a","state":"Ready"}]`, ""},
		{"workloads.kueue.x-k8s.io", conditions("QuotaReserved", "True", "QuotaReserved", "q", "Admitted", "True", "Admitted", "a", "PodsReady", "False", "WaitForStart", "not all pods"), "Workload WaitForStart not all pods 1767323045000"},
		{"workloads.kueue.x-k8s.io", conditions("QuotaReserved", "True", "QuotaReserved", "q", "Admitted", "True", "Admitted", "a", "PodsReady", "False", "WaitForRecovery", "a pod failed"), "Workload WaitForRecovery a pod failed 1767323045000"},
		{"workloads.kueue.x-k8s.io", conditions("QuotaReserved", "True", "QuotaReserved", "q", "Admitted", "True", "Admitted", "a", "PodsReady", "True", "Started", "all"), ""},
		{"workloads.kueue.x-k8s.io", conditions("QuotaReserved", "False", "Pending", "no quota", "PodsReady", "False", "WaitForStart", "not all pods"), "Workload Pending no quota 1767323045000"},
		{"workloads.kueue.x-k8s.io", `"x":1`, ""},
		{"podgroups.scheduling.volcano.sh", `"phase":"Inqueue",` + conditions("Unschedulable", "True", "NotEnoughResources", "3/4"), "PodGroup NotEnoughResources 3/4 1767323045000"},
		{"provisioningrequests.autoscaling.x-k8s.io", conditions("Accepted", "True", "Accepted", "a", "Provisioned", "False", "CapacityIsNotFound", "tried later"), "ProvisioningRequest CapacityIsNotFound tried later 1767323045000"},
		{"provisioningrequests.autoscaling.x-k8s.io", conditions("Provisioned", "False", "x", "y", "Failed", "True", "", "no such class"), "ProvisioningRequest Failed no such class 1767323045000"},
		{"provisioningrequests.autoscaling.x-k8s.io", conditions("Provisioned", "True", "Provisioned", "p", "BookingExpired", "True", "BookingExpired", "10 minutes"), "ProvisioningRequest BookingExpired 10 minutes 1767323045000"},
		{"provisioningrequests.autoscaling.x-k8s.io", conditions("Accepted", "True", "Accepted", "a", "Provisioned", "True", "Provisioned", "p"), ""},
		{"provisioningrequests.autoscaling.x-k8s.io", conditions("Accepted", "True", "Accepted", "a"), ""},
		{"podgroups.scheduling.volcano.sh", `"phase":"Pending"`, "PodGroup Pending the queue default has not let it in yet 0"},
		{"podgroups.scheduling.volcano.sh", `"phase":"Inqueue"`, "PodGroup Inqueue the queue default has let it in, and its pods are waited for 0"},
		{"podgroups.scheduling.volcano.sh", `"phase":"Pending",` + conditions("Unschedulable", "True", "NotEnoughResources", "3/4"), "PodGroup NotEnoughResources 3/4 1767323045000"},
		{"podgroups.scheduling.volcano.sh", `"phase":"Pending",` + conditions("Unschedulable", "True", "", "3/4"), "PodGroup Pending the queue default has not let it in yet 0"},
		{"podgroups.scheduling.volcano.sh", `"phase":"Completed"`, ""},
		{"podgroups.scheduling.volcano.sh", `"phase":"Running",` + conditions("Unschedulable", "True", "NotEnoughResources", "3/4"), ""},
		// Coscheduling's have phases of the same names, and no queues.
		{"podgroups.scheduling.x-k8s.io", `"phase":"Pending"`, ""},
		{"podgroups.scheduling.x-k8s.io", `"phase":"Inqueue"`, ""},
		{"podgroups.scheduling.x-k8s.io", `"phase":"Pending",` + conditions("Unschedulable", "True", "NotEnoughResources", "3/4"), "PodGroup NotEnoughResources 3/4 1767323045000"},
		{"podgroups.scheduling.k8s.io", `"phase":"Pending"`, ""},
		{"podgroups.scheduling.k8s.io", conditions("PodGroupInitiallyScheduled", "False", "Unschedulable", "no room"), "PodGroup Unschedulable no room 1767323045000"},
		{"podgroups.scheduling.k8s.io", conditions("PodGroupInitiallyScheduled", "True", "Scheduled", ""), ""},
	} {
		o, err := cluster.NewObject(`{"metadata":{"name":"x","resourceVersion":"1"},"spec":{"initContainers":[{"name":"sidecar","restartPolicy":"Always"},{"name":"first"}]},"status":{` + test.status + `}}`)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, s := range explaining {
			if s.kind != test.kind {
				continue
			}
			if said, ok := s.says(o); ok {
				got = fmt.Sprint(said.Source, " ", said.Reason.Reason, " ", said.Message, " ", int64(said.At))
			}
		}
		if got != test.want {
			t.Errorf("%s %s: %q, not %q", test.kind, test.status, got, test.want)
		}
	}
}

// Whatever strangers write into an object's status, it can be read.
func FuzzStatus(f *testing.F) {
	f.Add(`{"conditions":[{"type":"PodScheduled","status":"False","reason":7}],"containerStatuses":{"state":[]}}`)
	f.Fuzz(func(t *testing.T, status string) {
		o, err := cluster.NewObject(`{"metadata":{"name":"x","resourceVersion":"1"},"status":` + status + `}`)
		if err != nil {
			return
		}
		for _, s := range explaining {
			if said, ok := s.says(o); ok && (said.Reason.Reason == "" || said.weight == 0) {
				t.Errorf("%s: %+v", s.kind, said)
			}
		}
	})
}

// What Kueue has given up is said to be, whatever else its Workload says, until somebody activates it again.
func TestAWorkloadThatIsGivenUpSaysSo(t *testing.T) {
	pending := `{"type":"QuotaReserved","status":"False","reason":"Pending","message":"no quota"}`
	evicted := func(reason string) string {
		return `,{"type":"Evicted","status":"True","reason":"` + reason + `","message":"m"}`
	}
	for spec, want := range map[string]string{
		`{"active":true},"status":{"conditions":[` + pending + `]}`:  "Pending no quota",
		`{"active":false},"status":{"conditions":[` + pending + `]}`: "Deactivated the workload is deactivated",
		`{"active":false}`: "Deactivated the workload is deactivated",
		`{"active":false},"status":{"conditions":[` + pending + evicted("DeactivatedDueToRequeuingLimitExceeded") + `]}`: "DeactivatedDueToRequeuingLimitExceeded m",
		`{"active":false},"status":{"conditions":[` + pending + evicted("Preempted") + `]}`:                              "Deactivated the workload is deactivated",
		`{"active":false},"status":{"conditions":[{"type":"Finished","status":"True","reason":"Succeeded"}]}`:            "",
		`{"active":true},"status":{"conditions":[` + pending + evicted("DeactivatedDueToRequeuingLimitExceeded") + `]}`:  "Pending no quota",
		`{"active":true},"status":{"conditions":[` + pending + evicted("Preempted") + `]}`:                               "Preempted m",
		`{},"status":{"conditions":[` + pending + `]}`:                                                                   "Pending no quota",
	} {
		o, err := cluster.NewObject(`{"metadata":{"name":"x","resourceVersion":"1"},"spec":` + spec + `}`)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if said, ok := workload(o); ok {
			got = said.Reason.Reason + " " + said.Message
		}
		if got != want {
			t.Errorf("%s: %q, not %q", spec, got, want)
		}
	}
}
