package jobs

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Autoscalers' messages, as they stood in Events of real clusters, are told in plain words; what nobody knows as it is.
func TestAnAutoscalersMessageIsToldInWords(t *testing.T) {
	for _, test := range []struct{ reason, message, want string }{
		{"TriggeredScaleUp", "pod triggered scale-up: [{gpu-pool 1->2 (max: 8)}]", "nodes are being added: gpu-pool from 1 to 2 (of at most 8)"},
		{"TriggeredScaleUp", "pod triggered scale-up: [{https://www.googleapis.com/compute/v1/projects/p/zones/us-east4-a/instanceGroups/gke-l4-2-grp 1->2 (max: 20)} {b 0->3 (max: 3)}]",
			"nodes are being added: gke-l4-2-grp from 1 to 2 (of at most 20), b from 0 to 3 (of at most 3)"},
		{"TriggeredScaleUp", "3 of 4 pods: pod triggered scale-up: [{default-worker-bf5999ab 1->3 (max: 5)}]", "3 of 4 pods: nodes are being added: default-worker-bf5999ab from 1 to 3 (of at most 5)"},
		{"TriggeredScaleUp", "pod triggered scale-up, group: g, sizes (current/new): 3/4", "pod triggered scale-up, group: g, sizes (current/new): 3/4"},
		{"NotTriggerScaleUp", "pod didn't trigger scale-up: 1 node(s) had untolerated taint(s), 3 max node group size reached",
			"no node is added: as many nodes as the group may have (3 groups), a taint is not tolerated (1 group)"},
		{"NotTriggerScaleUp", "pod didn't trigger scale-up: 6 node(s) had volume node affinity conflict, 2 in backoff after failed scale-up",
			"no node is added: its volume is elsewhere (6 groups), nodes could not be added a while ago, so it waits before it tries again (2 groups)"},
		{"NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max cluster cpu, memory limit reached, 2 Insufficient nvidia.com/gpu",
			"no node is added: too little nvidia.com/gpu free (2 groups), as much cpu and memory as the cluster may have (1 group)"},
		{"NotTriggerScaleUp", "pod didn't trigger scale-up: max total nodes in cluster reached", "no node is added: as many nodes as the cluster may have"},
		{"NotTriggerScaleUp", "pod didn't trigger scale-up:", "no node is added: none of those that could be would take it"},
		{"NotTriggerScaleUp", "pod didn't trigger scale-up (it wouldn't fit if a new node is added)", "no node is added: none of those that could be would take it"},
		{"NotTriggerScaleUp", "(combined from similar events): pod didn't trigger scale-up: 1 in backoff after failed scale-up, 6 node(s) had taint {workload: always-on}, that the pod didn't tolerate, 3 node(s) had taint {workload: mog}, that the pod didn't tolerate, 4 node(s) had volume node affinity conflict, 1 node(s) didn't match pod topology spread constraints",
			"no node is added: taint workload=always-on is not tolerated (6 groups), its volume is elsewhere (4 groups), taint workload=mog is not tolerated (3 groups), nodes could not be added a while ago, so it waits before it tries again (1 group), and 1 more"},
		{"FailedScaleUp", "Node scale up in zones australia-southeast1-b associated with this pod failed: IP space exhausted. Pod is at risk of not being scheduled.",
			"nodes could not be added in australia-southeast1-b: IP space exhausted"},
		{"FailedScaleUp", "Node scale up failed", "Node scale up failed"},
		{"Nominated", "Pod should schedule on: nodeclaim/gpu-inf-dynamic-ggsvc", "a node is being added: gpu-inf-dynamic-ggsvc"},
		{"Nominated", "Pod should schedule on: nodeclaim/default-tn8fg, node/ip-10-0-1-23.ec2.internal", "a node is kept for it: ip-10-0-1-23.ec2.internal"},
		{"Nominated", "Pod should schedule on: ", "Pod should schedule on:"},
		{"FailedScheduling", `Failed to schedule pod, incompatible with nodepool "system", daemonset overhead={"cpu":"821m","memory":"1350Mi","pods":"10"}, incompatible requirements, label "nvidia.com/device-plugin.config" does not have known values; incompatible with nodepool "runner-arm", daemonset overhead={"pods":"2"}, did not tolerate workload-type=ci-runner:NoSchedule; all available instance types exceed limits for nodepool: "graviton"`,
			"no node is added: NodePool system: no nodes with the label nvidia.com/device-plugin.config, NodePool runner-arm: taint workload-type=ci-runner:NoSchedule is not tolerated, NodePool graviton: its limit is reached"},
		{"FailedScheduling", `Failed to schedule pod, incompatible with provisioner "dev", daemonset overhead={"cpu":"150m","pods":"3"}, did not tolerate dedicated=dev:NoSchedule`, "no node is added: NodePool dev: taint dedicated=dev:NoSchedule is not tolerated"},
		{"FailedScheduling", "Failed to schedule pod, all available instance types exceed limits for nodepool (NodePool=ec2nodepool)", "no node is added: NodePool ec2nodepool: its limit is reached"},
		{"FailedScheduling", `Failed to schedule pod, did not tolerate taint (taint=porter.run/node-group-id=37a3:NoSchedule); no instance type has enough resources, requirements=kubernetes.io/os In [linux], resources={"cpu":"705m","memory":"873760Ki","pods":"8"}`,
			"no node is added: taint porter.run/node-group-id=37a3:NoSchedule is not tolerated, no type of machine is large enough"},
		{"FailedScheduling", "Failed to schedule pod, incompatible requirements, key karpenter.sh/nodepool, karpenter.sh/nodepool In [no-such-pool] not in karpenter.sh/nodepool In [standard]",
			"no node is added: karpenter.sh/nodepool is to be In [no-such-pool], and is In [standard]"},
		{"FailedScheduling", "Failed to schedule pod, the moon is full", "no node is added: the moon is full"},
		{"FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.", "0/3 nodes are available: 3 Insufficient cpu."},
		{"Other", "pod triggered scale-up: [{g 1->2 (max: 8)}]", "pod triggered scale-up: [{g 1->2 (max: 8)}]"},
		{"Nominated", "", "Nominated"},
	} {
		if got := (Reason{Source: EventSays, Reason: test.reason, Message: test.message}).Words(); got != test.want {
			t.Errorf("%s %q:\n%q, not\n%q", test.reason, test.message, got, test.want)
		}
	}
	if got := (Reason{Source: "Pod", Reason: "Nominated", Message: "Pod should schedule on: node/a"}).Words(); got != "Pod should schedule on: node/a" {
		t.Errorf("what no autoscaler says is read as if one did: %q", got)
	}
}

// Whatever a stranger writes as an autoscaler's message: it is read at once, and is one short line.
func FuzzAutoscalersWords(f *testing.F) {
	for _, message := range []string{
		"pod triggered scale-up: [{https://x/y 1->2 (max: 20)} {b 0->3 (max: 3)}]", "pod didn't trigger scale-up: 1 max cluster cpu, memory limit reached, 2 Insufficient \x00\xff",
		"(combined from similar events): pod didn't trigger scale-up: 6 node(s) had taint {a: b}, that the pod didn't tolerate", "Pod should schedule on: nodeclaim/a, node/b",
		`Failed to schedule pod, incompatible with nodepool "a", daemonset overhead={"cpu":"1"}, did not tolerate a=b:NoSchedule; no instance type has enough resources, requirements=x`,
		"Node scale up in zones a associated with this pod failed: b. Pod is at risk of not being scheduled.", "Failed to schedule pod, " + strings.Repeat("(", 300) + "ä NodePool=b)",
	} {
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message string) {
		for reason := range saidByAutoscalers {
			text := Reason{Source: EventSays, Reason: reason, Message: message}.Words()
			if text == "" || len(text) > maxSentence || utf8.ValidString(message) && !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x00\x1b") {
				t.Errorf("%s: %q", reason, text)
			}
		}
	})
}

// Of a message that is longer than what is kept, whole parts are kept and told, and that there were more.
func TestALongMessageIsKeptAndToldInWholeParts(t *testing.T) {
	repeated := func(part, between string) string {
		return strings.TrimSuffix(strings.Repeat(part+between, 30), between)
	}
	const pool = `incompatible with nodepool "a", daemonset overhead={"cpu":"821m","memory":"1350Mi","pods":"10"}, did not tolerate workload-type=ci-runner:NoSchedule`
	const toldPool = "NodePool a: taint workload-type=ci-runner:NoSchedule is not tolerated"
	for _, test := range []struct{ source, reason, message, kept, words string }{
		{EventSays, "FailedScheduling", "Failed to schedule pod, " + repeated(pool, "; "), pool + "…", "no node is added: " + toldPool + ", " + toldPool + ", " + toldPool + "…"},
		{EventSays, "NotTriggerScaleUp", "pod didn't trigger scale-up: " + repeated("1 max node group size reached", ", "), "reached, 1 max node group size reached…", ""},
		{"Pod", "Unschedulable", "0/9 nodes are available: 9 Insufficient cpu, " + repeated("1 node(s) had untolerated taint {a: b}", ", "), "taint {a: b}…", ""},
		{"Pod", "OOMKilled", strings.Repeat("ä", 300), strings.Repeat("ä", 254) + "…", strings.Repeat("ä", 126) + "…"},
	} {
		job := Explained(&Job{State: Pending}, Reason{Source: test.source, Reason: test.reason, Message: test.message})
		if !strings.HasSuffix(job.Message, test.kept) || len(job.Message) > maxReason {
			t.Errorf("%s: %d bytes are kept: %q", test.reason, len(job.Message), job.Message)
		}
		words := job.Reasons[0].Words()
		if test.words != "" && words != test.words || !strings.HasSuffix(words, "…") || strings.Count(words, "…") != 1 {
			t.Errorf("%s: %q", test.reason, words)
		}
		if again := Explained(job, Reason{Source: test.source, Reason: test.reason, Message: test.message}); again != nil {
			t.Errorf("%s: what is said again is another reason", test.reason)
		}
	}
}
