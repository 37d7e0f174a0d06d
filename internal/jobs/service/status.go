package service

import (
	"cmp"
	"slices"

	"github.com/kubecast/kubecast/internal/jobs/recorder"
)

// Status is what a service does at one moment.
type Status struct {
	Ready bool  // the schema is as it must be
	Err   error // why it is not; nil before the first attempt has failed
	Logs  []LogStatus
}

// LogStatus is what is known of the recording of a kind.
type LogStatus struct {
	Cluster, Kind string
	recorder.Status
}

// Status may be called at any time.
func (a *Service) Status() (s Status) {
	select {
	case <-a.ready:
		s.Ready = true
	default:
		a.mu.Lock()
		s.Err = a.err
		a.mu.Unlock()
	}
	for _, r := range a.running() {
		s.Logs = append(s.Logs, LogStatus{r.Cluster(), r.Resource(), r.Status()})
	}
	slices.SortFunc(s.Logs, func(a, b LogStatus) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Kind, b.Kind))
	})
	return s
}
