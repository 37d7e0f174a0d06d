package jobs

import "strings"

// GivenUp is the reason of the cause of a job that its queue has given up: it waits, and is not let
// in until somebody activates it again. Reasons that its queue gives for that begin with it.
const GivenUp = "Deactivated"

// IsGivenUp reports whether the job waits, and its queue said last that it has given it up.
func (j *Job) IsGivenUp() bool {
	return j.State == Queued && j.explained() && isGivingUp(j.Reasons[len(j.Reasons)-1])
}

func isGivingUp(why Reason) bool {
	return why.Source == WorkloadSays && strings.HasPrefix(why.Reason, GivenUp)
}

func causeOfGivingUp(why Reason) *Cause {
	return &Cause{Reason: GivenUp, Text: bounded(plain(said("given up by its queue", why.Message)), maxCause)}
}

// GaveUp is a transition from a state to itself: a job's queue has given it up, of which the job's
// own object says nothing. It is told once: when that has become the job's reason, and not if the
// transition that led to its state told it. Next is the job with its new reason, and the version
// that of the object that says so. Of anything else, the transition is nil.
func GaveUp(was, next *Job, version uint64, observed Time) (*Job, *Transition) {
	if !next.IsGivenUp() || was.IsGivenUp() {
		return next, nil
	}
	given := *next
	given.Cause = causeOfGivingUp(next.Reasons[len(next.Reasons)-1])
	if version == 0 {
		version = next.Version
	}
	return &given, &Transition{
		ObjectID: next.ObjectID, NamespaceUID: next.NamespaceUID, Created: next.Created, Version: version, From: next.State, To: next.State,
		At: max(observed, next.Since), Observed: max(observed, next.Since), Attempt: next.Attempt, Reason: next.Reason, Message: next.Message,
		Owner: next.Owner, Queue: next.Queue, Cause: given.Cause,
	}
}

// GaveUp reports whether the transition says that the job was given up, and nothing else.
func (t *Transition) GaveUp() bool { return t.From == t.To }

// takenUp takes away that a job was given up from what says why it is in its state, once its queue
// does not say so any more.
func (j *Job) takenUp() *Job {
	if j.Cause != nil && j.Cause.Reason == GivenUp && !j.HasCause() && !j.IsGivenUp() {
		j.Cause = nil
	}
	return j
}

// IsWanted reports whether a transition is told to somebody who wants those to some states. That a
// job was given up is wanted as a failure is, since nothing follows it by itself.
func (t *Transition) IsWanted(wants func(State) bool) bool {
	return wants(t.To) || t.To == Queued && t.Cause != nil && t.Cause.Reason == GivenUp && wants(Failed)
}
