package table

import (
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
)

// podStatus sums up a pod's containers.
type podStatus struct {
	ready, total int
	reason       string // the column "Status"
	restarts     int
	lastRestart  time.Time
}

func printPod(r *row, o *cluster.Object) {
	p := partsOf(o)
	s := podStatusOf(p)
	r.conditions = completed[p.status.Get("phase").Str]
	restarts := strconv.Itoa(s.restarts)
	if s.restarts != 0 && !s.lastRestart.IsZero() {
		restarts += " (" + r.since(s.lastRestart) + " ago)"
	}
	r.name(o)
	r.text(ratio(s.ready, s.total))
	r.text(s.reason)
	r.text(restarts)
	r.age(o)
	r.text(or(p.status.Get("podIPs.0.ip").Str, none))
	r.text(or(p.spec.Get("nodeName").Str, none))
	r.text(or(p.status.Get("nominatedNodeName").Str, none))
	r.text(readinessGates(p))
}

// completed are the conditions of a row whose pod has ended, by the pod's phase.
var completed = map[string]string{
	"Succeeded": `[{"type":"Completed","status":"True","reason":"Succeeded","message":"The pod has completed successfully."}]`,
	"Failed":    `[{"type":"Completed","status":"True","reason":"Failed","message":"The pod failed."}]`,
}

func ratio(a, b int) string { return strconv.Itoa(a) + "/" + strconv.Itoa(b) }

func readinessGates(p parts) string {
	gates, met := 0, 0
	conditions := p.status.Get("conditions")
	each(p.spec.Get("readinessGates"), func(gate gjson.Result) bool {
		gates++
		if conditionStatus(conditions, gate.Get("conditionType").Str) == "True" {
			met++
		}
		return true
	})
	if gates == 0 {
		return none
	}
	return ratio(met, gates)
}

func podStatusOf(p parts) podStatus {
	conditions := p.status.Get("conditions")
	s := podStatus{
		total:  int(p.spec.Get("containers.#").Int()),
		reason: or(p.status.Get("reason").Str, p.status.Get("phase").Str),
	}
	each(conditions, func(c gjson.Result) bool {
		if c.Get("type").Str == "PodScheduled" && c.Get("reason").Str == "SchedulingGated" {
			s.reason = "SchedulingGated"
		}
		return true
	})
	sidecars, initContainers := sidecarsOf(p.spec.Get("initContainers"))
	s.total += len(sidecars)
	initializing, sidecarRestarts := s.initialize(p.status.Get("initContainerStatuses"), sidecars, initContainers)
	if !initializing || conditionStatus(conditions, "Initialized") == "True" {
		s.restarts, s.lastRestart = sidecarRestarts.count, sidecarRestarts.last
		s.run(p.status.Get("containerStatuses"), conditions)
	}
	if p.metadata.Get("deletionTimestamp").Exists() {
		switch phase := p.status.Get("phase").Str; {
		case p.status.Get("reason").Str == "NodeLost":
			s.reason = "Unknown"
		case phase != "Succeeded" && phase != "Failed":
			s.reason = "Terminating"
		}
	}
	return s
}

// sidecarsOf returns the names of the init containers that go on running, and the number of all init containers.
func sidecarsOf(containers gjson.Result) (sidecars map[string]bool, total int) {
	each(containers, func(c gjson.Result) bool {
		total++
		if c.Get("restartPolicy").Str == "Always" {
			if sidecars == nil {
				sidecars = map[string]bool{}
			}
			sidecars[c.Get("name").Str] = true
		}
		return true
	})
	return sidecars, total
}

// restarts sums up the restarts of some containers.
type restarts struct {
	count int
	last  time.Time
}

func (r *restarts) add(container gjson.Result) {
	r.count += int(container.Get("restartCount").Int())
	if ended := moment(container.Get("lastState.terminated.finishedAt")); r.last.Before(ended) {
		r.last = ended
	}
}

// initialize goes through the init containers up to the one that is running or has failed.
func (s *podStatus) initialize(statuses gjson.Result, sidecars map[string]bool, total int) (initializing bool, ofSidecars restarts) {
	var all restarts
	done := 0
	each(statuses, func(c gjson.Result) bool {
		all.add(c)
		sidecar := sidecars[c.Get("name").Str]
		if sidecar {
			ofSidecars.add(c)
		}
		terminated, waiting := c.Get("state.terminated"), c.Get("state.waiting.reason").Str
		switch {
		case isSet(terminated) && terminated.Get("exitCode").Int() == 0:
			done++
			return true
		case sidecar && c.Get("started").Bool():
			if c.Get("ready").Bool() {
				s.ready++
			}
			done++
			return true
		case isSet(terminated):
			s.reason = "Init:" + whyTerminated(terminated)
		case waiting != "" && waiting != "PodInitializing":
			s.reason = "Init:" + waiting
		default:
			s.reason = "Init:" + ratio(done, total)
		}
		initializing = true
		return false
	})
	s.restarts, s.lastRestart = all.count, all.last
	return initializing, ofSidecars
}

// run goes through the containers from the last to the first, so that the reason of the first one wins.
func (s *podStatus) run(statuses, conditions gjson.Result) {
	counted := restarts{s.restarts, s.lastRestart}
	running := false
	failure := ""
	containers := statuses.Array()
	for i := len(containers) - 1; i >= 0; i-- {
		c := containers[i]
		counted.add(c)
		terminated, waiting := c.Get("state.terminated"), c.Get("state.waiting.reason").Str
		switch {
		case waiting != "":
			s.reason = waiting
		case isSet(terminated):
			s.reason = whyTerminated(terminated)
			if terminated.Get("exitCode").Int() != 0 {
				failure = s.reason
			}
		case c.Get("ready").Bool() && isSet(c.Get("state.running")):
			running = true
			s.ready++
		}
	}
	s.restarts, s.lastRestart = counted.count, counted.last
	if s.reason != "Completed" {
		return
	}
	// If some containers have completed, that must not hide what the others do.
	switch {
	case running && conditionStatus(conditions, "Ready") == "True":
		s.reason = "Running"
	case failure != "":
		s.reason = failure
	case running:
		s.reason = "NotReady"
	}
}

func whyTerminated(terminated gjson.Result) string {
	reason, signal := terminated.Get("reason").Str, terminated.Get("signal").Int()
	switch {
	case reason != "":
		return reason
	case signal != 0:
		return "Signal:" + strconv.FormatInt(signal, 10)
	}
	return "ExitCode:" + strconv.FormatInt(terminated.Get("exitCode").Int(), 10)
}
