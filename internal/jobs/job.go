package jobs

import "time"

// ObjectID names an object for good: another object of the same name has another UID.
type ObjectID struct {
	UID       string
	Namespace string // "" for objects that have none
	Name      string
}

// Said is what an object itself says, as a rule reads it.
type Said struct {
	State   State // "": the object says nothing, and the job stays what it was
	Reason  string
	Message string
	At      Time // since when it is in this state, as the object claims; 0: it claims nothing
	Owner   string
	Queue   string
	// Requests are resources of all its pods together, as Kubernetes quantities by name.
	Requests map[string]string
	Progress Progress
	Counts
	// Kept says that the job goes on with what it has, of which Done says nothing: its suspension has not ended that.
	Kept bool
}

// Progress is how much of a job is done. The zero Progress says that nothing is known of that. It
// may go back, as when everything is begun anew.
type Progress struct {
	Done int64 `json:"done"`
	Of   int64 `json:"of"`
}

// Counts are what controllers count of a job, for the next version to be compared with. Numbers
// only grow, so that what is new in them is what is more than before.
type Counts struct {
	Failures int64 `json:"failures,omitempty"` // pods, or starts, that have failed
	Restarts int64 `json:"restarts,omitempty"` // how often everything was begun anew
	Done     int64 `json:"done,omitempty"`     // pods, or steps, that have succeeded and are not done again, as the last transition found it
	// Active says that pods of the job are there, or have succeeded since, although its state does
	// not say that it runs: they wait, or begin anew, or its suspension has not ended them yet. An
	// attempt that begins while the job is Retrying counts from then on.
	Active bool `json:"active,omitempty"`
	// Due says of what is said of a job that is Pending that its pods are still to be made, and of
	// the job that an attempt counts once they are. It may be suspended again before.
	Due bool `json:"due,omitempty"`
	// Anew says that everything was begun anew since the job is held: it keeps nothing of what had succeeded before.
	Anew bool `json:"anew,omitempty"`
	// Unmade says that no version of the job has told of a pod.
	Unmade bool `json:"unmade,omitempty"`
}

// beyond are the later counts, with each number of these that is greater.
func (c Counts) beyond(later Counts) Counts {
	return Counts{
		Failures: max(c.Failures, later.Failures), Restarts: max(c.Restarts, later.Restarts), Done: max(c.Done, later.Done),
		Active: later.Active, Due: later.Due, Anew: later.Anew, Unmade: later.Unmade,
	}
}

// Seen is one object in its place in the log.
type Seen struct {
	ObjectID
	Said
	Version  uint64 // the resourceVersion
	Created  Time
	Deleted  bool // the object is gone; Said says nothing then
	Observed Time
	Late     bool // found later, by comparing: what happened in between is not known
	Replayed bool // read later, in its place: what happened in between is known, but not when
}

// Job is a job as its last transition left it. It is never modified.
type Job struct {
	ObjectID
	// NamespaceUID says which namespace of its name the job is of, since another one may come after
	// it; "" if that is not known, or there is none. It is learned once, and stays.
	NamespaceUID string
	// Parent is the topmost recorded job of those that control this one, which is a part of it:
	// nobody is told of a part by itself, and it is not counted again. The zero Ref: there is none,
	// or it is not known.
	Parent Ref

	Owner   string
	Queue   string
	State   State
	Since   Time
	Reason  string
	Message string
	Attempt int    // from 1
	Version uint64 // the resourceVersion of the last transition
	Created Time
	Started Time // it first came to Running
	// BeganLate says that it is not known how long it waited: that it first ran, or ended without, was found after the fact, or it ran before it said so.
	BeganLate bool
	// StoppedLate says that it is not known how long it ran: that it left Running was found after the fact, and it does not claim when.
	StoppedLate bool
	RanUntil    Time // it last left Running; 0 of one that never ran, and of one written by a gateway that did not keep it
	Ended       Time // it came to its end; 0 again if it was opened again
	Deleted     Time
	Spent       map[State]time.Duration // the time that it spent in each state that it has left
	Requests    map[string]string
	Reasons     []Reason // why it waited, the newest last; Reason is the newest while that holds
	Progress    Progress
	Cause       *Cause // why it is in its state, as CauseOf found last, or why it had ended before it was deleted; nil if that is not known, or there is none
	Counts
}

// Transition is one change of a job's state.
type Transition struct {
	Seq uint64 // its number in the log, from 1, without gaps; 0 until it has one
	ObjectID
	NamespaceUID string // of its job

	Created  Time // of the job; of one that was read, only where NamespaceUID is ""
	Version  uint64
	From     State // "" for the first
	To       State
	At       Time
	Observed Time
	Late     bool
	Attempt  int
	Reason   string
	Message  string
	Owner    string
	Queue    string
	Cause    *Cause // as Job's; nil of a deletion
}
