package jobs

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const (
	// maxSentence is how many bytes a reason in words has at most.
	maxSentence = 256
	// maxGrounds is how many grounds of a scheduler's message are told.
	maxGrounds = 4
)

// Words is the reason in one short sentence: a scheduler's or an autoscaler's message in plain words, any other message as it is, without
// control characters; the reason itself if there is no message. It is up to 256 bytes long.
func (r Reason) Words() string {
	// It is a stranger's text, of which 512 bytes are kept. One that was cut may say less, and ends with "…", before and after.
	text := strings.TrimSpace(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, r.Message))
	text, wasCut := strings.CutSuffix(text, "…")
	if r.Source == "Pod" && r.Reason == "Unschedulable" {
		text = cmp.Or(scheduling(text), text)
	}
	if r.Source == EventSays {
		text = cmp.Or(autoscaling(r.Reason, text), text)
	}
	if wasCut {
		text += "…"
	}
	if text = cmp.Or(text, r.Reason); len(text) > maxSentence {
		text = bounded(text, maxSentence-len("…")) + "…"
	}
	return text
}

var (
	// ofPods is how WhyInPart of jobs/reasons begins a message.
	ofPods = regexp.MustCompile(`^\d{1,9} of \d{1,9} pods: `)
	// unfit is how kube-scheduler begins its message (framework.FitError): how many nodes fit, of how many. The grounds follow.
	unfit = regexp.MustCompile(`^0/(\d{1,9}) nodes are available: `)
	// ground is one of these: on how many nodes, and what it is. One that concerns all has no number.
	ground = regexp.MustCompile(`^(\d{1,9}) (?:node\(s\) )?(.+)$`)
	// helpless is how kube-scheduler counts the nodes on which the pod would not fit either if all others were gone.
	helpless = regexp.MustCompile(`\b(\d{1,9}) Preemption is not helpful for scheduling`)
)

// lacking is the ground of a node that has too little of a resource; if it would have too little without any other pod, it is
// moreThan.
const (
	lacking  = "Insufficient "
	moreThan = "it asks for more %s than there is on a node"
)

// grounds are what the plugins of kube-scheduler say of nodes, in plain words. What ends with a space goes on with what the
// plugin says after it, which takes the place of %s.
var grounds = []struct{ said, means string }{
	{lacking, "too little %s free"},
	{"Too many pods", "as many pods as they take"},
	{"had untolerated taint ", "taint %s is not tolerated"},
	{"had untolerated taint(s)", "a taint is not tolerated"},
	{"had taints that the pod didn't tolerate", "a taint is not tolerated"},
	{"didn't match Pod's node affinity/selector", "not among those that it selects"},
	{"didn't match node selector", "not among those that it selects"},
	{"didn't match the requested node name", "not the one that it names"},
	{"didn't match pod affinity rules", "none of the pods that it wants beside it"},
	{"didn't match pod anti-affinity rules", "pods that it does not want beside it"},
	{"didn't satisfy existing pods anti-affinity rules", "pods that do not want it beside them"},
	{"didn't match pod topology spread constraints", "more than their share of its pods"},
	{"were unschedulable", "cordoned"},
	{"didn't have free ports for the requested pod ports", "a port that it asks for is taken"},
	{"had volume node affinity conflict", "its volume is elsewhere"},
	{"had no available volume zone", "its volume is elsewhere"},
	{"didn't find available persistent volumes to bind", "no volume for it"},
	{"did not have enough free storage", "too little storage free"},
	{"exceed max volume count", "as many volumes as they take"},
	{"cannot allocate all claims", "no free device as it claims"},
}

// ofClasses is how WithDeviceClasses ends a message.
var ofClasses = regexp.MustCompile(` \(device class(?:es)? [^()]{1,200}\)$`)

// WithDeviceClasses is a message of a pod for which no node has free devices, with the classes of what it claims.
func WithDeviceClasses(message string, classes []string) string {
	word := "class"
	if len(classes) > 1 {
		word = "classes"
	}
	return message + " (device " + word + " " + bounded(strings.Join(classes, ", "), 100) + ")"
}

// scheduling is a message of kube-scheduler in plain words; "" if it has another form.
func scheduling(message string) string {
	of := ofPods.FindString(message)
	message = message[len(of):]
	classes := ofClasses.FindString(message)
	message = message[:len(message)-len(classes)]
	begin := unfit.FindStringSubmatch(message)
	if begin == nil {
		if message == "no nodes available to schedule pods" {
			return of + "there are no nodes"
		}
		return ""
	}
	total, _ := strconv.Atoi(begin[1]) // nine digits
	said, preemption, _ := strings.Cut(message[len(begin[0]):], " preemption: ")
	said, _, _ = strings.Cut(said, ". ") // what follows is said of claims and of preemption
	never := false
	if counted := helpless.FindStringSubmatch(preemption); counted != nil {
		never = counted[1] == begin[1]
	}
	told, more := wordsOf(total, strings.TrimSuffix(strings.TrimSpace(said), "."), never)
	if len(told) == 0 {
		return ""
	}
	if more > 0 {
		told = append(told, fmt.Sprintf("and %d more reasons", more))
	}
	return of + "no node fits: " + strings.Join(told, ", ") + classes
}

// wordsOf are the grounds of a message in words, those of most nodes first, and how many are left out. Never says that no
// preemption helps on any node. If each node then has only one ground, a lack is one of the whole node.
func wordsOf(total int, said string, never bool) (told []string, more int) {
	type counted struct {
		nodes int
		said  string // without the number
		whole string
	}
	var all []counted
	sum := 0
	for one := range strings.SplitSeq(said, ", ") {
		parts := ground.FindStringSubmatch(one)
		if one = strings.TrimSpace(one); parts == nil {
			if one != "" {
				all = append(all, counted{nodes: total, whole: one})
			}
			continue
		}
		nodes, _ := strconv.Atoi(parts[1])
		sum += nodes
		all = append(all, counted{nodes, parts[2], one})
	}
	slices.SortStableFunc(all, func(a, b counted) int { return cmp.Compare(b.nodes, a.nodes) })
	for _, one := range all[:min(len(all), maxGrounds)] {
		means, known := meaning(one.said)
		if resource, lacks := strings.CutPrefix(one.said, lacking); lacks && never && sum == total {
			means = fmt.Sprintf(moreThan, resource)
		}
		switch {
		case !known:
			means = one.whole
		case one.nodes == total:
			means = fmt.Sprintf("%s (all %d)", means, one.nodes)
		default:
			means = fmt.Sprintf("%s (%d of %d)", means, one.nodes, total)
		}
		told = append(told, means)
	}
	return told, len(all) - len(told)
}

// meaning is a ground in words.
func meaning(said string) (means string, known bool) {
	for _, g := range grounds {
		rest, begins := strings.CutPrefix(said, g.said)
		if !begins || rest != "" && !strings.HasSuffix(g.said, " ") && rest[0] != ' ' && rest[0] != '(' {
			continue
		}
		if strings.HasSuffix(g.said, " ") {
			return strings.Replace(g.means, "%s", tidied(rest), 1), true
		}
		return g.means, true
	}
	return "", false
}

// tidied is a taint as people write it: {key: value} is key=value.
func tidied(text string) string {
	inner, open := strings.CutPrefix(text, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !open || !closed {
		return text
	}
	return strings.TrimSuffix(strings.Replace(inner, ": ", "=", 1), "=")
}
