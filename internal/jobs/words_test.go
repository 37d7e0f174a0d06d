package jobs

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A scheduler's message is told in plain words; what nobody knows is told as it is.
func TestASchedulersMessageIsToldInWords(t *testing.T) {
	const none = " preemption: 0/12 nodes are available: 3 No preemption victims found for incoming pod, 9 Preemption is not helpful for scheduling."
	for message, want := range map[string]string{
		"0/12 nodes are available: 3 Insufficient nvidia.com/gpu, 9 node(s) had untolerated taint {dedicated: inference}." + none:                                                          "no node fits: taint dedicated=inference is not tolerated (9 of 12), too little nvidia.com/gpu free (3 of 12)",
		"0/4 nodes are available: 4 Insufficient cpu. no new claims to deallocate, preemption: 0/4 nodes are available: 4 x.":                                                              "no node fits: too little cpu free (all 4)",
		"0/12 nodes are available: 12 Insufficient cpu." + none:                                                                                                                            "no node fits: too little cpu free (all 12)",
		"0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.":                                                                                                              "no node fits: too little cpu free (all 1), too little memory free (all 1)",
		"0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, 2 node(s) were unschedulable.":                                                         "no node fits: cordoned (2 of 3), taint node.kubernetes.io/not-ready is not tolerated (1 of 3)",
		"0/3 nodes are available: 1 Insufficient cpu, 2 node(s) are on the moon.":                                                                                                          "no node fits: 2 node(s) are on the moon, too little cpu free (1 of 3)",
		"0/3 nodes are available: persistentvolumeclaim \"data\" not found. preemption: 0/3 nodes are available: 3 x.":                                                                     "no node fits: persistentvolumeclaim \"data\" not found",
		"0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints (missing required label).":                                                                        "no node fits: more than their share of its pods (all 3)",
		"0/4 nodes are available: 3 cannot allocate all claims, 1 Too many pods.":                                                                                                          "no node fits: no free device as it claims (3 of 4), as many pods as they take (1 of 4)",
		"0/10 nodes are available: 10 Insufficient gpu. preemption: 0/10 nodes are available: 10 Preemption is not helpful for scheduling.":                                                "no node fits: it asks for more gpu than there is on a node (all 10)",
		"0/10 nodes are available: 4 Insufficient gpu, 6 node(s) were unschedulable. preemption: 0/10 nodes are available: 10 Preemption is not helpful for scheduling.":                   "no node fits: cordoned (6 of 10), it asks for more gpu than there is on a node (4 of 10)",
		"0/10 nodes are available: 10 Insufficient cpu, 4 Insufficient gpu. preemption: 0/10 nodes are available: 10 Preemption is not helpful for scheduling.":                            "no node fits: too little cpu free (all 10), too little gpu free (4 of 10)",
		"0/10 nodes are available: 10 Insufficient gpu. preemption: 0/10 nodes are available: 4 Preemption is not helpful for scheduling, 6 No preemption victims found for incoming pod.": "no node fits: too little gpu free (all 10)",
		"2 of 4 pods: 0/12 nodes are available: 12 Insufficient cpu.":                                                                                                                      "2 of 4 pods: no node fits: too little cpu free (all 12)",
		"0/9 nodes are available: 4 Insufficient a, 3 Insufficient b, 2 Insufficient c, 1 Insufficient d, 1 Insufficient e, 1 f.":                                                          "no node fits: too little a free (4 of 9), too little b free (3 of 9), too little c free (2 of 9), too little d free (1 of 9), and 2 more reasons",
		"0/4 nodes are available: 4 cannot allocate all claims. preemption: 0/4 nodes are available: 4 x. (device class gpu.nvidia.com)":                                                   "no node fits: no free device as it claims (all 4) (device class gpu.nvidia.com)",
		"no nodes available to schedule pods":                       "there are no nodes",
		"0/3 nodes are available: ":                                 "0/3 nodes are available:",
		"0/3 nodes are available: .":                                "0/3 nodes are available: .",
		"0/9999999999 nodes are available: 1 x":                     "0/9999999999 nodes are available: 1 x",
		"skip schedule deleting pod: a/b":                           "skip schedule deleting pod: a/b",
		"all nodes are\nunavailable: 3 node(s) resource fit failed": "all nodes are unavailable: 3 node(s) resource fit failed",
		"": "Unschedulable",
	} {
		if got := (Reason{Source: "Pod", Reason: "Unschedulable", Message: message}).Words(); got != want {
			t.Errorf("%q:\n%q, not\n%q", message, got, want)
		}
	}
	if got := (Reason{Source: "Workload", Reason: "Pending", Message: "0/3 nodes are available: 3 Insufficient cpu."}).Words(); got != "0/3 nodes are available: 3 Insufficient cpu." {
		t.Errorf("what no scheduler says is read as if one did: %q", got)
	}
}

// Whatever a stranger writes as a scheduler's message: it is read at once, and is one short line.
func FuzzWords(f *testing.F) {
	f.Add("0/12 nodes are available: 3 Insufficient nvidia.com/gpu, 9 node(s) had untolerated taint {a: b}. preemption: 0/12 nodes are available: 12 x")
	f.Add("1 of 2 pods: 0/1 nodes are available: 1 node(s) had untolerated taint {, 999999999 Insufficient \x00\xff")
	f.Add("0/3 nodes are available: " + strings.Repeat("1 Insufficient ä, ", 100))
	f.Fuzz(func(t *testing.T, message string) {
		text := Reason{Source: "Pod", Reason: "Unschedulable", Message: message}.Words()
		if text == "" || len(text) > maxSentence || utf8.ValidString(message) && !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x00\x1b") {
			t.Errorf("%q", text)
		}
	})
}
