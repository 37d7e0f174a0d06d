package jobs

import "slices"

// State is a phase in the life of a job.
type State string

// The states of a job, as docs/history.md defines them for all kinds. Succeeded, Failed and
// Cancelled are ends, but not for ever: a job may be opened again, as `argo retry` does.
const (
	Submitted State = "Submitted" // it exists, and nobody has begun with it
	Queued    State = "Queued"    // it waits to be admitted, by quota or the like
	Suspended State = "Suspended" // somebody has told it to wait
	Pending   State = "Pending"   // its pods wait
	Running   State = "Running"   // work is under way, from the first moment to the end, a suspension or a failure of the whole
	Retrying  State = "Retrying"  // nothing of it runs, since something failed, and it will be tried again
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
	Cancelled State = "Cancelled" // ended on purpose
	Deleted   State = "Deleted"   // its object is gone
)

// States are all of them, in the order in which a job may go through them.
func States() []State {
	return []State{Submitted, Queued, Suspended, Pending, Running, Retrying, Succeeded, Failed, Cancelled, Deleted}
}

// Valid reports whether this is one of the states.
func (s State) Valid() bool { return slices.Contains(States(), s) }

// Held reports whether somebody or a queue has told the job to wait: none of its pods are to be there.
func (s State) Held() bool { return s == Queued || s == Suspended }

// Ended reports whether the job has come to an end of its own.
func (s State) Ended() bool { return s == Succeeded || s == Failed || s == Cancelled }

// HasCause reports whether jobs in a state, and transitions to it, have a cause, though it may not be known.
func (s State) HasCause() bool {
	return s == Failed || s == Retrying || s == Cancelled || s == Queued
}
