package jobs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// saidByAutoscalers are an autoscaler's messages in plain words, by the reason of its Event; "" for a message of another form.
var saidByAutoscalers = map[string]func(string) string{
	"TriggeredScaleUp":  scaleUp,
	"NotTriggerScaleUp": noScaleUp,
	"FailedScaleUp":     failedScaleUp,
	"Nominated":         nominated,
	"FailedScheduling":  notProvisioned,
}

// autoscaling is an autoscaler's message in plain words; "" if it has another form.
func autoscaling(reason, message string) string {
	words, known := saidByAutoscalers[reason]
	if !known {
		return ""
	}
	of := ofPods.FindString(message)
	text := words(strings.TrimPrefix(message[len(of):], "(combined from similar events): "))
	if text == "" {
		return ""
	}
	return of + text
}

// grows is how the cluster autoscaler says how many nodes a group has, will have, and may have.
var grows = regexp.MustCompile(`\{([^\s{}]{1,512}) (\d{1,9})->(\d{1,9}) \(max: (\d{1,9})\)\}`)

// scaleUp is what the cluster autoscaler says of a pod for which it adds nodes.
func scaleUp(message string) string {
	said, ok := strings.CutPrefix(message, "pod triggered scale-up: ")
	if !ok {
		return ""
	}
	var groups []string
	for _, g := range grows.FindAllStringSubmatch(said, -1) {
		name := g[1][strings.LastIndexByte(g[1], '/')+1:] // Google's are addresses
		groups = append(groups, fmt.Sprintf("%s from %s to %s (of at most %s)", name, g[2], g[3], g[4]))
	}
	if len(groups) == 0 {
		return ""
	}
	return "nodes are being added: " + listed(groups)
}

// listed are the first of some texts, and how many more there are.
func listed(texts []string) string {
	all := strings.Join(texts[:min(len(texts), maxGrounds)], ", ")
	if more := len(texts) - maxGrounds; more > 0 {
		all += fmt.Sprintf(", and %d more", more)
	}
	return all
}

// groupGrounds are why the cluster autoscaler leaves a group of nodes as it is, beside what a scheduler would say of its nodes.
var groupGrounds = map[string]string{
	"max node group size reached":                "as many nodes as the group may have",
	"in backoff after failed scale-up":           "nodes could not be added a while ago, so it waits before it tries again",
	"not ready for scale-up":                     "the group is not ready for it",
	"at least one node can be vertically scaled": "a node can be made larger instead",
	"max total nodes in cluster reached":         "as many nodes as the cluster may have",
	"Insufficient pods":                          "as many pods as its nodes take",
}

var (
	// toleratedNot is a taint as schedulers before 1.24 wrote it, with a comma of its own.
	toleratedNot = regexp.MustCompile(`had taint (\{[^{}]{0,256}\}), that the pod didn't tolerate`)
	// limitOf is how the cluster autoscaler says which resources the cluster has as many of as it may, by commas.
	limitOf = regexp.MustCompile(`max cluster ([a-zA-Z0-9./-]{1,128}(?:, [a-zA-Z0-9./-]{1,128}){0,7}) limit reached`)
	// ofGroups is of how many groups something is said.
	ofGroups = regexp.MustCompile(`^(\d{1,9}) (.+)$`)
)

// noScaleUp is what the cluster autoscaler says of a pod for which it adds no nodes.
func noScaleUp(message string) string {
	said, ok := strings.CutPrefix(message, "pod didn't trigger scale-up")
	if !ok {
		return ""
	}
	said = strings.TrimSpace(strings.TrimPrefix(said, " (it wouldn't fit if a new node is added)"))
	said = strings.TrimSpace(strings.TrimPrefix(said, ":"))
	if said == "" {
		return "no node is added: none of those that could be would take it"
	}
	said = toleratedNot.ReplaceAllString(said, "had untolerated taint $1")
	said = limitOf.ReplaceAllStringFunc(said, func(limit string) string {
		return "as much " + strings.ReplaceAll(limitOf.FindStringSubmatch(limit)[1], ", ", " and ") + " as the cluster may have"
	})
	type counted struct {
		groups int
		text   string
	}
	var all []counted
	for one := range strings.SplitSeq(said, ", ") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		parts := ofGroups.FindStringSubmatch(one)
		if parts == nil {
			all = append(all, counted{1 << 30, groupGround(one)})
			continue
		}
		groups, _ := strconv.Atoi(parts[1]) // nine digits
		word := "groups"
		if groups == 1 {
			word = "group"
		}
		all = append(all, counted{groups, fmt.Sprintf("%s (%d %s)", groupGround(parts[2]), groups, word)})
	}
	slices.SortStableFunc(all, func(a, b counted) int { return b.groups - a.groups })
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = one.text
	}
	return "no node is added: " + listed(texts)
}

// groupGround is why a group of nodes is left as it is, in words where these are known.
func groupGround(said string) string {
	if means, known := groupGrounds[said]; known {
		return means
	}
	if means, known := meaning(strings.TrimPrefix(said, "node(s) ")); known {
		return means
	}
	return said
}

// failedScaleUp is what Google's cluster autoscaler says of a pod for which it could not add nodes.
func failedScaleUp(message string) string {
	said := strings.TrimSuffix(message, " Pod is at risk of not being scheduled.")
	where, why, ok := strings.Cut(said, " associated with this pod failed: ")
	where, zones := strings.CutPrefix(where, "Node scale up in zones ")
	if !ok || !zones || why == "" {
		return ""
	}
	return "nodes could not be added in " + where + ": " + strings.TrimSuffix(why, ".")
}

// nominated is what Karpenter says of a pod for which it makes, or has, a node.
func nominated(message string) string {
	said, ok := strings.CutPrefix(message, "Pod should schedule on: ")
	if !ok {
		return ""
	}
	var claim, node string
	for one := range strings.SplitSeq(said, ", ") {
		if name, is := strings.CutPrefix(one, "nodeclaim/"); is {
			claim = name
		}
		if name, is := strings.CutPrefix(one, "node/"); is {
			node = name
		}
	}
	switch {
	case node != "":
		return "a node is kept for it: " + node
	case claim != "":
		return "a node is being added: " + claim
	}
	return ""
}

var (
	// ofNodePool is how Karpenter says of which NodePool the rest is, in its forms.
	ofNodePool = regexp.MustCompile(`^incompatible with (?:nodepool|provisioner) "([^"]{1,253})",? ?`)
	// ofNodePoolLast is how newer ones say so, behind it and among other values.
	ofNodePoolLast = regexp.MustCompile(` \((?:[^()]{0,512}, )?NodePool="?([^",()\s]{1,253})"?(?:, [^()]{0,512})?\)$`)
	// overhead is what the pods of DaemonSets take of each node, which says nothing of why.
	overhead = regexp.MustCompile(`\(?daemonset overhead=\{[^{}]{0,512}\}\)?,? ?`)
	// asked is what a pod asks for, which is long and follows why.
	asked = regexp.MustCompile(`,? (?:requirements|resources)=.*$`)
	// exceeds is how it says that a NodePool may have no more.
	exceeds = regexp.MustCompile(`^all available instance types exceed limits for (?:nodepool|provisioner):?(?: "([^"]{1,253})")?$`)
	// untolerated is a taint, in its forms.
	untolerated = regexp.MustCompile(`^did not tolerate (?:taint \(taint=)?([^\s()]{1,512})\)?$`)
	// unknownLabel is a label that no NodePool has.
	unknownLabel = regexp.MustCompile(`^incompatible requirements, label "([^"]{1,317})" does not have known values`)
	// otherValues is a label of which the pod asks for other values than the nodes have.
	otherValues = regexp.MustCompile(`^incompatible requirements, key ([^\s,]{1,317}), \S+ (.{1,256}?) not in \S+ (.{1,256})$`)
)

// typeGrounds are why Karpenter finds no type of machine.
var typeGrounds = map[string]string{
	"no instance type has enough resources":      "no type of machine is large enough",
	"no instance type met all requirements":      "no type of machine is as it asks for",
	"no instance type has the required offering": "no machine as it asks for can be had now",
}

// notProvisioned is what Karpenter says of a pod for which it adds no node: of each NodePool, why.
func notProvisioned(message string) string {
	said, ok := strings.CutPrefix(message, "Failed to schedule pod, ")
	if !ok {
		return ""
	}
	var texts []string
	for one := range strings.SplitSeq(said, "; ") {
		if one = strings.TrimSpace(one); one != "" {
			texts = append(texts, ofPool(one))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "no node is added: " + listed(texts)
}

// ofPool is what Karpenter says of one NodePool, in words where these are known.
func ofPool(said string) string {
	pool := ""
	if named := ofNodePool.FindStringSubmatch(said); named != nil {
		pool, said = named[1], said[len(named[0]):]
	}
	said = overhead.ReplaceAllString(said, "")
	if named := ofNodePoolLast.FindStringSubmatch(said); named != nil {
		pool, said = named[1], said[:len(said)-len(named[0])]
	}
	said = asked.ReplaceAllString(said, "")
	if limit := exceeds.FindStringSubmatch(said); limit != nil {
		if limit[1] != "" {
			pool = limit[1]
		}
		said = "its limit is reached"
	}
	if pool == "" {
		return poolGround(said)
	}
	return "NodePool " + pool + ": " + poolGround(said)
}

func poolGround(said string) string {
	if means, known := typeGrounds[said]; known {
		return means
	}
	if taint := untolerated.FindStringSubmatch(said); taint != nil {
		return "taint " + taint[1] + " is not tolerated"
	}
	if label := unknownLabel.FindStringSubmatch(said); label != nil {
		return "no nodes with the label " + label[1]
	}
	if label := otherValues.FindStringSubmatch(said); label != nil {
		return label[1] + " is to be " + label[2] + ", and is " + label[3]
	}
	return said
}
