package logstream

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
)

// status is what a pod says of one of its containers.
type status struct {
	container string
	runs      []containerRun // that have a log, in their order: the one before, and the newest
}

// containerRun is one run of a container, of which there may be several, one after the other.
type containerRun struct {
	restart  int
	ended    bool
	reason   string // if it has ended
	exitCode int64
	previous bool // its log is had by Kubernetes' parameter of that name
}

// statuses are those of a pod's containers, in the order in which these are started.
func statuses(pod *cluster.Object) (all []status) {
	said := pod.Path("status")
	for _, list := range []string{"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"} {
		said.Get(list).ForEach(func(_, c gjson.Result) bool {
			all = append(all, status{container: c.Get("name").Str, runs: runsOf(c)})
			return true
		})
	}
	return all
}

// runsOf reads a ContainerStatus. While a container waits to be started again, its restartCount is
// that of the run which has ended (kubelet, convertToAPIContainerStatuses).
func runsOf(c gjson.Result) (runs []containerRun) {
	restarts := int(c.Get("restartCount").Int())
	running, ended, last := c.Get("state.running"), c.Get("state.terminated"), c.Get("lastState.terminated")
	begun := running.Exists() || ended.Get("startedAt").Str != ""
	if last.Get("startedAt").Str != "" {
		before := containerRun{restart: restarts, ended: true, reason: last.Get("reason").Str, exitCode: last.Get("exitCode").Int(), previous: begun}
		if begun {
			before.restart--
		}
		runs = append(runs, before)
	}
	if begun {
		runs = append(runs, containerRun{restart: restarts, ended: ended.Exists(), reason: ended.Get("reason").Str, exitCode: ended.Get("exitCode").Int()})
	}
	return runs
}

// find is the run of a number, if it has a log.
func (s *status) find(restart int) (containerRun, bool) {
	i := slices.IndexFunc(s.runs, func(r containerRun) bool { return r.restart == restart })
	if i < 0 {
		return containerRun{}, false
	}
	return s.runs[i], true
}

// after is the first run behind a number that has a log.
func (s *status) after(restart int) (containerRun, bool) {
	i := slices.IndexFunc(s.runs, func(r containerRun) bool { return r.restart > restart })
	if i < 0 {
		return containerRun{}, false
	}
	return s.runs[i], true
}

// newest is the newest run.
func (s *status) newest() (containerRun, bool) {
	if len(s.runs) == 0 {
		return containerRun{}, false
	}
	return s.runs[len(s.runs)-1], true
}
