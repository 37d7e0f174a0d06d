package jobs

import "slices"

// Reason is why a job waits, or waited, as another object says it.
type Reason struct {
	At      Time   `json:"at"`     // since when, as that object claims, or else when it was seen
	Reason  string `json:"reason"` // one word
	Message string `json:"message"`
	Source  string `json:"source"` // the kind of that object: Pod, Workload, PodGroup, ProvisioningRequest or Event
	Version uint64 `json:"-"`      // of that object; 0 of one that is kept
}

// WorkloadSays is the Source of what Kueue's Workloads say.
const WorkloadSays = "Workload"

// EventSays is the Source of what autoscalers say in Events.
const EventSays = "Event"

const (
	// maxReasons is how many reasons are kept of a job.
	maxReasons = 10
	// maxReason is how many bytes of each are kept.
	maxReason = 512
)

// Waits reports whether a job in this state waits for something. Then other objects may say why.
func (s State) Waits() bool {
	return s == Submitted || s == Queued || s == Suspended || s == Pending || s == Retrying
}

// Unfinished reports whether a job in this state waits or runs. Of one that runs, other objects may
// say why a part of it does not.
func (s State) Unfinished() bool { return s.Waits() || s == Running }

// Explained is the job after other objects have said why it, or a part of it, waits. The zero
// Reason says that there is nothing any more for which it waits. Explained is nil if that changes
// nothing. It is no transition: neither the state nor the version moves.
//
// A job's Reasons are in the order in which they last came up. Each source and reason is there once, so reasons that
// alternate for hours push out no others. If an object says the same in other words, that is the same reason with
// another message.
func Explained(was *Job, why Reason) *Job {
	if !was.State.Unfinished() {
		return nil
	}
	stands := was.explained()
	if why.Reason == "" {
		if !stands {
			return nil
		}
		next := *was
		next.Reason, next.Message = "", ""
		return next.takenUp()
	}
	why.Version = 0
	why.Reason, why.Message, why.Source = bounded(why.Reason, maxReason), cut(why.Message, maxReason), Name(why.Source)
	next := *was
	next.Reasons = slices.Clone(was.Reasons)
	newest := len(next.Reasons) - 1
	same := func(r Reason) bool { return r.Source == why.Source && r.Reason == why.Reason }
	switch {
	case stands && same(next.Reasons[newest]):
		if next.Reasons[newest].Message == why.Message {
			return nil
		}
		next.Reasons[newest].Message = why.Message
	default:
		why.At = max(why.At, was.Created)
		if newest >= 0 {
			why.At = max(why.At, next.Reasons[newest].At)
		}
		next.Reasons = append(slices.DeleteFunc(next.Reasons, same), why)
		next.Reasons = next.Reasons[max(0, len(next.Reasons)-maxReasons):]
	}
	next.Reason, next.Message = why.Reason, why.Message
	return next.takenUp()
}

// explained reports whether the job's reason is the newest one that other objects gave.
func (j *Job) explained() bool {
	if len(j.Reasons) == 0 || j.Reason == "" {
		return false
	}
	newest := j.Reasons[len(j.Reasons)-1]
	return newest.Reason == j.Reason && newest.Message == j.Message
}
