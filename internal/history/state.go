package history

import "slices"

// State is a phase in the life of a job.
type State string

// The states of a job. Succeeded and Failed are ends, but not for ever: a job may be opened again, as `argo retry` does.
const (
	Submitted State = "Submitted" // it exists, and nobody has begun with it
	Suspended State = "Suspended" // it has been told to wait
	Pending   State = "Pending"   // its pods wait
	Running   State = "Running"
	Retrying  State = "Retrying" // something of it failed, and is tried again
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
	Deleted   State = "Deleted" // its object is gone
)

// States are all of them, in the order in which a job may go through them.
func States() []State {
	return []State{Submitted, Suspended, Pending, Running, Retrying, Succeeded, Failed, Deleted}
}

// Valid reports whether this is one of the states.
func (s State) Valid() bool { return slices.Contains(States(), s) }

// Ended reports whether the job has come to an end of its own.
func (s State) Ended() bool { return s == Succeeded || s == Failed }
