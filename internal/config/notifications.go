package config

import (
	"slices"
	"time"
)

// JobStates are those of package history, which this package does not know.
var JobStates = []string{"Submitted", "Queued", "Suspended", "Pending", "Running", "Retrying", "Succeeded", "Failed", "Cancelled", "Deleted"}

// Notifications say what users are told of their jobs who have not chosen for themselves.
type Notifications struct {
	States []string `yaml:"states"` // to which a job has to come, some of JobStates
	Digest Duration `yaml:"digest"` // for how long what happens is gathered; 0: not at all
	Keep   Duration `yaml:"keep"`   // how long a notification is kept
}

func (f *faults) notifications(n Notifications) {
	for i, state := range n.States {
		f.oneOf("notifications.states", state, JobStates...)
		if slices.Contains(n.States[:i], state) {
			f.refuse("notifications.states", state, "each state once")
		}
	}
	f.between("notifications.digest", n.Digest, 0, 24*time.Hour)
	f.between("notifications.keep", n.Keep, time.Hour, 100*365*24*time.Hour)
}
