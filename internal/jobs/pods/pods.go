// Package pods reads pods: what their containers do and why they end, what they request, and which
// of a job's pods each is.
//
// What it promises: what it says of a pod is a function of one version of it. What one container of
// several did is said of those that do the pod's work; a sidecar, which is ended once the work is
// over, never hides them.
//
// What it refuses: to remember. What a pod's run is after several versions says jobs.NextRun.
package pods

import (
	"cmp"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
)

// Read is what a pod says of its life. Devices says what a resource claim of its namespace was
// given, by the claim's name; nil: it is not known.
func Read(o *cluster.Object, devices func(claim string) []jobs.Device) jobs.PodSaid {
	p := read(o)
	said := jobs.PodSaid{Index: indexOf(o), Requests: requestsOf(p.spec)}
	scheduled := Condition(p.status, "PodScheduled")
	bound := scheduled.Get("status").Str == "True"
	if bound {
		said.Bound = jobs.ParseTime(scheduled.Get("lastTransitionTime").Str)
	}
	if bound || p.taken() {
		said.Node = p.spec.Get("nodeName").Str
		if said.Bound == 0 { // whoever ended the pod may have left no other condition
			said.Bound = jobs.ParseTime(p.status.Get("startTime").Str)
		}
	}
	said.Begun, said.Began = p.begun()
	for _, c := range p.containers {
		if c.Role == Main {
			said.Restarts += c.Get("restartCount").Int()
		}
	}
	if phase := p.phase(); phase == "Succeeded" || phase == "Failed" {
		said.Over, said.Finished = true, p.finished()
	} else if p.deleting != "" {
		said.Deleting = true
		said.Finished = jobs.ParseTime(p.deleting)
	}
	p.explain(&said)
	if devices != nil {
		for _, claim := range Claims(o) {
			said.Devices = append(said.Devices, devices(claim)...)
		}
	}
	return said
}

// pod is the parts of one that are read.
type pod struct {
	spec, status gjson.Result
	deleting     string // when it is or was to be gone; "": nobody deleted it
	grace        gjson.Result
	containers   []Container
}

func read(o *cluster.Object) pod {
	p := pod{containers: Containers(o)}
	gjson.Parse(o.JSON()).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "metadata":
			p.deleting, p.grace = value.Get("deletionTimestamp").Str, value.Get("deletionGracePeriodSeconds")
		case "spec":
			p.spec = value
		case "status":
			p.status = value
		}
		return true
	})
	return p
}

func (p pod) phase() string { return p.status.Get("phase").Str }

// taken reports whether the kubelet of a node has said anything of the pod. Whoever makes a pod can
// name a node, which need not be there: the scheduler is not asked then, and the pod holds nothing
// until somebody removes it.
func (p pod) taken() bool {
	phase := p.phase()
	return len(p.containers) > 0 || phase == "Running" || phase == "Succeeded" || p.status.Get("startTime").Str != ""
}

// begun reports whether a main container runs or has run, and since when the first one did. A
// container that could not be started has no start: kubelets write the year 1970.
func (p pod) begun() (begun bool, at jobs.Time) {
	for _, c := range p.containers {
		if c.Role != Main {
			continue
		}
		for _, path := range []string{"state.running", "state.terminated", "lastState.terminated"} {
			state := c.Get(path)
			if !state.Exists() {
				continue
			}
			started := jobs.ParseTime(state.Get("startedAt").Str)
			begun = begun || started != 0 || path == "state.running"
			if started != 0 && (at == 0 || started < at) {
				at = started
			}
		}
	}
	if len(p.containers) == 0 && p.phase() == "Running" { // simulated nodes say no more
		return true, jobs.ParseTime(p.status.Get("startTime").Str)
	}
	return begun, at
}

// finished is when an ended pod ended: when its last container did, or when it was written that it had.
func (p pod) finished() (at jobs.Time) {
	running := false
	for _, c := range p.containers {
		at = max(at, c.endedAt())
		running = running || c.Get("state.running").Exists()
	}
	if running || at == 0 { // nobody heard of them again, and so they ended no sooner than they were given time to
		at = max(at, jobs.ParseTime(p.deleting))
		for _, kind := range []string{"Ready", "DisruptionTarget"} {
			if c := Condition(p.status, kind); c.Exists() {
				at = max(at, jobs.ParseTime(c.Get("lastTransitionTime").Str))
			}
		}
	}
	return at
}

// Condition is the condition of a type of an object's status, whatever its own status is, or nothing.
func Condition(status gjson.Result, kind string) (found gjson.Result) {
	status.Get("conditions").ForEach(func(_, c gjson.Result) bool {
		if c.Get("type").Str == kind {
			found = c
		}
		return !found.Exists()
	})
	return found
}

// Container is what a pod says of one of its containers.
type Container struct {
	gjson.Result
	Role Role
}

// Role is what a container is for, in the order in which what it did explains the pod's end.
type Role int

// Roles of containers.
const (
	Main    Role = iota // does the pod's work
	Init                // comes before that
	Sidecar             // helps, and is ended once the work is over: how it ends says nothing of that
)

// Containers are a pod's containers, by role.
func Containers(o *cluster.Object) (all []Container) {
	sidecars := sidecarsOf(o)
	mains := 0
	add := func(path string, role Role) {
		o.Path(path).ForEach(func(_, c gjson.Result) bool {
			role := role
			if sidecars[c.Get("name").Str] {
				role = Sidecar
			}
			if role == Main {
				mains++
			}
			all = append(all, Container{c, role})
			return true
		})
	}
	add("status.containerStatuses", Main)
	if regular := len(all); mains == 0 { // whatever they are called, they are all there is
		for i := range regular {
			all[i].Role = Main
		}
	}
	add("status.initContainerStatuses", Init)
	slices.SortStableFunc(all, func(a, b Container) int { return cmp.Compare(a.Role, b.Role) })
	return all
}

// failed reports whether the container ended, and not well.
func (c Container) failed() bool { return c.Get("state.terminated.exitCode").Int() != 0 }

func (c Container) endedAt() jobs.Time {
	return jobs.ParseTime(c.Get("state.terminated.finishedAt").Str)
}

// lost reports whether the kubelet could not find the container any more, so that how it ended is not known.
func (c Container) lost() bool {
	return c.Get("state.terminated.reason").Str == "ContainerStatusUnknown"
}

// Decisive is the container for which a pod failed; ok is false if none did. Of those that failed
// it is one of the first role, and of these one that ran out of memory, else the one that ended
// first, since that may have made the others end. One that the kubelet could not find any more
// counts only if there is no other.
func Decisive(containers []Container) (decisive Container, ok bool) {
	rank := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	for _, c := range containers {
		if !c.failed() {
			continue
		}
		if !ok || cmp.Or(
			cmp.Compare(rank(c.lost()), rank(decisive.lost())), cmp.Compare(c.Role, decisive.Role),
			cmp.Compare(rank(decisive.outOfMemory()), rank(c.outOfMemory())), cmp.Compare(c.endedAt(), decisive.endedAt()),
		) < 0 {
			decisive, ok = c, true
		}
	}
	return decisive, ok
}

func (c Container) outOfMemory() bool {
	return c.Get("state.terminated.reason").Str == jobs.OOMKilled
}
