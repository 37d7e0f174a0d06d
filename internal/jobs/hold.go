package jobs

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Amounts are resources that are summed up.
type Amounts struct {
	CPUs   float64
	Memory float64 // GiB
	GPUs   float64
}

func (a Amounts) plus(b Amounts) Amounts {
	return Amounts{a.CPUs + b.CPUs, a.Memory + b.Memory, a.GPUs + b.GPUs}
}

// beyond is an exponent that is none of any resource's.
var beyond = regexp.MustCompile(`[0-9.][eE][+-]?[0-9]{3,}`)

// Countable reports whether the quantities in a text, as JSON has them, can be counted with: by an
// exponent of a few digits, reading one takes hours, and all memory. Kubernetes stores it, in
// objects of kinds whose quantities it does not read itself.
func Countable(text string) bool { return !beyond.MatchString(text) }

// mostOfNode is more than a node has: Linux knows no more CPUs on x86, nor more memory without a
// fifth level of page tables; of GPUs it is maxDevices. Requests are a stranger's words. What is
// beyond is held by nobody, so it counts as nothing, or one pod would be all that a chart shows.
var mostOfNode = Amounts{CPUs: 8192, Memory: 64 << 10, GPUs: maxDevices}

// nodesOfJob is on how many of the largest nodes a job may run whose pods nobody recorded.
const nodesOfJob = 1024

// AmountsOfPod are the amounts in the requests of one pod. What is no quantity, a negative one, or
// more than a node has, counts as nothing.
func AmountsOfPod(requests map[string]string) Amounts { return amountsOf(requests).upTo(mostOfNode, 1) }

// AmountsOfJob are those in the requests of all pods of a job together.
func AmountsOfJob(requests map[string]string) Amounts {
	return amountsOf(requests).upTo(mostOfNode, nodesOfJob)
}

// upTo is without what is more than so many times the most.
func (a Amounts) upTo(most Amounts, times float64) Amounts {
	for _, of := range []struct {
		amount *float64
		most   float64
	}{{&a.CPUs, most.CPUs}, {&a.Memory, most.Memory}, {&a.GPUs, most.GPUs}} {
		if !(*of.amount <= times*of.most) {
			*of.amount = 0
		}
	}
	return a
}

func amountsOf(requests map[string]string) (a Amounts) {
	for name, text := range requests {
		if !Countable(text) {
			continue
		}
		quantity, err := resource.ParseQuantity(text)
		if err != nil || quantity.Sign() < 0 {
			continue
		}
		switch n := quantity.AsApproximateFloat64(); {
		case name == "cpu":
			a.CPUs += n
		case name == "memory":
			a.Memory += n / (1 << 30)
		case strings.HasSuffix(name, "/gpu"):
			a.GPUs += n
		}
	}
	return a
}

// Hold is what was held for a time: by a pod, what it requested, from when it was bound to a node until it ended.
type Hold struct {
	Interval
	Amounts
}

// HoldsOf are what runs hold or held, up to now. They are what a job used, whatever its kind: the
// hours of a job are those of its runs. A device that a claim has given to several pods is one
// device, as long as any of them holds it: it counts with the one that was bound first. So the
// holds of parts of the runs sum up to those of the whole where parts share no devices.
func HoldsOf(runs []*Run, now Time) (holds []Hold) {
	var devices []deviceHeld
	for _, r := range runs {
		interval := r.Held(now)
		if interval.From >= interval.To {
			continue
		}
		if amounts := AmountsOfPod(r.Requests); amounts != (Amounts{}) {
			holds = append(holds, Hold{interval, amounts})
		}
		for _, d := range r.Devices {
			if d.isGPU() {
				devices = append(devices, deviceHeld{d, interval})
			}
		}
	}
	slices.SortFunc(devices, func(a, b deviceHeld) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Device.Device, b.Device.Device), cmp.Compare(a.From, b.From))
	})
	var until Time
	for i, d := range devices {
		if i == 0 || d.Device != devices[i-1].Device {
			until = 0
		}
		if from := max(d.From, until); from < d.To {
			holds = append(holds, Hold{Interval{from, d.To}, Amounts{GPUs: 1}})
		}
		until = max(until, d.To)
	}
	return holds
}

// deviceHeld is a device while a run holds it.
type deviceHeld struct {
	Device
	Interval
}

// refusals are why kubelets do not take pods that are bound to their nodes, beside OutOfcpu, OutOfpods and so on.
var refusals = []string{"UnexpectedAdmissionError", "NodeAffinity", "NodeName", "NodePorts", "TopologyAffinityError", "SMTAlignmentError", "InvalidNodeInfo",
	"AppArmor", "SysctlForbidden", "ProcMount", "PodOSSelectorNodeLabelDoesNotMatch", "PodOSNotSupported", "PodFeatureUnsupported"}

// refused reports whether the run's node did not take it. Whoever makes a pod can name a node that
// has not what the pod requests.
func (r *Run) refused() bool {
	return r.Terminal() && r.Started == 0 && (strings.HasPrefix(r.Reason, "OutOf") || slices.Contains(refusals, r.Reason))
}

// held reports whether the run holds or held its node.
func (r *Run) held() bool { return r.Scheduled != 0 && !r.refused() }

// Held is when a run held its node, up to now; an empty interval if it never did.
func (r *Run) Held(now Time) Interval {
	switch {
	case !r.held():
		return Interval{}
	case r.Terminal():
		return Interval{r.Scheduled, r.Ended}
	}
	return Interval{r.Scheduled, now}
}

// isGPU reports whether a driver says by its name that its devices are GPUs, as gpu.nvidia.com
// does. Each is a whole one, also where it is a part of a card, as the driver's devices are.
func (d Device) isGPU() bool {
	return slices.ContainsFunc(strings.FieldsFunc(d.Driver, func(c rune) bool { return c == '.' || c == '-' }), func(part string) bool { return part == "gpu" })
}

// GPUsOf is how many of some devices are GPUs.
func GPUsOf(devices []Device) (n int) {
	for _, d := range devices {
		if d.isGPU() {
			n++
		}
	}
	return n
}

// HoursOf are amounts times hours.
func HoursOf(holds []Hold) (sum Amounts) {
	for _, h := range holds {
		hours := float64(h.To-h.From) / float64(time.Hour/time.Millisecond)
		sum = sum.plus(Amounts{hours * h.CPUs, hours * h.Memory, hours * h.GPUs})
	}
	return sum
}
